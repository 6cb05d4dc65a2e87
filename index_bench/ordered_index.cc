#include "index_bench/ordered_index.h"

#include "index_bench/baselines/cdds_tree.h"
#include "index_bench/baselines/lcb_tree.h"
#include "index_bench/lb_tree_index.h"
#include "index_bench/nv_tree_index.h"

namespace braiddb {

bool IsNodeSize(IndexKind kind, uint32_t node_bytes) {
  const bool is_lb_tree = kind == IndexKind::kLbTree || kind == IndexKind::kLbTreeStay;
  return is_lb_tree ? IsLbLeafSize(node_bytes) : IsLeafSize(node_bytes);
}

Status NewIndex(IndexKind kind, RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                std::unique_ptr<OrderedIndex>* index) {
  switch (kind) {
    case IndexKind::kNvTree:
      return NvTreeIndex::Create(regions, segments, node_bytes, index);
    case IndexKind::kLbTree:
      return LbTreeIndex::Create(regions, segments, node_bytes, true, index);
    case IndexKind::kLbTreeStay:
      return LbTreeIndex::Create(regions, segments, node_bytes, false, index);
    case IndexKind::kLcbTree:
      return LcbTree::Create(regions, segments, node_bytes, index);
    case IndexKind::kCddsTree:
      return CddsTree::Create(regions, segments, node_bytes, index);
  }
  return Status::InvalidArgument("unknown index");
}

}  // namespace braiddb
