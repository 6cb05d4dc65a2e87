#include "compaction/last_level.h"

#include "compaction/braided_level.h"
#include "compaction/nv_tree_level.h"
#include "compaction/sorted_runs_level.h"

namespace braiddb {

std::string NameOfL1(uint8_t kind) {
  switch (static_cast<L1Kind>(kind)) {
    case L1Kind::kBraidedSkipList:
      return "kBraidedSkipList";
    case L1Kind::kNvTree:
      return "kNvTree";
    case L1Kind::kSortedRuns:
      return "kSortedRuns";
  }
  return "number " + std::to_string(kind) + ", which this version does not have";
}

Status LastLevel::Create(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place) {
  switch (options.l1) {
    case L1Kind::kBraidedSkipList:
      return BraidedLevel::Create(regions, place);
    case L1Kind::kNvTree:
      return NvTree::Create(regions, segments, options.nv_leaf_size, place);
    case L1Kind::kSortedRuns:
      return SortedRuns::Create(regions, place);
  }
  return Status::NotSupported("this version has no such Options::l1");
}

Status LastLevel::Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result) {
  switch (options.l1) {
    case L1Kind::kBraidedSkipList:
      return BraidedLevel::Open(options, parts, job, result);
    case L1Kind::kNvTree:
      return NvTreeLevel::Open(options, parts, result);
    case L1Kind::kSortedRuns:
      return SortedRunsLevel::Open(options, parts, result);
  }
  return Status::NotSupported("this version has no such Options::l1");
}

}  // namespace braiddb
