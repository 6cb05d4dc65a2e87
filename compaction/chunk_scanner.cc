#include "compaction/chunk_scanner.h"

#include <algorithm>

#include "compaction/indexed_scan.h"
#include "compaction/merge_plan.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Chosen so that the lines that the scan prefetches, about 400 bytes per entry, are still in the L2 cache when the chunk is
// merged.
constexpr uint64_t kOrderChunkEntries = kCrashTest ? 4 : 512;

// The layer of the last level on which neighbours are about as far apart as consecutive entries of the merge. A search that
// starts there visits few nodes per layer.
uint32_t StartLayer(uint64_t l1_entries, uint64_t merge_entries) {
  uint32_t layer = 0;
  for (uint64_t ratio = l1_entries / std::max<uint64_t>(1, merge_entries); ratio > 1 && layer + 1 < kMaxHeight;
       ratio /= kBranching) {
    ++layer;
  }
  return layer;
}

// Walks the tables' lists. Walks the last level too, unless an index with every node exists.
class ListScanner final : public ChunkScanner {
 public:
  ListScanner(const ZipperContext& context, const TallIndex* index, const std::vector<const PmTable*>& tables, PmPtr progress)
      : l1_(*context.l1),
        index_(index),
        plan_(tables, context.regions, context.order, progress),
        start_layer_(StartLayer(context.l1_entries, plan_.entries())) {}

  size_t chunks() const override { return plan_.chunks(); }
  void Scan(size_t chunk, ScanResult* result) const override {
    if (index_ != nullptr) {
      ScanChunkByIndex(plan_.pieces(chunk), l1_, *index_, result);
    } else {
      ScanChunk(plan_.pieces(chunk), l1_, start_layer_, result);
    }
  }

 private:
  const BraidedList& l1_;
  const TallIndex* const index_;  // may be null
  const MergePlan plan_;
  const uint32_t start_layer_;
};

// Walks no list: uses the tables' sorted array and the index. Chunks are slices of the array, cut between user keys. A resumed
// merge cannot use this scanner, because the array has merged entries too.
class OrderScanner final : public ChunkScanner {
 public:
  explicit OrderScanner(const ZipperContext& context)
      : l1_(*context.l1), index_(*context.index), tables_(*context.order_of_tables) {
    const uint64_t entries = tables_.entries();
    for (uint64_t cut = 0; cut < entries; cut += kOrderChunkEntries) {
      while (cut < entries && tables_.IsOlderAt(cut)) ++cut;  // all versions of a key stay in one chunk
      cuts_.push_back(cut);
    }
    if (cuts_.empty() || cuts_.back() < entries) cuts_.push_back(entries);
  }

  size_t chunks() const override { return cuts_.size() - 1; }
  void Scan(size_t chunk, ScanResult* result) const override {
    ScanOrderByIndex(tables_, cuts_[chunk], cuts_[chunk + 1], l1_, index_, result);
  }

 private:
  const BraidedList& l1_;
  const TallIndex& index_;
  const TableOrder& tables_;
  std::vector<uint64_t> cuts_;  // begins of the chunks, and the end of the last chunk
};

}  // namespace

std::unique_ptr<ChunkScanner> NewChunkScanner(const ZipperContext& context, const std::vector<const PmTable*>& tables,
                                              PmPtr progress) {
  const bool has_all = context.index != nullptr && context.regions->count() == 1 && context.index->HasEveryNode(0);
  if (has_all && !progress && context.order_of_tables != nullptr) {
    BRAIDDB_SYNC_POINT("NewChunkScanner:ByOrder");
    return std::make_unique<OrderScanner>(context);
  }
  return std::make_unique<ListScanner>(context, has_all ? context.index : nullptr, tables, progress);
}

}  // namespace braiddb
