// OrderedIndex: the interface of the trees in index_bench. Keys and values have eight bytes. An operation is durable when its
// call returns.
#pragma once

#include <cstdint>
#include <memory>

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
  virtual bool Search(uint64_t key, uint64_t* value) const = 0;
  virtual IndexStats GetStats() const { return {}; }
};

enum class IndexKind { kNvTree, kLcbTree, kCddsTree };

// Creates an empty index. `node_bytes`: 512, 1024, 2048, or 4096.
Status NewIndex(IndexKind kind, RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                std::unique_ptr<OrderedIndex>* index);

}  // namespace braiddb
