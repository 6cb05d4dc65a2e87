#include "compaction/relocation.h"

#include <algorithm>
#include <new>
#include <span>
#include <string>

#include "compaction/list_builder.h"
#include "log/entry_sort.h"
#include "log/fetch_entry.h"
#include "log/log_reader.h"
#include "log/log_writer.h"
#include "lsm/manifest.h"
#include "util/mutant.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

constexpr size_t kEntriesAhead = 16;
constexpr size_t kEntriesPerStop = 1 << 12;
// Segments with a larger live fraction are not relocated: the copies would cost more than the freed space is worth.
constexpr double kDense = 0.875;

struct Sparse {
  Segment* segment;
  uint64_t live;   // bytes
  uint64_t space;  // usable bytes; for a packed segment only the bytes in use
  double fill() const { return static_cast<double>(live) / static_cast<double>(space); }
};

struct Found {
  uint64_t prefix;
  const LogEntry* entry;
  Segment* segment;
};

using FoundByFamily = std::vector<std::vector<Found>>;

// Executes the steps of CopyLiveEntries or WriteCopies.
// WHY THE SET OF VERSIONS IS COMPLETE  A get that finds a key in the table of the copies returns that version and does not search
// the last level. So for each key the table must have every version from the newest down to the oldest live entry in the sparse
// segments. No merge changes the last level meanwhile (RelocationJob::Family).
class Copier {
 public:
  Copier(const RelocationJob& job, Relocation* result)
      : job_(job), result_(*result), live_(job.families.size()), writers_(job.regions->count()) {}

  // Steps 1 to 5. Families are processed one after the other, because each family has its own key order and its own table. The
  // copy segments are shared by all families.
  Status Run(const std::vector<Segment*>& from) {
    for (Segment* segment : from) FindLive(segment);
    for (uint32_t family = 0; family < live_.size(); ++family) {
      if (live_[family].empty()) continue;
      SortEntries(*job_.families[family].order, live_[family].begin(), live_[family].end());
      versions_.clear();
      if (Status status = FindVersions(job_.families[family], live_[family]); !status.ok()) return status;
      if (Status status = Write(family, versions_); !status.ok()) return status;
    }
    return result_.tables.empty() ? Status::OK() : Persist();
  }

  // Steps 3 to 5 for entries of one family that the caller has chosen.
  Status RunChosen(uint32_t family, const std::vector<Copied>& entries) {
    Status status = Write(family, entries);
    return status.ok() && !result_.tables.empty() ? Persist() : status;
  }

 private:
  struct Writer {
    Segment* segment = nullptr;
    uint64_t tail = 0;
    size_t number = 0;  // the position of the segment in result_.copies
  };

  // Step 1. Collects the segment's entries that are not marked dead or moved. If the segment has damage or an unknown family, the
  // found entries are removed again, and the segment is excluded from relocation.
  void FindLive(Segment* segment) {
    std::vector<size_t> before;
    for (const auto& live : live_) before.push_back(live.size());
    bool is_known = true;
    LogReader reader(*segment, segment->sealed_bytes());
    while (const LogEntry* entry = reader.NextTrusted()) {
      if (entry->is_obsolete()) continue;
      const uint32_t family = entry->family();
      is_known = family < live_.size() && job_.families[family].order != nullptr;
      if (!is_known) break;
      live_[family].push_back({job_.families[family].order->Prefix(entry->key()), entry, segment});
    }
    if (is_known && reader.end() == segment->sealed_bytes()) return;
    for (size_t family = 0; family < live_.size(); ++family) live_[family].resize(before[family]);
    segment->stays.store(true, std::memory_order_relaxed);
  }

  bool Stopped(size_t turn) const {
    return turn % kEntriesPerStop == 0 && job_.stop != nullptr && job_.stop->load(std::memory_order_acquire);
  }

  // Step 2. The live entries are sorted, so equal keys are neighbours, and the searches in the last level ascend. Entries are
  // prefetched before the search compares their keys.
  Status FindVersions(const RelocationJob::Family& family, const std::vector<Found>& live) {
    const std::unique_ptr<EntryCursor> cursor = family.last_level->NewCursor();
    size_t fetched = 0;
    for (size_t begin = 0; begin < live.size();) {
      if (Stopped(begin)) return Status::Aborted("stopped");
      size_t end = begin + 1;
      while (end < live.size() && live[end].prefix == live[begin].prefix &&
             family.order->Compare(live[end].entry->key(), live[begin].entry->key()) == 0) {
        ++end;
      }
      for (; fetched < std::min(live.size(), end + 2 * kEntriesAhead); ++fetched) {
        FetchEntry(live[fetched].entry);
        if (fetched >= kEntriesAhead) FetchEntryEnd(live[fetched - kEntriesAhead].entry);
      }
      FindKey(*family.order, cursor.get(), {&live[begin], end - begin});
      if (job_.regions->damage_seen()) return RegionSet::DamagedList();
      begin = end;
    }
    return Status::OK();
  }

  // Appends the versions of one key in the last level, from the newest down to the oldest entry of `live`. If one of `live` is
  // not found or a version is damaged, appends none and excludes the segments of `live`.
  void FindKey(const KeyOrder& order, EntryCursor* cursor, std::span<const Found> live) {
    const size_t taken = versions_.size();
    const Slice key = live.front().entry->key();
    size_t next = 0;
    for (cursor->Seek(SearchKey(live.front().prefix, key, kMaxSequence));; cursor->Next()) {
      const LogEntry* const entry = cursor->entry();
      if (entry == nullptr || (cursor->knows_prefixes() && cursor->prefix() != live.front().prefix)) break;
      if (!IsSound(entry) || (entry != live[next].entry && order.Compare(entry->key(), key) != 0)) break;
      versions_.push_back({entry, entry->type(), entry->value()});
      next += entry == live[next].entry;
      if (next == live.size()) return;
    }
    versions_.resize(taken);
    for (const Found& found : live) found.segment->stays.store(true, std::memory_order_relaxed);
  }

  // The checksum is verified, because a copy gets a new checksum and would hide damage.
  bool IsSound(const LogEntry* entry) const {
    const PmPtr place = job_.regions->Find(entry);
    const Segment* const segment = place ? job_.segments->Find(place) : nullptr;
    return segment != nullptr && LogReader(*segment, segment->capacity()).ValidAt(segment->OffsetOf(place));
  }

  // Steps 3 and 4 for one family.
  Status Write(uint32_t family, const std::vector<Copied>& entries) {
    if (entries.empty()) return Status::OK();
    auto table = std::make_shared<PmTable>(kRelocationId, job_.families[family].boundary, job_.regions,
                                           job_.families[family].order, family);
    result_.moves.reserve(result_.moves.size() + entries.size());
    ListBuilder builder(job_.regions, table.get());
    const KeyOrder& order = *job_.families[family].order;
    auto in_order = std::make_shared<TableOrder>(entries.size(), job_.heap);
    const uint64_t bytes_before = result_.bytes;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (Stopped(i)) return Status::Aborted("stopped");
      if (i + kEntriesAhead < entries.size()) Prefetch(entries[i + kEntriesAhead].from);
      PmPtr copy;
      if (Status status = Copy(entries[i], &copy); !status.ok()) return status;
      builder.Append(job_.regions->Resolve<LogEntry>(copy), copy);
      const bool is_older = i > 0 && order.Same(entries[i - 1].from->key(), entries[i].from->key());
      // L0 tables and the last level may have the same versions, so no key prefix counts as the whole key.
      in_order->Append(order.Prefix(entries[i].from->key()), copy, is_older, false);
      result_.moves.push_back({entries[i].from, copy});
    }
    builder.Finish();
    table->checkpointed.store(true, std::memory_order_relaxed);
    table->log_bytes = result_.bytes - bytes_before;
    if (!in_order->Finish(*job_.regions, order)) in_order.reset();
    result_.tables.push_back({std::move(table), std::move(in_order)});
    return Status::OK();
  }

  // Appends one copy to the open copy segment of the original's region. A merge replaces an original only by a copy with the same
  // height in the same region. kByFilter is kept only if the type is unchanged.
  Status Copy(const Copied& what, PmPtr* copy) {
    const LogEntry& entry = *what.from;
    const uint32_t region = job_.regions->Find(&entry).region();
    const uint64_t size = LogEntrySize(entry.height(), entry.key_size(), what.value.size());
    Writer& writer = writers_[region];
    uint64_t offset = NextEntryOffset(writer.tail);
    if (writer.segment == nullptr || offset + size > writer.segment->capacity()) {
      result_.copies.reserve(result_.copies.size() + 1);
      streamed_.emplace_back();
      writer.number = result_.copies.size();
      if (writer.segment != nullptr) writer.segment->packed.store(true, std::memory_order_relaxed);
      Status status = job_.segments->AllocateCopies(region, size, &writer.segment);
      if (!status.ok()) return status;
      result_.copies.push_back(writer.segment);
      offset = 0;
    }
    Segment* const segment = writer.segment;
    const LogUpdate update{what.type, entry.key(), what.value, entry.height(), entry.family()};
    const uint64_t flags = entry.tag & (what.type == entry.type() ? LogEntry::kCopy | LogEntry::kByFilter : LogEntry::kCopy);
    LogWriter::Streamed streamed;
    writer.tail = LogWriter::WriteEntry({segment, offset, size, false}, offset, entry.sequence(), flags, update,
                                        job_.regions->persistence()->streams_lines() ? &streamed : nullptr);
    if (streamed.begin != nullptr) streamed_[writer.number].push_back(streamed);
    segment->entries.fetch_add(1, std::memory_order_relaxed);
    segment->used_bytes.store(writer.tail, std::memory_order_relaxed);
    segment->last_sequence.store(std::max(segment->last_sequence.load(std::memory_order_relaxed), entry.sequence()),
                                 std::memory_order_relaxed);
    result_.bytes += LogSpace(offset, size);
    *copy = segment->ptr(offset);
    return Status::OK();
  }

  // Step 5. One fence covers all segments. The segments are sealed only after the MANIFEST lists the tables, so an open can tell
  // listed copies from unlisted ones by the MANIFEST alone.
  Status Persist() {
    Persistence* const persistence = job_.regions->persistence();
    for (size_t i = 0; i < result_.copies.size(); ++i) {
      const Segment* const segment = result_.copies[i];
      const uint64_t bytes = segment->used_bytes.load(std::memory_order_relaxed);
      if (!BRAIDDB_MUTANT("copies-not-flushed")) {
        uint8_t* flushed = segment->data();  // all before this address
        for (const LogWriter::Streamed& streamed : streamed_[i]) {
          persistence->Flush(flushed, static_cast<size_t>(streamed.begin - flushed));
          flushed = streamed.end;
        }
        persistence->Flush(flushed, static_cast<size_t>(segment->data() + bytes - flushed));
      }
      result_.flushed_lines += bytes / kCacheLine + 1;
    }
    // ORDER: the copies and their pointers before the MANIFEST that lists their table. [CC-47]
    return BRAIDDB_MUTANT("copies-not-fenced") || persistence->Drain() ? Status::OK() : persistence->error();
  }

  const RelocationJob& job_;
  Relocation& result_;
  FoundByFamily live_;
  std::vector<Copied> versions_;                            // of one family, in entry order
  std::vector<Writer> writers_;                             // by region
  std::vector<std::vector<LogWriter::Streamed>> streamed_;  // of each of result_.copies, ascending
};

}  // namespace

// Greedy choice: relocates the sparsest segments until the log is within the limits. A segment that copies have filled counts by
// its used bytes, since copying it again would free nothing. Copies stay in their region, so the gain is checked per region: the
// freed capacity must exceed the copied bytes and the last, partly filled, segment of copies.
std::vector<Segment*> ChooseSparseSegments(const SegmentAllocator& segments, const SpaceLimits& limits) {
  std::vector<Sparse> candidates;
  uint64_t live = 0;
  uint64_t space = 0;
  segments.ForEachLog([&](Segment* segment) {
    const uint64_t entries = segment->entries.load(std::memory_order_relaxed);
    // Segments without entries are not counted yet, or are about to be released. Segments with only dead entries will be
    // released.
    if (segment->stays.load(std::memory_order_relaxed)) return;
    if (limits.copies_only && !segment->holds_copies.load(std::memory_order_relaxed)) return;
    if (segment->state() != SegmentState::kSealed || segment->sealed_last_sequence() >= limits.boundary ||
        segment->dead_entries.load(std::memory_order_relaxed) >= entries) {
      return;
    }
    const uint64_t bytes = segment->sealed_bytes();
    const Sparse sparse{segment, bytes - std::min(bytes, segment->dead_bytes.load(std::memory_order_relaxed)),
                        segment->packed.load(std::memory_order_relaxed) ? std::max<uint64_t>(1, bytes) : segment->capacity()};
    live += sparse.live;
    space += sparse.space;
    if (sparse.fill() < kDense) candidates.push_back(sparse);
  });
  const uint64_t allowed = static_cast<uint64_t>(static_cast<double>(live) * limits.amplification) + limits.slack;
  if (space <= allowed) return {};
  std::sort(candidates.begin(), candidates.end(), [](const Sparse& a, const Sparse& b) { return a.fill() < b.fill(); });
  struct Gain {
    uint64_t freed = 0;
    uint64_t copied = 0;
    uint64_t largest = 0;
  };
  std::vector<Gain> gains(kMaxRegions);  // by region, because copies stay in their region
  uint64_t copied = 0;
  size_t count = 0;
  while (count < candidates.size() && space > allowed && (count == 0 || copied < limits.most_copied)) {
    const Sparse& sparse = candidates[count++];
    Gain& gain = gains[sparse.segment->region()];
    gain.freed += sparse.segment->capacity();
    gain.copied += sparse.live;
    gain.largest = std::max(gain.largest, sparse.segment->capacity());
    copied += sparse.live;
    space -= sparse.space - sparse.live;
  }
  std::vector<Segment*> result;
  for (size_t i = 0; i < count; ++i) {
    // The last segment of copies is only partly full.
    const Gain& gain = gains[candidates[i].segment->region()];
    if (gain.freed > gain.copied + gain.largest) result.push_back(candidates[i].segment);
  }
  return result;
}

// Must not throw, because it runs while an error is handled. A segment that could not be discarded stays in state kCopies, and
// the next open discards it.
void DiscardCopies(SegmentAllocator* segments, Relocation* relocation) noexcept {
  try {
    for (Segment* segment : relocation->copies) {
      Status ignored = segments->Discard(segment);  // after a failure the next open discards it
      (void)ignored;
    }
  } catch (const std::bad_alloc&) {
  }
  relocation->copies.clear();
  relocation->moves.clear();
  relocation->tables.clear();
  relocation->bytes = 0;
}

namespace {

template <class Work>
Status MakeCopies(const RelocationJob& job, Relocation* result, const Work& work) {
  Copier copier(job, result);
  Status status;
  try {
    status = work(&copier);
  } catch (const std::bad_alloc&) {
    status = Status::MemoryLimit("no DRAM for a relocation");
  }
  if (!status.ok()) DiscardCopies(job.segments, result);
  return status;
}

}  // namespace

Status CopyLiveEntries(const RelocationJob& job, const std::vector<Segment*>& from, Relocation* result) {
  return MakeCopies(job, result, [&from](Copier* copier) { return copier->Run(from); });
}

Status WriteCopies(const RelocationJob& job, uint32_t family, const std::vector<Copied>& entries, Relocation* result) {
  return MakeCopies(job, result, [&](Copier* copier) { return copier->RunChosen(family, entries); });
}

// Persists used bytes and last sequence number of each segment. A crash between two segments is harmless: the MANIFEST lists the
// tables, so the next open seals the rest (FinishRelocation).
Status SealCopies(SegmentAllocator* segments, const std::vector<Segment*>& copies) {
  for (Segment* segment : copies) {
    Status status = segments->Seal(segment, segment->used_bytes.load(std::memory_order_relaxed),
                                   segment->last_sequence.load(std::memory_order_relaxed));
    if (!status.ok()) return status;
  }
  return Status::OK();
}

// Called with each kCopies segment that a crash left. If no table lists the copies, the segments are discarded. Otherwise each
// segment's used bytes and last sequence number are read from its entries, and the segment is sealed.
Status FinishRelocation(SegmentAllocator* segments, bool is_listed) {
  std::vector<Segment*> copies;
  segments->ForEachCopies([&copies](Segment* segment) { copies.push_back(segment); });
  for (Segment* segment : copies) {
    if (!is_listed && !BRAIDDB_MUTANT("copies-not-discarded")) {
      if (Status status = segments->Discard(segment); !status.ok()) return status;
      continue;
    }
    LogReader reader(*segment, segment->capacity());
    uint64_t last_sequence = 0;
    while (const LogEntry* entry = reader.NextValid()) last_sequence = std::max(last_sequence, entry->sequence());
    reader.LimitHashing(LogReader::kHashedPerByte * segment->capacity());
    // All copies of a listed table are durable. A valid entry behind an invalid one therefore means damage.
    if (is_listed && reader.FindValid(NextEntryOffset(reader.end())) != UINT64_MAX) {
      return Status::Corruption("region " + std::to_string(segment->region()) + ": a segment of copies is damaged at byte " +
                                std::to_string(reader.end()) +
                                "; restore the database from a copy, or save what is intact with braiddb repair");
    }
    segment->used_bytes.store(reader.end(), std::memory_order_relaxed);
    segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
  }
  return is_listed || BRAIDDB_MUTANT("copies-not-discarded") ? SealCopies(segments, copies) : Status::OK();
}

}  // namespace braiddb
