// OrderedIndex: the interface of the trees in index_bench. Keys and values have eight bytes. An operation is durable when its
// call returns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "braiddb/status.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct IndexStats {
  uint64_t rebuilds = 0;    // NV-Tree: rebuilds of inner nodes
  uint64_t rebuild_ns = 0;  // total
  uint64_t dram_bytes = 0;
};

// Thread safety: one thread.
class OrderedIndex {
 public:
  virtual ~OrderedIndex() = default;
  // REQUIRES: the key does not exist.
  virtual Status Insert(uint64_t key, uint64_t value) = 0;
  // REQUIRES: the key exists.
  virtual Status Update(uint64_t key, uint64_t value) = 0;
  virtual Status Remove(uint64_t key) = 0;
  // Fills the empty index with ascending keys. `fill`: the share of each leaf that is used, in (0, 1]. Only LB+-Tree heeds it.
  virtual Status BulkLoad(std::span<const std::pair<uint64_t, uint64_t>> entries, double /*fill*/) {
    for (const auto& [key, value] : entries) {
      if (Status status = Insert(key, value); !status.ok()) return status;
    }
    return Status::OK();
  }
  virtual bool Search(uint64_t key, uint64_t* value) const = 0;
  virtual IndexStats GetStats() const { return {}; }
};

// kLbTree: LB+-Tree. kLbTreeStay: LB+-Tree whose inserts move no entries.
enum class IndexKind { kNvTree, kLbTree, kLbTreeStay, kLcbTree, kCddsTree };

// Returns true if the index can have nodes of this size: 512, 1024, 2048 or 4096; LB+-Tree also other multiples of 256 below.
bool IsNodeSize(IndexKind kind, uint32_t node_bytes);

// Creates an empty index. REQUIRES: IsNodeSize.
Status NewIndex(IndexKind kind, RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                std::unique_ptr<OrderedIndex>* index);

}  // namespace braiddb
