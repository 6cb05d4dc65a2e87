#include "recovery/replay.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "compaction/list_builder.h"
#include "log/entry_sort.h"
#include "log/log_reader.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

// Far more writes than can lie between two checkpoints.
constexpr uint64_t kMostUnflushedWrites = uint64_t{1} << 36;

struct Found {
  uint64_t prefix;
  LogEntry* entry;
  PmPtr pointer;
};

class Replayer {
 public:
  explicit Replayer(const ReplayContext& context)
      : context_(context), found_(context.threads, FamiliesFound(context.orders.size())) {}

  Status Run(ReplayResult* result) {
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

  Status ScanSegment(Segment* segment, FamiliesFound* found) {
    const bool sealed = segment->state() == SegmentState::kSealed;
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
    segment->used_bytes.store(reader.end(), std::memory_order_relaxed);
    segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
    bytes_.fetch_add(reader.end());
    if (BRAIDDB_MUTANT("sequence-not-restored")) return Status::OK();
    Raise(&last_sequence_, last_sequence);
    Raise(&last_update_, last_update);
    return Status::OK();
  }

  // The database itself deletes records of ranges, and writes all records of prepared transactions.
  bool IsUsers(const LogEntry& entry) const {
    const uint32_t family = entry.family();
    if (family == 0) return true;
    if (family == context_.range_family) return entry.type() == EntryType::kPut;
    return family != context_.prepared_family;
  }

  static void Raise(std::atomic<uint64_t>* number, uint64_t to) {
    uint64_t known = number->load();
    while (known < to && !number->compare_exchange_weak(known, to)) {
    }
  }

  // Whether the valid entries of an open segment end where a crash may have ended them. A write of more than a quarter of a
  // segment has one of its own: so what follows a damaged entry is not farther away.
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
    // What was written without WriteOptions::sync may be lost in any order when the operating system goes down.
    if (context_.may_lose_writes) {
      if (context_.progress) context_.progress("replay: " + what + " and are not replayed");
      return Status::OK();
    }
    return Status::Corruption(what + "; restore the database from a copy, or save what is intact with braiddb repair");
  }

  // Prefixes that cut the entries into about equal ranges; entries with equal prefixes stay together.
  std::vector<uint64_t> ChooseSplitters(uint32_t family) const {
    std::vector<uint64_t> samples;
    for (const FamiliesFound& all : found_) {
      const std::vector<Found>& found = all[family];
      for (size_t i = 0; i < found.size(); i += 1 + found.size() / 256) samples.push_back(found[i].prefix);
    }
    std::sort(samples.begin(), samples.end());
    std::vector<uint64_t> splitters;
    for (uint32_t i = 1; i < context_.threads; ++i) splitters.push_back(samples[samples.size() * i / context_.threads]);
    return splitters;
  }

  void BuildTable(uint32_t family, ReplayResult* result) {
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

  // After a crash there are no snapshots: only the newest version of a key is linked, and what that is applied to.
  void LinkRange(const KeyOrder& order, std::vector<Found>* range, ListBuilder* builder) const {
    SortEntries(order, range->begin(), range->end());
    constexpr size_t kAhead = 24;
    const Found* last = nullptr;  // that was linked
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

  Status SealOpenSegments() {
    Persistence* const persistence = context_.regions->persistence();
    for (const Segment* segment : segments_) {
      if (segment->state() == SegmentState::kOpen && !BRAIDDB_MUTANT("found-log-not-flushed"))
        persistence->Flush(segment->data(), segment->used_bytes.load());
    }
    // ORDER: what was found in them before the size that says so. [CC-46]
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

  const ReplayContext& context_;
  std::vector<Segment*> segments_;
  std::vector<FamiliesFound> found_;  // by thread
  std::atomic<size_t> next_segment_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> searched_{0};
  std::atomic<uint64_t> last_sequence_{0};
  std::atomic<uint64_t> last_update_{0};
  std::mutex mutex_;
  Status status_;
};

}  // namespace

Status ReplayLog(const ReplayContext& context, ReplayResult* result) { return Replayer(context).Run(result); }

}  // namespace braiddb
