// Collapse: of keys whose newest version in the last level is an operand, what the operands amount to, as a put in their place.
#pragma once

#include <string>
#include <vector>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"
#include "compaction/relocation.h"
#include "index/range_tombstones.h"

namespace braiddb {

// GOAL   No key keeps operands in the last level for long: what they are applied to is dropped by the merge that follows.
// STEPS  1 each key's operands are collected, down to what they are applied to  2 the operator makes the value  3 a put of it,
//        with the sequence number of the newest operand, is written as a copy of that (relocation.h, steps 3 to 5). The merge of
//        the copies puts the put in the operand's place, and then drops what nobody sees below it.
// CRASH  As of relocation: until the MANIFEST lists the table of the copies, they do not count. From then on put and operand
//        both count, and have one value: what the operand is applied to stays until the put has taken its place. [CC-50]
// SNAPSHOTS  Only the newest version of a key is collapsed. What snapshots see of the older ones stays as it is.
// A key stays as it is if the operator refuses, if what it makes is longer than a value may be, or if something is damaged.
//
// `keys`: of the family; taken from its end until about `most_bytes` are copied; sorted by the caller, each once. The result has
// no table if there was nothing to collapse. Errors as CopyLiveEntries; then the keys are gone, too, and nothing else has
// changed.
// `ranges`: range tombstones of the family, which operands are not applied beyond; may be null.
Status CollapseKeys(const RelocationJob& job, uint32_t family, const MergeOperator& merge, const RangeTombstones* ranges,
                    uint64_t most_bytes, std::vector<std::string>* keys, Relocation* result);

}  // namespace braiddb
