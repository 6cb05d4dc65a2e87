// Merge operators for tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "braiddb/merge_operator.h"

namespace braiddb::test {

// Appends, and forgets all but the last kKept bytes: neither the order of operands nor one of them can be wrong without notice.
// An operand kRefused cannot be applied, kThrown throws.
class AppendOperator final : public MergeOperator {
 public:
  static constexpr size_t kKept = 64;
  static constexpr const char* kRefused = "<refused>";
  static constexpr const char* kThrown = "<thrown>";

  explicit AppendOperator(bool is_partial = true) : is_partial_(is_partial) {}

  static std::string Apply(std::string value, Slice operand) {
    value.append(operand);
    return value.substr(value.size() - std::min(value.size(), kKept));
  }

  const char* Name() const override { return "test.Append"; }
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    full_merges.fetch_add(1, std::memory_order_relaxed);
    if (existing != nullptr) value->assign(*existing);
    for (const Slice operand : operands) {
      if (operand == kThrown) throw std::runtime_error("no");
      if (operand == kRefused) return false;
      *value = Apply(std::move(*value), operand);
    }
    return true;
  }
  bool PartialMerge(Slice, Slice left, Slice right, std::string* operand) const override {
    if (!is_partial_) return false;
    partial_merges.fetch_add(1, std::memory_order_relaxed);
    for (const Slice side : {left, right}) {
      if (side == kThrown) throw std::runtime_error("no");
      if (side == kRefused) return false;
    }
    *operand = Apply(std::string(left), right);
    return true;
  }

  mutable std::atomic<uint64_t> full_merges{0};
  mutable std::atomic<uint64_t> partial_merges{0};

 private:
  const bool is_partial_;
};

}  // namespace braiddb::test
