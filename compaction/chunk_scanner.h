// ChunkScanner: cuts the input of a merge into chunks, and finds the insertion points of a chunk's entries in the last level.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "compaction/zipper.h"
#include "compaction/zipper_scan.h"

namespace braiddb {

// Chunks are disjoint ranges of user keys in ascending order. All versions of a key are in one chunk. Together the chunks have
// every entry of the tables that is not merged yet.
class ChunkScanner {
 public:
  virtual ~ChunkScanner() = default;
  virtual size_t chunks() const = 0;
  // As ScanChunk (zipper_scan.h). Thread-safe.
  virtual void Scan(size_t chunk, ScanResult* result) const = 0;
};

// Chooses the fastest scanner that the context allows. All need an index with every node of the last level, except the last:
// - tables' sorted array and index: walks no list.
// - index only: walks the tables' lists.
// - otherwise: walks the tables' lists and the last level.
// The sorted array gives the entries in order without a cache miss per list node, and its chunks are smaller. The index gives
// predecessors without reading nodes of the last level. Without both, each search step is a cache miss.
// Notes damage in the regions. REQUIRES: no merge of these tables is running. `context` and the tables outlive the scanner.
std::unique_ptr<ChunkScanner> NewChunkScanner(const ZipperContext& context, const std::vector<const PmTable*>& tables,
                                              PmPtr progress);

}  // namespace braiddb
