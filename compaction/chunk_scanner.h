// ChunkScanner: what a merge takes in, cut into chunks, and where each entry of a chunk belongs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "compaction/zipper.h"
#include "compaction/zipper_scan.h"

namespace braiddb {

// Chunks are disjoint ranges of user keys in ascending order; all versions of a key are in one chunk. Together they have every
// entry of the tables that has not been merged yet.
class ChunkScanner {
 public:
  virtual ~ChunkScanner() = default;
  virtual size_t chunks() const = 0;
  // As ScanChunk. Thread-safe.
  virtual void Scan(size_t chunk, ScanResult* result) const = 0;
};

// By what there is: an index that has every node of the last level, an order of the tables; else by lists alone. Notes damage.
// REQUIRES: no merge of these tables is running; `context` and the tables outlive it.
std::unique_ptr<ChunkScanner> NewChunkScanner(const ZipperContext& context, const std::vector<const PmTable*>& tables,
                                              PmPtr progress);

}  // namespace braiddb
