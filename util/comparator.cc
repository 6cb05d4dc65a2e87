#include "braiddb/comparator.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace braiddb {

namespace {

// std::string_view compares like memcmp, then by length: unsigned bytes, shorter first.
class BytewiseComparatorImpl final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override { return a.compare(b); }
  const char* Name() const override { return "braiddb.BytewiseComparator"; }
};

class ReverseBytewiseComparatorImpl final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override { return b.compare(a); }
  const char* Name() const override { return "braiddb.ReverseBytewiseComparator"; }
};

uint64_t NumberOf(Slice timestamp) {
  uint64_t number = 0;
  std::memcpy(&number, timestamp.data(), sizeof number);
  return number;
}

template <class Keys>
class WithU64Ts final : public Comparator {
 public:
  explicit WithU64Ts(const char* name) : name_(name) {}
  int Compare(Slice a, Slice b) const override {
    const int order = CompareWithoutTimestamp(a, true, b, true);
    return order != 0 ? order : CompareTimestamp(b.substr(b.size() - kBytes), a.substr(a.size() - kBytes));
  }
  const char* Name() const override { return name_; }
  size_t timestamp_size() const override { return kBytes; }
  int CompareTimestamp(Slice a, Slice b) const override {
    return NumberOf(a) < NumberOf(b) ? -1 : static_cast<int>(NumberOf(a) > NumberOf(b));
  }
  int CompareWithoutTimestamp(Slice a, bool a_has_timestamp, Slice b, bool b_has_timestamp) const override {
    if (a_has_timestamp) a.remove_suffix(kBytes);
    if (b_has_timestamp) b.remove_suffix(kBytes);
    return keys_.Compare(a, b);
  }

 private:
  static constexpr size_t kBytes = sizeof(uint64_t);
  static_assert(std::endian::native == std::endian::little, "timestamps are copied as they are in memory");

  const char* const name_;
  const Keys keys_;
};

}  // namespace

// Never destroyed, since databases with static storage may be destroyed later.
const Comparator* BytewiseComparator() {
  static const auto* const kInstance = new BytewiseComparatorImpl();
  return kInstance;
}

const Comparator* ReverseBytewiseComparator() {
  static const auto* const kInstance = new ReverseBytewiseComparatorImpl();
  return kInstance;
}

const Comparator* BytewiseComparatorWithU64Ts() {
  static const auto* const kInstance = new WithU64Ts<BytewiseComparatorImpl>("leveldb.BytewiseComparator.u64ts");
  return kInstance;
}

const Comparator* ReverseBytewiseComparatorWithU64Ts() {
  static const auto* const kInstance = new WithU64Ts<ReverseBytewiseComparatorImpl>("rocksdb.ReverseBytewiseComparator.u64ts");
  return kInstance;
}

}  // namespace braiddb
