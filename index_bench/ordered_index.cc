#include "index_bench/ordered_index.h"

#include "index_bench/baselines/cdds_tree.h"
#include "index_bench/baselines/lcb_tree.h"
#include "index_bench/nv_tree_index.h"

namespace braiddb {

Status NewIndex(IndexKind kind, RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                std::unique_ptr<OrderedIndex>* index) {
  switch (kind) {
    case IndexKind::kNvTree:
      return NvTreeIndex::Create(regions, segments, node_bytes, index);
    case IndexKind::kLcbTree:
      return LcbTree::Create(regions, segments, node_bytes, index);
    case IndexKind::kCddsTree:
      return CddsTree::Create(regions, segments, node_bytes, index);
  }
  return Status::InvalidArgument("unknown index");
}

}  // namespace braiddb
