#include "recovery/replay.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "compaction/list_builder.h"
#include "log/entry_sort.h"
#include "log/log_reader.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

// The steps of ReplayLog (replay.h).
//
// DATA FLOW  segments_ ──ScanSegment──► found_[thread][family] ──ChooseSplitters──► key ranges ──LinkRange──► a list per range
//                                                                                               ──Join──► one table per family
// WHY A PREFIX IS ENOUGH   A thread owns its segment and commits its writes in order, each behind a fence. So behind the first
//            invalid entry of an open segment there is no acknowledged write. [CC-6]
// WHY ENTRIES BELOW THE BOUNDARY ARE SKIPPED   A checkpoint has made their tables durable, and the MANIFEST lists these. A
//            segment may have entries on both sides of the boundary.
// WHY POINTERS MAY BE STORED   An entry behind the boundary is in no listed table, so no reader and no other recovery uses its
//            next words. They are overwritten here, and count when the checkpoint lists the table. [CC-3]
// LOCKS      None while scanning and linking: each thread has its own lists. mutex_ guards the error only.
// A bound of the sequence numbers behind the boundary, far above the number of writes between two checkpoints. It limits the
// search behind the end of a segment to plausible entries.
constexpr uint64_t kMostUnflushedWrites = uint64_t{1} << 36;

// An entry to replay.
struct Found {
  uint64_t prefix;
  LogEntry* entry;
  PmPtr pointer;
};

class Replayer {
 public:
  // The steps of ReplayLog. `threads`: each has its own lists of found entries, so scanning takes no lock.
  explicit Replayer(const ReplayContext& context)
      : context_(context), found_(context.threads, FamiliesFound(context.orders.size())) {}

  // Steps 1 to 4 in order. An error ends the run: pointers that were stored are in entries that no list reaches.
  Status Run(ReplayResult* result) {
    BRAIDDB_DCHECK(context_.threads > 0);
    context_.segments->ForEachLog([this](Segment* segment) {
      if (segment->state() == SegmentState::kOpen || segment->sealed_last_sequence() >= context_.log_boundary) {
        segments_.push_back(segment);
      }
    });
    RunParallel(context_.threads, [this](uint32_t thread) { ScanSegments(thread); });
    if (!status_.ok()) return status_;
    result->bytes = bytes_.load();
    result->searched = searched_.load();
    result->last_sequence = last_sequence_.load();
    result->last_update = last_update_.load();
    for (size_t family = 0; family < context_.orders.size(); ++family) {
      uint64_t entries = 0;
      for (const FamiliesFound& found : found_) entries += found[family].size();
      if (entries > 0) BuildTable(static_cast<uint32_t>(family), result);
      result->entries += entries;
    }
    if (!result->tables.empty()) AddExtents(result->tables.front().get());
    return SealOpenSegments();
  }

 private:
  using FamiliesFound = std::vector<std::vector<Found>>;  // by family

  // Step 2, for one thread. After an error of another thread it continues; the run then ends with the error.
  void ScanSegments(uint32_t thread) {
    for (size_t i = next_segment_.fetch_add(1); i < segments_.size(); i = next_segment_.fetch_add(1)) {
      Segment* segment = segments_[i];
      Status status = ScanSegment(segment, &found_[thread]);
      if (!status.ok()) {
        std::lock_guard lock(mutex_);
        status_ = status;
      }
      if (context_.progress && (i + 1) % 64 == 0) {
        context_.progress("replay: " + std::to_string(i + 1) + " of " + std::to_string(segments_.size()) + " segments scanned");
      }
    }
  }

  // Collects the entries of one segment. Every valid entry counts for the largest sequence numbers, also below the boundary:
  // new writes must not reuse a number.
  //
  // A sealed segment has a recorded end, so an entry that is invalid before it is damage. An open segment has none: its valid
  // prefix is what the crash has left, and CheckEnd looks for damage behind it.
  Status ScanSegment(Segment* segment, FamiliesFound* found) {
    const bool sealed = segment->state() == SegmentState::kSealed;
    BRAIDDB_DCHECK(sealed || segment->state() == SegmentState::kOpen);
    LogReader reader(*segment, sealed ? segment->sealed_bytes() : segment->capacity());
    uint64_t entries = 0;
    uint64_t last_sequence = 0;
    uint64_t last_update = 0;
    while (const LogEntry* valid = reader.NextValid()) {
      ++entries;
      const uint64_t sequence = valid->sequence();
      last_sequence = std::max(last_sequence, sequence);
      if (IsUsers(*valid)) last_update = std::max(last_update, sequence);
      if (sequence < context_.log_boundary) continue;
      auto* entry = const_cast<LogEntry*>(valid);
      const uint32_t family = entry->family();
      if (__builtin_expect(family >= context_.orders.size() || context_.orders[family] == nullptr, 0)) {
        ListBuilder::Drop(entry);
        continue;
      }
      (*found)[family].push_back({context_.orders[family]->Prefix(entry->key()), entry, segment->ptr(reader.entry_offset())});
    }
    if (sealed && reader.end() != segment->sealed_bytes()) {
      return Status::Corruption("region " + std::to_string(segment->region()) + ": a sealed segment is damaged at byte " +
                                std::to_string(reader.end()) + "; restore the database from a copy");
    }
    if (!sealed) {
      reader.LimitSequence(std::max(last_sequence, context_.log_boundary) + kMostUnflushedWrites);
      reader.LimitHashing(LogReader::kHashedPerByte * segment->capacity());
      if (Status status = CheckEnd(*segment, reader); !status.ok()) return status;
    }
    BRAIDDB_DCHECK(reader.end() <= segment->capacity());
    segment->used_bytes.store(reader.end(), std::memory_order_relaxed);
    segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
    bytes_.fetch_add(reader.end());
    if (BRAIDDB_MUTANT("sequence-not-restored")) return Status::OK();
    Raise(&last_sequence_, last_sequence);
    Raise(&last_update_, last_update);
    return Status::OK();
  }

  // Returns true if a user's write made the entry. The database itself deletes range tombstones, and writes all entries of
  // prepared transactions.
  bool IsUsers(const LogEntry& entry) const {
    const uint32_t family = entry.family();
    if (family == 0) return true;
    if (family == context_.range_family) return entry.type() == EntryType::kPut;
    return family != context_.prepared_family;
  }

  // Raises *number to at least `to`.
  static void Raise(std::atomic<uint64_t>* number, uint64_t to) {
    uint64_t known = number->load();
    while (known < to && !number->compare_exchange_weak(known, to)) {
    }
  }

  // Corruption: the valid prefix of an open segment ends at damage, and not where a crash may have cut it. A write of more than
  // a quarter of a segment has a segment of its own, so the write behind a damaged one begins within that distance.
  Status CheckEnd(const Segment& segment, const LogReader& reader) {
    const uint64_t behind = reader.FindWholeWrite(reader.end(), reader.end() + segment.capacity() / 4 + kCacheLine);
    searched_.fetch_add(reader.hashed_bytes());
    if (reader.hashing_ended() && context_.progress) {
      context_.progress("replay: region " + std::to_string(segment.region()) + ": too many bytes behind byte " +
                        std::to_string(reader.end()) + " of a segment look like log entries; they are not searched for damage");
    }
    if (behind == UINT64_MAX) return Status::OK();
    const std::string what = "region " + std::to_string(segment.region()) + ": log entries are damaged at byte " +
                             std::to_string(reader.end()) + " of a segment; intact ones lie behind";
    // When the operating system fails, writes without WriteOptions::sync may be lost in any order.
    if (context_.may_lose_writes) {
      if (context_.progress) context_.progress("replay: " + what + " and are not replayed");
      return Status::OK();
    }
    return Status::Corruption(what + "; restore the database from a copy, or save what is intact with braiddb repair");
  }

  // Returns prefixes that divide the entries of a family into about equal ranges, by a sample. Entries with equal prefixes stay
  // in one range, so a range has all versions of its keys. REQUIRES: the family has entries.
  std::vector<uint64_t> ChooseSplitters(uint32_t family) const {
    std::vector<uint64_t> samples;
    for (const FamiliesFound& all : found_) {
      const std::vector<Found>& found = all[family];
      for (size_t i = 0; i < found.size(); i += 1 + found.size() / 256) samples.push_back(found[i].prefix);
    }
    BRAIDDB_DCHECK(!samples.empty());
    std::sort(samples.begin(), samples.end());
    std::vector<uint64_t> splitters;
    for (uint32_t i = 1; i < context_.threads; ++i) splitters.push_back(samples[samples.size() * i / context_.threads]);
    return splitters;
  }

  // Step 3, for one family. Each thread picks the entries of its range from the lists of all scanning threads.
  //
  // The lists of the ranges are joined in key order, so the table's list is sorted. The upper layers of each region are joined
  // range by range as well (ListBuilder::Join).
  void BuildTable(uint32_t family, ReplayResult* result) {
    BRAIDDB_DCHECK(context_.orders[family] != nullptr);
    const uint32_t ranges = context_.threads;
    const std::vector<uint64_t> splitters = ChooseSplitters(family);
    std::vector<std::shared_ptr<PmTable>> tables(ranges);
    std::vector<std::unique_ptr<ListBuilder>> builders(ranges);
    RunParallel(ranges, [&](uint32_t range) {
      std::vector<Found> mine;
      for (const FamiliesFound& found : found_) {
        for (const Found& f : found[family]) {
          const auto at = std::upper_bound(splitters.begin(), splitters.end(), f.prefix) - splitters.begin();
          if (at == range) mine.push_back(f);
        }
      }
      tables[range] = std::make_shared<PmTable>(context_.table_id, result->last_sequence + 1, context_.regions,
                                                context_.orders[family], family);
      builders[range] = std::make_unique<ListBuilder>(context_.regions, tables[range].get());
      LinkRange(*context_.orders[family], &mine, builders[range].get());
    });
    for (uint32_t range = 1; range < ranges; ++range) builders[0]->Join(*tables[range], *builders[range]);
    builders[0]->Finish();
    result->tables.push_back(tables[0]);
  }

  // Gives the table the log extents of all scanned segments. The checkpoint flushes these extents, and so the pointers of all
  // tables of the replay.
  void AddExtents(PmTable* table) {
    for (Segment* segment : segments_) {
      if (BRAIDDB_MUTANT("replayed-pointers-not-persisted")) break;
      auto extent = std::make_shared<LogExtent>();
      extent->segment = segment;
      extent->end.store(segment->used_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
      table->log_bytes += extent->end.load(std::memory_order_relaxed);
      table->extents.push_back(std::move(extent));
    }
  }

  // Links the entries of one range. After a restart there are no snapshots, so only the newest version of a key is linked, and
  // if that is an operand, the older versions to which it is applied. Other versions are marked dead.
  void LinkRange(const KeyOrder& order, std::vector<Found>* range, ListBuilder* builder) const {
    SortEntries(order, range->begin(), range->end());
    constexpr size_t kAhead = 24;
    const Found* last = nullptr;  // the entry that was linked last
    for (size_t i = 0; i < range->size(); ++i) {
      if (i + kAhead < range->size()) PrefetchForWrite((*range)[i + kAhead].entry);
      const Found& found = (*range)[i];
      const bool overwritten = last != nullptr && last->prefix == found.prefix &&
                               (!last->entry->is_operand() || BRAIDDB_MUTANT("operand-base-not-replayed")) &&
                               order.Compare(last->entry->key(), found.entry->key()) == 0;
      if (overwritten) {
        ListBuilder::Drop(found.entry);
      } else {
        builder->Append(found.entry, found.pointer);
        last = &found;
      }
    }
  }

  // Step 4. A segment without entries is released. CRASH in between: some segments are sealed; the others are still open.
  Status SealOpenSegments() {
    Persistence* const persistence = context_.regions->persistence();
    for (const Segment* segment : segments_) {
      if (segment->state() == SegmentState::kOpen && !BRAIDDB_MUTANT("found-log-not-flushed"))
        persistence->Flush(segment->data(), segment->used_bytes.load());
    }
    // ORDER: the entries that were found in a segment before the sealed size that covers them. [CC-46]
    if (!persistence->Drain()) return persistence->error();
    for (Segment* segment : segments_) {
      if (segment->state() != SegmentState::kOpen || BRAIDDB_MUTANT("open-segments-stay-open")) continue;
      const uint64_t bytes = segment->used_bytes.load(std::memory_order_relaxed);
      Status status = bytes == 0
                          ? context_.segments->Release(segment)
                          : context_.segments->Seal(segment, bytes, segment->last_sequence.load(std::memory_order_relaxed));
      if (!status.ok()) return status;
    }
    return Status::OK();
  }

  // Fields without an atomic or a mutex are written before threads start, or by one thread each.
  const ReplayContext& context_;
  std::vector<Segment*> segments_;
  std::vector<FamiliesFound> found_;  // by thread
  std::atomic<size_t> next_segment_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> searched_{0};
  std::atomic<uint64_t> last_sequence_{0};
  std::atomic<uint64_t> last_update_{0};
  std::mutex mutex_;  // guards status_ while threads scan
  Status status_;     // an error of a scan
};

}  // namespace

Status ReplayLog(const ReplayContext& context, ReplayResult* result) { return Replayer(context).Run(result); }

}  // namespace braiddb
