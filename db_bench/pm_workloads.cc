// The limits of the memory itself, to compare the engine with. Records have the size and the alignment that the engine gives to
// --key_size and --value_size.
//
// pmappend           Each thread appends records; each record is stored, flushed, and fenced. The memory is touched before, so no
//                    page faults are measured.
// pmappendstream     The same with non-temporal stores, and one fence per record.
// pmread             Each thread follows a chain through --num records in random order and copies each value. The address of a
//                    record is stored in its predecessor. This is the latency of one lookup that goes straight to its entry.
// pmreadindependent  The same records in the same order. Their addresses are known in advance, so the CPU reads several at once.
//
// The engine may be faster than the chain and the flushes, because it reads several entries at once and uses non-temporal stores.
// pmreadindependent is the limit of lookups, and the faster append is the limit of writes. All benchmarks use segments of their
// own region set beside the database, with the same persist mode and injected latencies.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "db_bench/workloads.h"
#include "log/log_entry.h"
#include "log/log_writer.h"
#include "pmem/append_probe.h"
#include "pmem/persistence.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/file.h"
#include "util/spin.h"

namespace braiddb::bench {

namespace {

// A thread wraps around in its share of this memory. It is far larger than any cache, so wrapping has no effect.
constexpr uint64_t kAppendBytes = 1ull << 30;

uint64_t RecordSize(const Flags& flags, uint32_t height) { return LogEntrySize(height, flags.key_size, flags.value_size); }

// The regions and segments. The destructor removes them with their files.
class Scratch {
 public:
  explicit Scratch(const Flags& flags) : segment_size_(flags.options.segment_size) {
    const std::string path = flags.db.substr(0, flags.db.find_last_not_of('/') + 1) + ".pm";
    options_.database_path = path;
    for (const std::string& region_path : flags.options.region_paths) options_.region_paths.push_back(region_path + "/bench.pm");
    options_.regions = flags.options.regions;
    options_.max_region_size = flags.options.max_region_size;
    options_.persist_mode = flags.options.persist_mode;
    options_.emulation = flags.options.emulation;
    directories_ = options_.region_paths;
    directories_.push_back(path);
    for (const std::string& directory : directories_) ExitOnError(CreateDir(directory), "pm scratch");
    ExitOnError(RegionSet::Destroy(options_), "pm scratch");  // remains of a killed run
    ExitOnError(RegionSet::Create(options_, &regions_), "pm scratch");
    ExitOnError(SegmentAllocator::Open(regions_.get(), segment_size_, &segments_), "pm scratch");
  }

  ~Scratch() {
    segments_.reset();
    regions_.reset();
    (void)RegionSet::Destroy(options_);
    for (const std::string& directory : directories_) (void)RemoveDir(directory);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  RegionSet* regions() const { return regions_.get(); }

  // Returns a touched segment. Ends the process if no space is left.
  Segment* NewSegment(uint32_t region, uint64_t min_bytes) {
    Segment* segment = nullptr;
    ExitOnError(segments_->Allocate(region, min_bytes, &segment), "pm scratch");
    std::memset(segment->data(), 0, segment->capacity());
    return segment;
  }

 private:
  RegionSetOptions options_;
  const uint64_t segment_size_;
  std::vector<std::string> directories_;
  std::unique_ptr<RegionSet> regions_;
  std::unique_ptr<SegmentAllocator> segments_;
};

// Places records one after the other in segments of one region, as the engine's log does.
class Cursor {
 public:
  // Each segment has room for at least one record of `record_bytes`.
  Cursor(Scratch* scratch, uint32_t region, uint64_t record_bytes)
      : scratch_(scratch), region_(region), record_bytes_(record_bytes) {
    AddSegment();
  }

  uint64_t capacity() const { return capacity_; }
  void AddSegment() {
    segments_.push_back(scratch_->NewSegment(region_, record_bytes_));
    capacity_ += segments_.back()->capacity();
  }

  bool IsFull(uint64_t bytes) const { return current_ + 1 == segments_.size() && !Fits(bytes); }
  // When full, continues at the start of the first segment.
  PmPtr Place(uint64_t bytes) {
    if (!Fits(bytes)) {
      current_ = (current_ + 1) % segments_.size();
      end_ = 0;
    }
    const uint64_t offset = NextEntryOffset(end_);
    end_ = offset + bytes;
    return segments_[current_]->ptr(offset);
  }

 private:
  bool Fits(uint64_t bytes) const { return NextEntryOffset(end_) + bytes <= segments_[current_]->capacity(); }

  Scratch* const scratch_;
  const uint32_t region_;
  const uint64_t record_bytes_;
  std::vector<Segment*> segments_;
  uint64_t capacity_ = 0;
  size_t current_ = 0;
  uint64_t end_ = 0;
};

// Copies a record to `to` and makes it durable.
bool AppendFlushed(Persistence* persistence, uint8_t* to, const std::string& record, uint64_t bytes) {
  std::memcpy(to, record.data(), bytes);
  return persistence->Persist(to, bytes);
}
// `flushes`: also flush. Needed in page mode, where a fence alone does not make streamed stores durable, and if lines are
// charged.
bool AppendStreamed(Persistence* persistence, uint8_t* to, const std::string& record, uint64_t bytes, bool flushes) {
  StreamWords(to, record.data(), bytes);
  if (flushes) persistence->Flush(to, bytes);
  return persistence->Drain();
}

class PmAppend {
 public:
  PmAppend(const Flags& flags, bool streams) : scratch_(flags), streams_(streams) {
    const uint64_t largest = RecordSize(flags, kMaxHeight);
    const uint64_t needed = flags.Writes() * RecordSize(flags, 2);
    const uint64_t share = std::min(needed, kAppendBytes / flags.threads);
    for (uint32_t i = 0; i < flags.threads; ++i) {
      cursors_.emplace_back(&scratch_, i % scratch_.regions()->count(), largest);
      while (cursors_.back().capacity() < share) cursors_.back().AddSegment();
    }
  }

  void Run(Worker* worker) {
    const Flags& flags = worker->flags;
    RegionSet* regions = scratch_.regions();
    Persistence* persistence = regions->persistence();
    Cursor& cursor = cursors_[worker->id];
    const std::string record(RecordSize(flags, kMaxHeight), 'r');
    const bool flushes = persistence->mode() == PersistMode::kPage || flags.options.emulation.write_latency_ns > 0;
    OpLimit limit = worker->Limit(flags.Writes());
    while (!limit.Done()) {
      const uint64_t bytes = RecordSize(flags, RandomHeight(worker->random.Next()));
      auto* target = regions->Resolve<uint8_t>(cursor.Place(bytes));
      const bool durable = streams_ ? AppendStreamed(persistence, target, record, bytes, flushes)
                                    : AppendFlushed(persistence, target, record, bytes);
      if (!durable) ExitOnError(persistence->error(), "pmappend");
      worker->stats.FinishedOps(1, Operation::kWrite);
    }
    worker->stats.AddBytes(worker->stats.done() * (flags.key_size + flags.value_size));
  }

 private:
  Scratch scratch_;
  const bool streams_;
  std::vector<Cursor> cursors_;
};

class PmRead {
 public:
  PmRead(const Flags& flags, bool chained) : scratch_(flags), chained_(chained), records_(static_cast<size_t>(flags.num)) {
    RegionSet* regions = scratch_.regions();
    Random random(flags.seed);
    std::vector<Cursor> cursors;
    for (uint32_t region = 0; region < regions->count(); ++region) {
      cursors.emplace_back(&scratch_, region, RecordSize(flags, kMaxHeight));
    }
    for (size_t i = 0; i < records_.size(); ++i) {
      const uint32_t height = RandomHeight(random.Next());
      const uint64_t bytes = RecordSize(flags, height);
      Cursor& cursor = cursors[i % cursors.size()];
      if (cursor.IsFull(bytes)) cursor.AddSegment();
      records_[i] = cursor.Place(bytes);
      auto* entry = regions->Resolve<LogEntry>(records_[i]);
      entry->value_size = static_cast<uint32_t>(flags.value_size);
      entry->shape = LogEntry::MakeShape(static_cast<uint32_t>(flags.key_size), height, 0);
    }
    for (size_t i = records_.size(); i > 1; --i) std::swap(records_[i - 1], records_[random.Uniform(i)]);
    for (size_t i = 0; i < records_.size(); ++i) {
      regions->Resolve<LogEntry>(records_[i])->next[0] = records_[(i + 1) % records_.size()].raw();
    }
  }

  void Run(Worker* worker) {
    const Flags& flags = worker->flags;
    RegionSet* regions = scratch_.regions();
    const uint32_t latency_ns = regions->persistence()->read_latency_ns();
    OpLimit limit = worker->Limit(flags.Reads());
    std::string value(flags.value_size, '\0');
    // The chains start at different records, so that no thread warms the cache for another.
    size_t index = records_.size() / flags.threads * worker->id;
    PmPtr at = records_[index];
    while (!limit.Done()) {
      const auto* entry = regions->Resolve<LogEntry>(at);
      if (latency_ns > 0) SpinFor(latency_ns);
      if (chained_) {
        at = entry->Next(0);
      } else {
        index = index + 1 == records_.size() ? 0 : index + 1;
        at = records_[index];
      }
      std::memcpy(value.data(), entry->value().data(), value.size());
      asm volatile("" : : "r"(value.data()) : "memory");  // keeps the compiler from omitting the copy
      worker->stats.FinishedOps(1, Operation::kRead);
    }
    worker->stats.AddBytes(worker->stats.done() * (flags.key_size + flags.value_size));
  }

 private:
  Scratch scratch_;
  const bool chained_;
  std::vector<PmPtr> records_;  // in chain order
};

}  // namespace

namespace {

template <class Limits>
Body Prepare(const Flags& flags, bool how) {
  return [limits = std::make_shared<Limits>(flags, how)](Worker* worker) { limits->Run(worker); };
}

}  // namespace

Body PreparePmAppend(const Flags& flags) { return Prepare<PmAppend>(flags, false); }
Body PreparePmAppendStream(const Flags& flags) { return Prepare<PmAppend>(flags, true); }
Body PreparePmRead(const Flags& flags) { return Prepare<PmRead>(flags, true); }
Body PreparePmReadIndependent(const Flags& flags) { return Prepare<PmRead>(flags, false); }

}  // namespace braiddb::bench
