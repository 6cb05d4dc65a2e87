#include "braiddb/merge_operator.h"

#include <bit>
#include <cstring>

namespace braiddb {

bool MergeOperator::PartialMerge(Slice, Slice, Slice, std::string*) const { return false; }

bool MergeOperator::PartialMergeMulti(Slice key, std::span<const Slice> operands, std::string* operand) const {
  std::string left(operands[0]);
  for (const Slice right : operands.subspan(1)) {
    std::string both;
    if (!PartialMerge(key, left, right, &both)) return false;
    left = std::move(both);
  }
  *operand = std::move(left);
  return true;
}

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are in memory");

class UInt64Add final : public MergeOperator {
 public:
  const char* Name() const override { return "UInt64AddOperator"; }
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    uint64_t sum = existing == nullptr ? 0 : NumberOf(*existing);
    for (const Slice operand : operands) sum += NumberOf(operand);
    value->assign(reinterpret_cast<const char*>(&sum), sizeof sum);
    return true;
  }
  bool PartialMerge(Slice key, Slice left, Slice right, std::string* operand) const override {
    const Slice operands[] = {left, right};
    return FullMerge(key, nullptr, operands, operand);
  }

 private:
  static uint64_t NumberOf(Slice bytes) {
    uint64_t number = 0;
    if (bytes.size() == sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
};

}  // namespace

std::shared_ptr<const MergeOperator> UInt64AddOperator() {
  static const auto the_one = std::make_shared<const UInt64Add>();
  return the_one;
}

}  // namespace braiddb
