#include "compaction/chunk_reader.h"

#include "log/entry_sort.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Number of pieces that are walked in an interleaved order, so that their cache misses overlap.
constexpr size_t kLanes = 16;

}  // namespace

// Pieces are disjoint and each piece ascends, so the sorted result has each entry once. A lane that finishes its piece takes the
// next piece, so all lanes stay busy until the pieces run out.
bool ChunkReader::Read(const std::vector<MergePiece>& pieces, std::vector<ChunkItem>* items) {
  items->clear();
  lanes_.clear();
  size_t next_piece = 0;
  while (next_piece < pieces.size() && lanes_.size() < kLanes) {
    if (!Begin(pieces[next_piece++], &lanes_.emplace_back())) return false;
  }
  for (size_t running = lanes_.size(); running > 0;) {
    for (Lane& lane : lanes_) {
      if (!lane.at) continue;
      if (!Step(&lane, items)) return false;
      if (lane.at) continue;
      if (next_piece < pieces.size()) {
        if (!Begin(pieces[next_piece++], &lane)) return false;
      } else {
        --running;
      }
    }
  }
  SortEntries(order_, items->begin(), items->end());
  // Two equal entries mean that two pieces led to the same entry: a list is damaged.
  for (size_t i = 1; i < items->size(); ++i) {
    if ((*items)[i].entry == (*items)[i - 1].entry) return false;
  }
  return true;
}

bool ChunkReader::Begin(const MergePiece& piece, Lane* lane) const {
  *lane = {piece.begin, piece.end, nullptr};
  return Fetch(lane->at);
}

bool ChunkReader::Fetch(PmPtr pointer) const {
  if (!regions_.Holds(pointer)) return false;
  Prefetch(regions_.Resolve(pointer));
  return true;
}

// Appends the prefetched entry, and prefetches its successor. Every pointer and size is checked before it is used. Entries of a
// list must ascend, so a circle is found as damage.
bool ChunkReader::Step(Lane* lane, std::vector<ChunkItem>* items) const {
  auto* const entry = regions_.Resolve<LogEntry>(lane->at);
  if (entry->height() == 0 || entry->height() > kMaxHeight ||
      !regions_.Holds(lane->at + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8))) {
    return false;
  }
  if (lane->before != nullptr && CompareEntries(order_, *lane->before, *entry) >= 0) return false;
  items->push_back({order_.Prefix(entry->key()), entry, lane->at});
  lane->before = entry;
  lane->at = entry->Next(0);
  if (!lane->at || lane->at == lane->end) {
    lane->at = PmPtr();
    return true;
  }
  return Fetch(lane->at);
}

}  // namespace braiddb
