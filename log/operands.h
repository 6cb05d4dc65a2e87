// Calls of the user's merge operator: what it throws counts as false, but for std::bad_alloc, which goes on.
#pragma once

#include <span>
#include <string>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"

namespace braiddb {

// `operands`: the oldest first. Corruption if they cannot be applied.
Status FullMerge(const MergeOperator& merge, Slice key, const Slice* existing, std::span<const Slice> operands,
                 std::string* value);
// False if they cannot be made one.
bool PartialMerge(const MergeOperator& merge, Slice key, std::span<const Slice> operands, std::string* operand);

}  // namespace braiddb
