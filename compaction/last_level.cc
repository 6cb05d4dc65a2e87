#include "compaction/last_level.h"

#include "compaction/braided_level.h"
#include "compaction/nv_tree_level.h"

namespace braiddb {

Status LastLevel::Create(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place) {
  switch (options.l1) {
    case L1Kind::kBraidedSkipList:
      return BraidedLevel::Create(regions, place);
    case L1Kind::kNvTree:
      return NvTree::Create(regions, segments, options.nv_leaf_size, place);
  }
  return Status::NotSupported("this version has no such Options::l1");
}

Status LastLevel::Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result) {
  switch (options.l1) {
    case L1Kind::kBraidedSkipList:
      return BraidedLevel::Open(options, parts, job, result);
    case L1Kind::kNvTree:
      return NvTreeLevel::Open(options, parts, result);
  }
  return Status::NotSupported("this version has no such Options::l1");
}

}  // namespace braiddb
