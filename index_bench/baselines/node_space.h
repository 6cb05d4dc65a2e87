// NodeSpace: allocates nodes of one size in persistent memory, for the baselines. Reuses freed nodes first.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

class NodeSpace {
 public:
  NodeSpace(SegmentAllocator* segments, uint32_t node_bytes) : segments_(segments), node_bytes_(node_bytes) {}

  Status Allocate(void** node) {
    if (free_.empty()) {
      Segment* segment = nullptr;
      Status status = segments_->Allocate(0, node_bytes_, &segment);
      if (!status.ok()) return status;
      for (uint64_t at = segment->capacity() / node_bytes_; at-- > 0;) free_.push_back(segment->data() + at * node_bytes_);
    }
    *node = free_.back();
    free_.pop_back();
    return Status::OK();
  }
  void Free(void* node) { free_.push_back(static_cast<uint8_t*>(node)); }

 private:
  SegmentAllocator* const segments_;
  const uint32_t node_bytes_;
  std::vector<uint8_t*> free_;
};

}  // namespace braiddb
