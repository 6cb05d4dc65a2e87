// Operands: calls the user's merge operator. An exception of the operator counts as the result false. Only std::bad_alloc is
// passed on, since it is no error of the operator.
#pragma once

#include <span>
#include <string>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"

namespace braiddb {

// Applies operands to the value of a key and stores the result in *value. `existing`: the value, null if there is none.
// `operands`: oldest first. Corruption: the operator has returned false.
Status FullMerge(const MergeOperator& merge, Slice key, const Slice* existing, std::span<const Slice> operands,
                 std::string* value);
// Combines operands, oldest first, into one operand. Returns false if the operator cannot combine them.
bool PartialMerge(const MergeOperator& merge, Slice key, std::span<const Slice> operands, std::string* operand);

}  // namespace braiddb
