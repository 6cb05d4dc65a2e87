#include "log/operands.h"

#include <new>

namespace braiddb {

Status FullMerge(const MergeOperator& merge, Slice key, const Slice* existing, std::span<const Slice> operands,
                 std::string* value) {
  value->clear();
  bool done = false;
  try {
    done = merge.FullMerge(key, existing, operands, value);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
  }
  return done ? Status::OK() : Status::Corruption("Error: Could not perform merge.");
}

bool PartialMerge(const MergeOperator& merge, Slice key, std::span<const Slice> operands, std::string* operand) {
  operand->clear();
  try {
    return merge.PartialMergeMulti(key, operands, operand);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return false;
  }
}

}  // namespace braiddb
