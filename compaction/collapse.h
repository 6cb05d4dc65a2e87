// Collapse: replaces the operands of a key in the last level by one put with their result.
#pragma once

#include <string>
#include <vector>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"
#include "compaction/relocation.h"
#include "compaction/version_filter.h"
#include "index/range_tombstones.h"

namespace braiddb {

// GOAL   No key keeps many operands in the last level. The merge that follows drops the versions below the put.
// STEPS  1 Collect each key's operands, down to the version that they are applied to.
//        2 Combine adjacent operands by partial merges (operand_combiner.h). Apply the results by a full merge.
//        3 Write a put with the result and with the sequence number of the newest operand. It is written as a relocated copy of
//          that operand (relocation.h, steps 3 to 5).
//        4 The next merge replaces the operand by the put, and drops the older versions that no reader or snapshot can see.
// CRASH AFTER EACH STEP
//        1 to 3: the MANIFEST does not list the table of the copies, so the copies do not count, as in a relocation.
//        Table listed: put and operand both count and have the same value. The versions below the operand stay until the put has
//        replaced the operand. [CC-50]
// WHAT A READER SEES  Only the newest version of a key is collapsed. Older versions that snapshots see stay unchanged.
// A key stays unchanged if the operator returns an error, if the result is longer than kMaxValueSize, or if a version is damaged.
//
// `keys`: keys of the family, sorted and distinct. Keys are removed from the end until about `most_bytes` are copied. The result
// has no table if no key was collapsed. Errors: as CopyLiveEntries. After an error the processed keys are removed too, and the
// database is unchanged.
// `ranges`: range tombstones of the family, or null. Operands are not applied across a range tombstone.
// `snapshots`: the snapshots that exist. Operands on two sides of a snapshot are not combined.
Status CollapseKeys(const RelocationJob& job, uint32_t family, const MergeOperator& merge, const RangeTombstones* ranges,
                    const VersionFilter& snapshots, uint64_t most_bytes, std::vector<std::string>* keys, Relocation* result);

}  // namespace braiddb
