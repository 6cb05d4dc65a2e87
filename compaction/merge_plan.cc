#include "compaction/merge_plan.h"

#include <algorithm>

#include "log/entry_sort.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// Entries that reach this layer are samples: about one in kBranching^kSampleLayer.
constexpr uint32_t kSampleLayer = kCrashTest ? 1 : 4;

}  // namespace

struct MergePlan::Sample {
  uint64_t prefix;
  const LogEntry* entry;
  PmPtr pointer;
  uint32_t table;
};

// Walks one upper layer of each table in each region. A merged entry at or after `progress` links into the last level, so the
// walk stops there.
std::vector<MergePlan::Sample> MergePlan::CollectSamples(const std::vector<const PmTable*>& tables, PmPtr progress) const {
  std::vector<Sample> samples;
  const LogEntry* limit = progress ? regions_->Resolve<LogEntry>(progress) : nullptr;
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const BraidedList& list = tables[t]->list;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      const uint64_t* tower = list.head(region);
      while (const LogEntry* entry = list.Load(tower, kSampleLayer)) {
        if (limit != nullptr && CompareEntries(*order_, *entry, *limit) >= 0) break;
        const auto* before = tower == list.head(region) ? nullptr : samples.back().entry;
        if (entry->height() <= kSampleLayer || (before != nullptr && CompareEntries(*order_, *before, *entry) >= 0)) {
          regions_->NoteDamage();
          break;
        }
        samples.push_back({order_->Prefix(entry->key()), entry, regions_->PointerInList(region, entry), t});
        tower = entry->next;
      }
    }
  }
  SortEntries(*order_, samples.begin(), samples.end());
  return samples;
}

// Every chunk begins and ends at the search results for two user keys. So neighbouring chunks share no entry and omit none. A
// missing sample only makes a chunk or a piece longer.
MergePlan::MergePlan(const std::vector<const PmTable*>& tables, const RegionSet* regions, const KeyOrder* order, PmPtr progress)
    : regions_(regions), order_(order) {
  for (const PmTable* table : tables) entries_ += table->entries;
  const std::vector<Sample> samples = CollectSamples(tables, progress);

  // cuts: indexes of the samples whose user key begins a chunk. A cut moves back to the first sample of its key, so all versions
  // of the key are in one chunk.
  std::vector<size_t> cuts;
  const uint64_t chunk_count = entries_ / kChunkEntries + 1;
  const size_t step = std::max<size_t>(1, samples.size() / chunk_count);
  const auto same_key = [&](size_t a, size_t b) {
    return order_->Compare(samples[a].entry->key(), samples[b].entry->key()) == 0;
  };
  size_t seen = 0;        // the sample that was looked at last
  size_t seen_begin = 0;  // where its key begins: a key may have many samples, and each is passed once
  for (size_t i = step; i < samples.size(); i += step) {
    size_t cut = i;
    while (cut > seen && same_key(cut - 1, cut)) --cut;
    if (cut == seen) cut = seen_begin;
    seen = i;
    seen_begin = cut;
    if (cut > 0 && (cuts.empty() || cut > cuts.back())) cuts.push_back(cut);
  }

  // entry_points[c][t]: the first entry of table t in chunk c. All searches precede the merge, because a merge redirects the
  // tables' pointers. The search finds the predecessor of the newest version of the cut's key, so a chunk begins before all
  // versions.
  std::vector<std::vector<PmPtr>> entry_points(cuts.size() + 2, std::vector<PmPtr>(tables.size()));
  const auto pointer_at = [&](const PmTable& table, const SearchKey& key) {
    const BraidedList& list = table.list;
    const LogEntry* before = list.FindLess(key);
    return PmPtr(LoadAcquire(before == nullptr ? list.head(0) : before->next) & ~LogEntry::kTagBits);
  };
  for (uint32_t t = 0; t < tables.size(); ++t) {
    entry_points[0][t] = PmPtr(LoadAcquire(tables[t]->list.head(0)) & ~LogEntry::kTagBits);
    for (size_t c = 0; c < cuts.size(); ++c) {
      entry_points[c + 1][t] = pointer_at(*tables[t], SearchKey(*order_, samples[cuts[c]].entry->key(), kMaxSequence));
    }
    if (progress) {
      const auto* limit = regions_->Resolve<LogEntry>(progress);
      entry_points.back()[t] = pointer_at(*tables[t], SearchKey(*order_, limit->key(), limit->sequence()));
    }
  }

  // Cuts each table's part of a chunk at the table's samples. Pieces of one table are consecutive: each begins where its
  // predecessor ends.
  for (size_t c = 0; c <= cuts.size(); ++c) {
    std::vector<MergePiece> pieces;
    const size_t first = c == 0 ? 0 : cuts[c - 1];
    const size_t last = c == cuts.size() ? samples.size() : cuts[c];
    for (uint32_t t = 0; t < tables.size(); ++t) {
      PmPtr begin = entry_points[c][t];
      const PmPtr end = entry_points[c + 1][t];
      if (begin == end) continue;
      for (size_t i = first; i < last; ++i) {
        if (samples[i].table != t || samples[i].pointer == begin) continue;
        pieces.push_back({begin, samples[i].pointer});
        begin = samples[i].pointer;
      }
      pieces.push_back({begin, end});
    }
    if (!pieces.empty()) chunks_.push_back(std::move(pieces));
  }
}

}  // namespace braiddb
