// DBImpl: a database, put together from its parts. By verb: open.cc, families.cc, write.cc, visibility.cc, read.cc, flush.cc,
// compact.cc, reclaim.cc, relocate.cc, room.cc, filter.cc, dram.cc, admin.cc; what the background threads share: background.cc.
//
// LOCKS  docs/CONCURRENCY.md has the order, and what is taken while which mutex is held.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "braiddb/db.h"
#include "cache/lookup_cache.h"
#include "compaction/flush_job.h"
#include "compaction/last_level.h"
#include "compaction/relocation.h"
#include "compaction/version_filter.h"
#include "db/cache_share.h"
#include "db/dram_budget.h"
#include "db/error_policy.h"
#include "db/event_queue.h"
#include "db/family.h"
#include "db/merge_context.h"
#include "db/snapshot_list.h"
#include "db/thread_state.h"
#include "db/write_pace.h"
#include "db/writer_pressure.h"
#include "lsm/key_filter.h"
#include "lsm/manifest.h"
#include "lsm/read_view.h"
#include "pmem/database_file.h"
#include "pmem/posix.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/arena.h"
#include "util/epoch.h"
#include "util/file.h"
#include "util/fork_guard.h"
#include "util/logger.h"
#include "util/per_thread.h"
#include "util/perf.h"

namespace braiddb {

class NewDatabase;
class RangeUpdate;
struct MetricFigures;
struct ReplayResult;

class DBImpl final : public DB {
 public:
  enum class Access : uint8_t {
    kWrite,
    kRead,
    kReadMerely,  // and if that takes a replay, an error
  };
  static constexpr uint64_t kLeastMemtableSize = 16 << 10;

  // `takes_prepared`: prepared transactions are known to whoever opens, who takes care of them; without, they are refused.
  // `handles`: may be null.
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     bool takes_prepared, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                     Access access = Access::kWrite);
  ~DBImpl() override;
  // In a child of the process that opened it nothing happens: the object is made of what belongs to the parent.
  static void operator delete(DBImpl* db, std::destroying_delete_t);
  // The memory of an object whose constructor threw. A class with a destroying delete alone would keep it.
  static void operator delete(void* memory, std::align_val_t alignment) { ::operator delete(memory, alignment); }

  Status Close() override;
  Status Put(const WriteOptions& options, Slice key, Slice value) override;
  Status Delete(const WriteOptions& options, Slice key) override;
  Status Merge(const WriteOptions& options, Slice key, Slice operand) override;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end) override;
  Status Write(const WriteOptions& options, const WriteBatch& batch) override;
  Status Get(const ReadOptions& options, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override;
  Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) override;
  Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override;
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            std::unique_ptr<ColumnFamilyHandle>* handle) override;
  Status DropColumnFamily(ColumnFamilyHandle* family) override;
  Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_handle_.get(); }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) override;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                      const Slice* end) override;
  bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) override;
  Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) override;
  Status SetOptions(ColumnFamilyHandle* family, const ChangedOptions& changed) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  Status Flush() override;
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) override;
  Status WaitForCompaction() override;
  bool GetProperty(std::string_view property, std::string* value) override;
  bool GetIntProperty(std::string_view property, uint64_t* value) override;
  Statistics GetStatistics() const override;
  bool GetHistograms(Histograms* histograms) const override;
  Metrics GetMetrics() const override;
  uint64_t GetLatestSequenceNumber() const override;
  Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) override;
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override;
  const Options& GetOptions() const override { return options_; }
  const std::string& GetName() const override { return path_; }

  // As CreateColumnFamily, GetColumnFamilies and Write, but also for the hidden family of prepared transactions
  // (hidden_family.h). For code of the library that uses this family or copies it.
  Status CreateAnyFamily(const ColumnFamilyOptions& options, const std::string& name,
                         std::unique_ptr<ColumnFamilyHandle>* handle);
  Status GetAllFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles);
  Status WriteToAnyFamily(const WriteOptions& options, const WriteBatch& batch);

  // For tests and tools.
  RegionSet* regions() { return regions_.get(); }
  SegmentAllocator* segments() { return segments_.get(); }

 private:
  friend class CompactionFilterJob;
  friend class DBIterator;
  friend class FamilyHandle;
  friend class LogIterator;
  friend class RangeUpdate;

  DBImpl(const Options& options, const std::string& path, Access access);

  // ---- open_read_only.cc
  bool is_read_only() const { return access_ != Access::kWrite; }
  Status FindFiles(const std::vector<ColumnFamilyDescriptor>& families);
  // Whether what recovery came upon may be there.
  Status CheckReplayed() const;
  void StartReading();
  void PrepareReads();
  Status CloseReadOnly();

  // ---- open.cc
  Status InChild() const;
  Status JudgePlace(bool* exists);
  Status CheckRegionPaths() const;
  Status NotePlace() const;
  Status OpenFiles(const std::vector<ColumnFamilyDescriptor>& families);
  Status CheckBeforeOpen(const std::vector<ColumnFamilyDescriptor>& families) const;
  Status CreateFiles();
  Status FinishCreation(bool notes_options);
  static void AbandonCreation(std::unique_ptr<DBImpl> db);
  Status CheckDramBudget() const;
  Status OpenStructures();
  Status Recover();
  Status CopyReplayed(ReplayResult* replay);
  Status OpenJournal();
  Status OpenLevels();
  Status ReleaseUnownedSegments();
  void RestoreTables();
  void StartBackground();
  // REQUIRES: families_mutex_.
  void NoteOptions() const;
  RegionSetOptions MakeRegionOptions() const;

  // ---- families.cc
  // Makes the families that the MANIFEST lists known, with the options of `descriptors`.
  Status FindFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors);
  // NotSupported if there are prepared transactions.
  Status RefusePrepared();
  // Makes those that there are not, if the options say so.
  Status CreateMissing(const std::vector<ColumnFamilyDescriptor>& descriptors);
  Status MakeFamily(const ColumnFamilyOptions& options, const std::string& name);
  // The id of a new one; 0: there is none left. REQUIRES: manifest_mutex_
  uint32_t FreeFamilyId(bool is_hidden);
  std::unique_ptr<ColumnFamilyHandle> MakeHandle(const std::string& name);
  // One whose deletion listeners are told of.
  std::unique_ptr<ColumnFamilyHandle> MakeUsersHandle(const std::string& name);
  // The handle's family; null, and an error, if it is none of this database.
  Family* FamilyOf(const ColumnFamilyHandle* handle, Status* status) const;
  // Null if there is none. Any thread.
  Family* FindFamily(uint32_t id) const { return by_id_[id].load(std::memory_order_acquire); }
  bool IsHidden(uint32_t id) const {
    if (id == 0 || id >= kMaxFamilies) return false;
    const Family* const family = FindFamily(id);
    return family != nullptr && family->is_hidden;
  }
  Family* NewFamily(uint32_t id, uint64_t number, const std::string& name, const ColumnFamilyOptions& options);
  // Null if there is none.
  std::shared_ptr<Family> FindFamilyByName(const std::string& name);
  Options LevelOptions(const ColumnFamilyOptions& options) const;
  LastLevel::Parts LevelParts(const Family& family);
  Status CommitDrop(Family* family);
  // Takes away, step by step, what dropped families have that nobody has a handle of. False: nothing to do now.
  bool PurgeFamilies();
  // Whether nobody reads it any more, and its last level is given up.
  bool HasLeft(Family* family);
  Status PurgeOneSegment();
  // Returns when a dropped family was forgotten behind the first `forgotten` times. False: that does not happen in time.
  // REQUIRES: none of the locks.
  bool WaitForPurge(uint64_t forgotten, std::chrono::steady_clock::time_point deadline);
  Status ForgetPurged();

  // ---- admin.cc
  // The default family's memtable counts the entries of all families, in portions; the others count their own.
  static uint64_t EntriesIn(const Memtable& set, const Family& family);
  bool IntProperty(const Family& family, std::string_view property, uint64_t* value);
  bool Property(const Family& family, std::string_view property, std::string* value);

  // ---- write.cc
  Status WriteSingle(const WriteOptions& options, EntryType type, uint32_t family, const Slice& key, const Slice& value);
  // The same, not inlined.
  Status WriteOne(const WriteOptions& options, EntryType type, uint32_t family, Slice key, Slice value);
  // Null if keys of the family are not in it.
  LookupCache* CacheOf(uint32_t family) const {
    return __builtin_expect(family == 0, 1) || FindFamily(family)->is_hashed ? lookup_cache_.get() : nullptr;
  }
  // Fetches the bucket of the only update of a write, and notes its hash. Before the rest of that write.
  void BeginSingle(ThreadState* thread, const LogUpdate& update);
  // Write and WriteToAnyFamily.
  template <bool kHiddenFamilies>
  Status WriteBatchTo(const WriteOptions& options, const WriteBatch& batch);
  // One attempt. `skipped`: the number of updates that were skipped since their family does not exist.
  template <bool kHiddenFamilies>
  Status TryWriteBatch(const WriteOptions& options, const WriteBatch& batch, size_t* skipped);
  template <bool kSingle, class Admission>
  Status WriteUpdates(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates, const Admission& admission);
  template <bool kSingle, class Admission>
  Status WriteAdmitted(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates,
                       const Admission& admission);
  // The same, measured.
  template <bool kSingle, class Admission>
  Status ObserveWrite(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates, const Admission& admission);
  Status WriteRanges(const WriteOptions& options, ThreadState* thread, RangeUpdate* ranges);
  Status ReserveLog(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  Status ReserveElsewhere(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  // Goes on with an announced write whose segment another thread has taken.
  template <bool kSingle, class Admission>
  Status AppendElsewhere(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t count, LogSlot* slot,
                         const Admission& admission);
  SpaceUse UseOf(std::span<const LogUpdate> updates) const;
  // Makes the entry of a single update in DRAM, and notes in the thread's insertions where it is and where it will be.
  static void StageEntry(ThreadState* thread, LogSlot* slot, uint64_t sequence, const LogUpdate& update);
  void AppendStaged(const LogSlot& slot, const LogEntry* staged);
  // Writes entries where they belong, starts the flush of their lines, and notes where they are.
  void WriteInPlace(ThreadState* thread, LogSlot* slot, uint64_t first, std::span<const LogUpdate> updates);
  template <bool kSingle, class Admission>
  Status AppendAndPublish(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t number,
                          LogSlot* slot, const Admission& admission);
  // The same for a slot in a segment of its own, which a refused write gives back.
  template <bool kSingle, class Admission>
  Status AppendDedicated(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t count, LogSlot* slot,
                         const Admission& admission);
  // Writes a newer version of a key only if `seen`, which must not go meanwhile, is its newest one; Aborted if it is not.
  Status WriteIfNewest(const Family& family, const LogEntry& seen, EntryType type, Slice value);
  // As one batch. Aborted when the database is being closed. Takes no space that needs a compaction, as WriteIfNewest.
  Status DeleteInBackground(const Family* family, std::span<const std::string> keys);
  // From here on WriteIfNewest and DeleteInBackground are Aborted, and none is under way.
  void EndFilterWrites();
  ThreadState* GetThreadState();
  // Notes a number that is not larger than the one that the write will draw. Who draws or reads next_sequence_ behind that draw
  // sees it. Who changes what writes look at before they draw, active_, sees the announcements of those that have not seen the
  // change behind a FenceAnnouncements: by asymmetric fences, since the announcement is in every write.
  void Announce(ThreadState* thread);
  void FenceAnnouncements() const;
  // The largest sequence number that was drawn: of a write, of a rotation, or of nobody.
  uint64_t LastDrawn() const { return next_sequence_.load(std::memory_order_acquire) - 1; }

  // ---- open_segments.cc
  // Whose open segments are taken.
  enum class Idleness : uint8_t {
    kEnded,  // the thread has ended, or makes no calls of its own any more
    kIdle,   // or it has written nothing since the last look at it
    kAny,
  };
  // Reserves in another thread's open segment, which becomes this thread's. REQUIRES: this thread has announced nothing.
  Status ReserveInIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot);
  Status SearchIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot);
  // From here on, threads that write nothing are idle.
  void LookForIdle() const;
  // Seals the open segments of such threads.
  Status SealIdle(Idleness least);
  bool IsIdle(uint32_t index, Idleness least, ThreadState* thread) const;
  Status TakeOpenSegment(ThreadState* owner, const std::function<bool(const Segment&)>& is_wanted, Segment** segment);

  // ---- visibility.cc
  template <class Visit>
  void ForEachLiving(const Visit& visit) const;
  // Returns when no write that announced a number <= `sequence` is under way.
  void WaitWriters(uint64_t sequence) const;
  // Returns when every write with a sequence number <= `sequence` is visible. REQUIRES: that number has been drawn.
  void WaitPublished(uint64_t sequence) const;
  // An operation on several keys begins, before it draws or chooses a number, and is complete.
  void BeginBarrier(AnnouncedNumber* barrier);
  void EndBarrier(AnnouncedNumber* barrier);
  // The thread's write is not under way any more: it is visible, or never will be.
  [[gnu::always_inline]] void EndAnnounced(ThreadState* thread, bool is_barrier) {
    thread->in_flight.End(asymmetric_fences_);
    if (is_barrier) EndBarrier(&thread->barrier);
  }
  // Returns when the barriers with positions <= `sequence` are complete. REQUIRES: that number has been drawn, and this thread
  // has announced no smaller one.
  void WaitBarriers(uint64_t sequence) const;
  // Returns when the thread's write, which has drawn `first`, may become visible.
  void WaitForTurn(ThreadState* thread, uint64_t first) const;
  // A version that a read of the newest state returns: if it is of a batch, this returns when the batch is visible whole.
  [[gnu::always_inline]] void WaitWhole(const LogEntry& entry) const {
    if (entry.is_batch_member() && barriers_.load(std::memory_order_seq_cst) != 0) WaitWholeLonger(entry.sequence());
  }
  void WaitWholeLonger(uint64_t sequence) const;
  // A number up to which all writes are visible when this returns. All that were acknowledged, or read, before have such
  // numbers.
  template <class Choose>
  uint64_t ChooseState(const Choose& choose);
  // … registered in snapshots_.
  uint64_t RegisterSnapshot();
  uint64_t ChooseLogBound();

  // ---- rotate.cc
  // For a memtable of about so many entries.
  static std::unique_ptr<Arena> CreateArena(uint64_t entries);
  // What the memtable behind this one will have, if all goes on as before; null: there was none.
  uint64_t ExpectedEntries(const Memtable* before) const;
  std::shared_ptr<Memtable> NewMemtable(const Memtable* before);
  std::unique_ptr<Memtable> MakeMemtable(uint64_t id, const KeyOrder& order, std::unique_ptr<Arena> arena,
                                         uint64_t entries) const;
  // The memtable, and the thread's nodes there, of a family other than the default one. An error if it was dropped, or there is
  // no memory.
  Status ChooseMemtable(ThreadState* thread, Memtable* set, uint32_t family, Memtable** memtable, Memtable::NodeBlock** nodes);
  // What the slot takes is the first of this thread's in the memtable, or in the segment.
  void BeginExtent(ThreadState* thread, Memtable* memtable, const LogSlot& slot);
  // Counts a portion of what was written; true when the memtable is full.
  bool Charge(ThreadState* thread, Memtable* memtable);
  Status RotateMemtable(const Memtable* expected);
  void TryRotateMemtable(const Memtable* full);

  // ---- pace.cc
  void DelayWrite(ThreadState* thread, uint64_t entries);
  template <class IsLate>
  void PayOwed(ThreadState* thread, const IsLate& is_late) const;
  void PaceWrites(ThreadState* thread);
  double SlowdownTables() const;
  double L0Pressure(double slowdown) const;
  double PaceNs();

  // ---- space.cc
  // Options::bound_space.
  bool BoundsSpace() const { return options_.bound_space && options_.l1 != L1Kind::kSortedRuns; }
  void HoldForSpace(ThreadState* thread);
  bool IsHeldForSpace() const;
  bool SpaceIsShort() const;  // whatever is in L0 is to be merged
  uint64_t SpaceTaken() const;
  uint64_t SpaceUnfilled() const;  // of that, in segments that are being written
  uint64_t BytesNotMerged() const;
  uint64_t CountGains() const;
  // The compaction thread's, when it has looked for something to do, and found it or not; and who else sets the limit.
  void LookAtSpace(bool gained);
  uint64_t MemtableSize(uint64_t wanted) const;
  // Until the compaction thread has looked again.
  void LetWritersGo() {
    if (BoundsSpace()) space_is_stuck_.store(true, std::memory_order_release);
  }
  uint64_t SleepForWrites(ThreadState* thread, uint64_t ns) const;

  // ---- room.cc
  // Asks the compaction thread for room in a full region, and waits for it, at most Options::no_space_timeout_ms.
  Status WaitForRoom(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  // Changes when there may be room that there was not.
  uint64_t RoomState() const;
  // One step of the compaction thread's; false: nothing was left to do. REQUIRES: compaction_mutex_, and no background error.
  bool MakeRoom();
  bool RelocateForRoom();
  bool FlushForRoom();
  bool SweepForRoom();
  // While writers wait for room. REQUIRES: compaction_mutex_
  void ServeRoom();

  // ---- scan_merge.cc
  // An iterator passed so many deleted keys in one movement.
  void NoteHiddenKeys(uint64_t keys);
  // Rotates the memtable if scans passed many deleted keys; its table and older ones are merged then. `last_merge`: how long the
  // last merge took.
  void BeginScanMerge(std::chrono::steady_clock::duration last_merge);

  // ---- range_delete.cc
  // The hidden family of range tombstones, which is made if there is none.
  Status RangeFamily(Family** family);
  // Makes known to families what the records say. REQUIRES: nobody reads or writes.
  Status LoadRanges();
  // What hides keys of the family now; null: nothing does. REQUIRES: no epoch guard.
  std::shared_ptr<const RangeTombstones> RangesOf(const Family& family) const;
  // REQUIRES: ranges_mutex_. Allocates nothing.
  void InstallRanges(Family* family, std::shared_ptr<const RangeTombstones>* ranges);
  // Until readers have left. REQUIRES: no epoch guard, and no write of this thread is announced.
  void RetireRanges(std::shared_ptr<const RangeTombstones> ranges);
  uint64_t CountRanges() const;
  // With a budget: whether range tombstones take so much of it that what is needed to forget them is done at once.
  bool RangesAreMany() const { return range_bytes_.load(std::memory_order_relaxed) > dram_.ranges / 2; }
  void WaitForRanges(ThreadState* thread);

  // ---- range_sweep.cc
  // Tombstones of one family whose keys are being removed.
  struct RangeRound {
    Family* family = nullptr;  // null: of records without one
    std::vector<RangeTombstones::Tombstone> tombstones;
    std::vector<std::pair<Slice, Slice>> stretches;  // ordered, apart; of the tombstones' bounds
    size_t next = 0;                                 // of stretches
    std::optional<std::string> position;             // where the sweep of that goes on; none: at its begin
  };
  // One step of the removal of what range tombstones hide, or of its end. *stepped: there may be another one.
  // `sweeps`: false: only tombstones of families that were dropped go. REQUIRES: compaction_mutex_, and no background error.
  Status SweepRanges(bool sweeps, bool* stepped);
  bool BeginRangeRound(bool sweeps);
  Status SweepStretches();
  Status EndRangeRound();
  Status DeleteRangeRecords(const std::vector<std::string>& keys);
  static void JoinStretches(const KeyOrder& order, const std::vector<RangeTombstones::Tombstone>& tombstones,
                            std::vector<std::pair<Slice, Slice>>* stretches);
  // `in_memtable`: a tombstone is.
  void RotateForRanges(bool in_memtable);
  // What sweeps may take for gone: what is durable, whatever happens; null: nothing.
  std::shared_ptr<const RangeTombstones> RangesForSweep(const Family& family, uint64_t* at_most);

  // ---- read.cc
  // What the lookup cache says of a key: its newest version, which is a put, or where its bucket stood.
  struct Cached {
    const LogEntry* entry = nullptr;
    LookupCache::Miss miss;
    // If not null: of this view its last level alone had the key, if any had, when the others were asked. Of the guard of then.
    const ReadView* rest = nullptr;
  };
  Cached AskCache(const Family& family, Slice key, uint64_t hash) const;
  // Whether a read of the newest state may take an entry of local_cache_ as it is, and has to pay for nothing but a counter.
  bool IsPlainHit(const Family& family, const LogEntry* cached) const {
    constexpr uint64_t kLooked = LogEntry::kTypeMask | LogEntry::kBatchMember;
    return cached != nullptr && !family.looks_closer.load(std::memory_order_acquire) &&
           (cached->tag & kLooked) == static_cast<uint64_t>(EntryType::kPut) && !regions_->damage_seen();
  }
  // What is known of a key when memtables, tables and the filter were asked by its hash alone.
  struct ByHash {
    bool is_missing = false;
    const ReadView* rest = nullptr;  // as in Cached
  };
  // Inside an epoch guard; after the cache was asked, if `rest` is to be used.
  ByHash AskByHash(const Family& family, uint64_t hash) const noexcept;
  // Of ThreadState::missing_streak: from where on the levels are asked before the cache, and the most it grows to. A read of a
  // key that the cache has ends it, one of a key that neither the cache has nor the levels can deny halves it.
  static constexpr uint32_t kMissesExpected = 8;
  static constexpr uint32_t kMostMisses = 31;
  // Whether that says that the key is not there, which is counted; else what it says goes to *cached.
  [[gnu::always_inline]] bool IsPlainMiss(const Family& family, uint64_t hash, ThreadState* thread, Cached* cached) const {
    if (cached->entry != nullptr) {
      thread->missing_streak = 0;
      return false;
    }
    const ByHash by_hash = AskByHash(family, hash);
    cached->rest = by_hash.rest;
    thread->plain_misses.Add(by_hash.is_missing);
    uint32_t& streak = thread->missing_streak;
    streak = by_hash.is_missing ? std::min(streak + 1, kMostMisses) : streak / 2;
    return by_hash.is_missing;
  }
  const LogEntry* UseCached(const SearchKey& target, const LogEntry* cached, LookupTrace* trace) const;
  const LogEntry* FindEntry(const Family& family, const SearchKey& target, uint64_t hash, LookupTrace* trace) const;
  // `Observer`: one of read_observer.h, in all of these.
  template <class Observer>
  const LogEntry* SearchLevels(const Observer& observer, const Family& family, const SearchKey& target, uint64_t hash,
                               LookupTrace* trace) const;
  // The put, or operand, that `target` selects, null if the key is not there; inside an epoch guard. With kMaxSequence: the
  // newest state. Corruption in *status if the search came upon a damaged pointer or, with `verify`, the version that decides is
  // damaged.
  // `hash`: of target.key in the family. `cached`: of the same key, asked inside the same guard.
  template <class Observer>
  const LogEntry* FindPut(const Observer& observer, const Family& family, const SearchKey& target, uint64_t hash,
                          const Cached& cached, ThreadState* thread, bool* met_dead, bool verify, Status* status) const;
  // Corruption if it is not a valid entry of a segment; inside an epoch guard or pin. Follows no pointer.
  Status VerifyEntry(const LogEntry* entry) const;
  // Hands the put, or null, to `deliver` inside an epoch guard, or outside a value that was merged.
  template <class Deliver>
  Status ReadKey(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  template <class Observer, class Deliver>
  Status ReadKeyAs(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  // … when the cache has not answered it. `slot`: of epochs_, entered before the cache was asked; left here.
  template <class Observer, class Deliver>
  Status ReadBehindCache(Observer observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                         Cached cached, ThreadState* thread, std::atomic<uint64_t>* slot, Deliver deliver);
  // … for a thread whose reads go on missing.
  template <class Deliver>
  Status ReadMissing(const ReadOptions& options, const Family& family, Slice key, ThreadState* thread, Deliver deliver);
  // … whatever is asked, and however the database is set up.
  template <class Deliver>
  Status ReadAnyKey(const ReadOptions& options, const Family& family, Slice key, Deliver deliver);
  template <class Deliver>
  Status ObserveRead(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  // … of the newest state; false if a read as of a sequence number has to follow. Inside the guard `cached` was asked in.
  template <class Observer>
  bool ReadNewest(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                  const Cached& cached, ThreadState* thread, const LogEntry** entry, Status* status) const;
  // … as of the snapshot, or of now. `has_operands`: this is known. REQUIRES: no epoch guard.
  template <class Observer, class Deliver>
  Status ReadAsOf(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                  bool has_operands, const Deliver& deliver);
  Status GetString(const ReadOptions& options, const Family& family, Slice key, std::string* value);
  Status GetPinned(const ReadOptions& options, const Family& family, Slice key, PinnableSlice* value);
  Status GetReceived(const ReadOptions& options, const Family& family, Slice key, ValueReceiver* value);
  Status LatestSequence(const Family& family, Slice key, uint64_t* sequence);
  // `family(i)`: of keys[i]; null: an error, which is in (*statuses)[i] already.
  template <class FamilyAt>
  void ReadKeys(const ReadOptions& options, const FamilyAt& family, const std::vector<Slice>& keys,
                std::vector<std::string>* values, std::vector<Status>* statuses);
  template <class Observer, class FamilyAt>
  void ReadKeysAs(const Observer& observer, const ReadOptions& options, const FamilyAt& family, const std::vector<Slice>& keys,
                  std::vector<std::string>* values, std::vector<Status>* statuses);
  std::unique_ptr<Iterator> MakeIterator(const ReadOptions& options, const Family& family);

  // ---- merge_read.cc
  void AddVersions(const KeyOrder& order, EntryCursor* cursor, const SearchKey& target, MergeContext* merge) const;
  // All operands of the key up to target.sequence, and what they are applied to. REQUIRES: the view is pinned, no epoch guard;
  // `merge` is clear. `verify`: each of them, and none by what is remembered of several.
  void CollectOperands(const ReadView& all, const Family& family, const SearchKey& target, uint64_t hash, bool verify,
                       MergeContext* merge) const;
  void AddFromTable(const PmTable& table, const Family& family, const SearchKey& target, bool verify, MergeContext* merge) const;
  // The value of a key that has operands, or may have had. REQUIRES: target.sequence is registered, and no epoch guard.
  Status ReadMerged(const Family& family, const SearchKey& target, uint64_t hash, bool verify, std::string* value);

  // ---- flush.cc
  struct PendingFlush {
    std::shared_ptr<Memtable> memtable;
    uint64_t last_announced;  // flush when no write that announced this number or less is in flight
  };
  void FlushLoop();
  void FlushUntilStopped();
  void PrepareArena(const Memtable& like);
  // Waits for `wanted`. REQUIRES: *lock is work_mutex_'s.
  void WaitIdle(std::unique_lock<std::mutex>* lock, const std::function<bool()>& wanted);
  // False after an error, which is the database's from then on.
  bool FlushOne(const PendingFlush& pending, WriterPressure::Flush* took);
  bool FinishCopies(FlushCopier* copies);
  void MoveToCopies(const PmTable& table);
  void ReleaseFlushedLog(uint64_t boundary);
  // Rotates, flushes and checkpoints what was written before the call; *last_id: the last memtable of that.
  Status FlushWritten(uint64_t* last_id);
  // Without the checkpoint.
  Status FlushMemtables(uint64_t* last_id);
  Status CheckpointTables();
  // The same, and what it says is that the database was closed. `sealing`: of PrepareSeal.
  Status CheckpointAndClose(const std::vector<Segment*>& sealing);
  Status ListTables(ManifestState* state, std::vector<std::shared_ptr<PmTable>>* tables, uint64_t* lines);
  void OnListed(ManifestState state, const std::vector<std::shared_ptr<PmTable>>& tables, uint64_t lines);
  Status ReserveForTables(const ManifestState& state, const ManifestState& longer);

  // ---- table_orders.cc
  // The plan of a merge by lists grows with the square of its tables; the longer a merge, the longer what it frees is held. Room
  // for several orders of many tables, and for what is beside them.
  static constexpr size_t kMaxMergedTables = 80;
  using Orders = std::vector<std::shared_ptr<const TableOrder>>;  // of neighbours in L0, the newest first
  // For whom orders are merged: iterators that come, or those that may, while writers leave a CPU idle or pause.
  enum class OrdersFor : uint8_t { kIterators, kIdleCpu, kPause };
  // False: what was begun was given up, for flushes, or to stop.
  bool MergeTableOrders(OrdersFor whom);
  // The flush thread's, once for each flush: whether there were iterators a short time ago.
  bool IteratorsCome();
  uint64_t MostEntriesOfOrder() const;
  // Whether merges into this family's last level do.
  bool GoesByOrder(const Family& family) const;
  // Of all tables of a merge; null if there is no memory, or the prefixes say too little.
  std::shared_ptr<const TableOrder> MergeOrdersOf(const Family& family, Orders orders);
  // Puts the order of these together in their place in the view.
  void InstallOrder(const Family& family, const Orders& of, const std::shared_ptr<const TableOrder>& together, bool of_merge);

  // ---- compact.cc
  void CompactionLoop();
  void CompactUntilStopped();
  bool CompactionWanted() const;
  bool WritersPause() const;
  std::chrono::steady_clock::time_point WritersPauseAt() const;
  // False when there was no work for so long. REQUIRES: work_mutex_, held by *lock
  bool WaitForWork(std::unique_lock<std::mutex>* lock, std::chrono::steady_clock::duration at_most);
  bool CompactionIdle() const;
  Status MakeCopies(bool* collapses_next);
  MergeJob MakeJob(uint64_t id, const Family& family, const VersionFilter* filter);
  // The family whose tables are merged next, of those that have tables that the MANIFEST lists: one with copies of a relocation;
  // else in a CompactRange the one with the oldest table; else the one with the most. Null: no table is listed.
  // REQUIRES: view_mutex_, compaction_mutex_
  // `but`: not this one.
  Family* ChooseFamily(const Family* but) const;
  struct MergeInput {
    Family* family = nullptr;
    std::vector<std::shared_ptr<PmTable>> tables;  // oldest first
    Orders orders;                                 // of all that the tables have; or none
    uint64_t id = 0;
  };
  // Merges that follow each other: a commit of the MANIFEST ends one and announces the next.
  struct MergeTurn {
    MergeInput now, next;  // next.family is null if no merge follows
    uint64_t entries = 0;  // of the merges that are at their end
    bool is_resumed = false;
  };
  // False if there is nothing to merge; input->family is null if no table is listed.
  bool PickMerge(const Family* but, MergeInput* input);
  void Announce(MergeInput* input, ManifestState* state);
  void AnnounceNext(MergeTurn* turn, ManifestState* state);
  Status CompactTables();
  // No table of L0 is listed, and the MANIFEST has no room for one. Tries again a second later.
  Status PostponeAll();
  // A merge or sweep that ended with an error after which it can be made again.
  void PostponeMerge(const Status& status);
  Status MergeTables(MergeTurn* turn);
  Status FinishMerge(Family* family, MergeTurn* turn, const MergeStats& stats);
  void InstallLastLevel(Family* family, size_t merged_tables);
  // `asks`: the user's compaction filter, if there is one.
  // REQUIRES: compaction_mutex_
  bool MergeIsUnfinished();
  Status SweepFamily(Family* family, const KeyRanges& keys, bool asks);
  Status CompactFamily(const CompactRangeOptions& options, Family* family, const Slice* begin, const Slice* end);
  // What has a smaller number and lives is in the last level of its family; 0: not known yet. REQUIRES: compaction_mutex_
  uint64_t MergedBoundary();
  // The same of one family; nothing in its last level has that number, or a larger one.
  uint64_t MergedBoundary(const Family& family);
  void NoteMerged(const ManifestState& before, const ManifestState& after);

  // ---- compaction_filter.cc
  bool FiltersMerges(const Family& family) const;
  // What the user's filter does in a merge, or in a sweep; null: nothing. REQUIRES: compaction_mutex_
  std::unique_ptr<EntryFilterSource> FilterMerge(const Family& family);
  // `has_ranges`: it may take away what range tombstones hide. `asks`: the filter.
  std::unique_ptr<EntryFilterSource> FilterSweep(const Family& family, bool everything, bool asks, bool has_ranges);

  // ---- reclaim.cc
  // Counts entries of segments from before this open, one segment a call; false when there is none left.
  bool AccountOneSegment();
  void ReclaimSegments();
  void Release(Segment* segment);
  // A segment of the log that is released as a whole, by flush.cc, and whose entries are not marked.
  bool IsFlushedByCopies(const Segment& segment) const {
    return !options_.index_unified_logging && !segment.holds_copies.load(std::memory_order_relaxed);
  }

  // ---- log_iterator.cc
  void RaiseLogFloor(uint64_t sequence);

  // ---- relocate.cc
  // *relocated: whether there is a table of copies now that is to be merged.
  // `urgent`: of a full region, whatever the limits.
  Status RelocateSparse(bool* relocated, bool urgent = false);
  Status InstallRelocation(const Relocation& relocation);
  // What a relocation emptied, until no reader is on it any more.
  struct MovedSegments {
    MovedEntries entries;
    std::unordered_set<Segment*> from;
    std::vector<Segment*> retired;   // of these, the ones in which nothing lives
    std::atomic<size_t> waiting{1};  // for the readers of when they were moved, and of when each of `retired` was
  };
  void MoveInCache(PmPtr from, PmPtr to);
  void KeepMoved(MovedEntries entries);
  // Releases what the last relocation emptied, all at once; false while readers may need it.
  bool ReleaseMoved();
  Status RelocateAll();
  // What lives and has a smaller number may be copied now; 0: nothing may. REQUIRES: compaction_mutex_
  uint64_t BoundaryOfCopies();
  // Steps 2 to 5 of relocate.cc. After an error that is not fatal the copies are discarded.
  Status PublishCopies(Relocation* made);

  // ---- collapse.cc
  // Operands that merges came upon become puts. *collapsed: whether there is a table of copies now that is to be merged.
  Status CollapseOperands(bool* collapsed);
  Status CollapseFamily(const Family& family, std::vector<std::string>* keys, bool* collapsed);
  Status CollapseAll();
  void NoteOperandKeys(const Family& family, std::vector<std::string> keys);

  // ---- restored_tables.cc
  // Gives some restored tables of L0 an index and an order, and more until `at_least` has passed. False: none is left.
  bool IndexRestoredTables(std::chrono::steady_clock::duration at_least);
  static std::vector<std::shared_ptr<PmTable>> ChooseRestoredTables(const ReadView& view);
  std::shared_ptr<const TableOrder> WalkTable(const PmTable& table, L0IndexWriter* index) const;

  // ---- filter.cc
  // A view that stays as it is, with all that it reaches.
  class PinnedView {
   public:
    explicit PinnedView(DBImpl* db);
    ~PinnedView();
    PinnedView(const PinnedView&) = delete;
    PinnedView& operator=(const PinnedView&) = delete;
    const ReadView& view() const { return *view_; }

   private:
    DBImpl* const db_;
    std::shared_ptr<const ReadView> view_;
    uint64_t pin_;
  };
  // The compaction thread's: makes a new filter, a step each call, and more until `at_least` has passed; false when there is
  // nothing to do. Without memory there is none, which takes speed only.
  bool BuildFilter(std::chrono::steady_clock::duration at_least);
  bool FilterWanted() const;
  enum class FilterStep { kMore, kEnd, kFailed };
  uint64_t KeysThatFit(uint64_t in_use) const;
  FilterStep BeginFilter();
  FilterStep AddLastLevel();
  bool AddEntries(const KeyOrder& order, EntryCursor* cursor, uint64_t count, KeyFilterWriter* writer) const;
  void EndFilter();
  void ReplaceFilter(std::shared_ptr<KeyFilter> filter);
  void GiveUpFilter();

  // ---- dram.cc
  // Of the lookup cache: the size that it may have.
  uint64_t MostLookupCache() const;
  void CreateLookupCache();
  // Makes the lookup cache larger if it is crowded. Returns early when a memtable waits for its flush: then it goes on later.
  void GrowLookupCache();
  // REQUIRES: cache_size_mutex_. The second returns false if a memtable waits for its flush; `waits`: it does not return early.
  void StartGrowth();
  bool ContinueResize(bool waits);
  bool CacheWantsWork() const {
    if (lookup_cache_ == nullptr) return false;
    return cache_is_resized_.load(std::memory_order_acquire) ? !resize_waits_.load(std::memory_order_relaxed)
                                                             : lookup_cache_->is_crowded();
  }
  // Of an idle database: gives back what it can do without. False: that was all.
  bool GiveBackIdle();
  // Writes and gets since the open.
  uint64_t CallsOfUsers() const;
  // What the lookup cache may take beside the inner nodes of the last level and the filter.
  uint64_t RoomForCache() const;
  // The cache gives what the inner nodes took, and then the filter goes. REQUIRES: compaction_mutex_
  void KeepDramBudget();
  bool HasFilter() const;
  uint64_t NodeBytes() const;
  void AddDram(MetricFigures* figures) const;
  uint64_t DramBytes() const;
  static uint64_t MemtableBytes(const Memtable& memtable);

  // For who does not hold compaction_mutex_; may be null.
  std::shared_ptr<const LastLevel> LevelOf(const Family& family) const {
    std::lock_guard lock(view_mutex_);
    return family.last_level;
  }

  // ---- metrics.cc
  void AddFamilies(MetricFigures* figures) const;
  void AddSpace(MetricFigures* figures) const;
  void AddThrottle(MetricFigures* figures) const;
  void AddJobs(MetricFigures* figures) const;
  void AddSamples(MetricFigures* figures) const;
  void BeginSampling() const;
  // Notes a call of this thread, in `samples`, that ended at perf::NowNs() == `end_ns` and took `took_ns`.
  void Sample(SampledLatencies* samples, uint64_t end_ns, uint64_t took_ns) const {
    samples->Add(took_ns);
    if (end_ns > sampling_end_ns_.load(std::memory_order_relaxed) && !measures_)
      observes_.store(false, std::memory_order_relaxed);
  }

  // ---- histograms.cc
  // Whether calls are measured: by their thread, in histograms, or as samples.
  [[gnu::always_inline]] bool IsObserved() const {
    return __builtin_expect(perf::t_counts | observes_.load(std::memory_order_relaxed), 0) != 0;
  }
  // Of a duration: nanoseconds.
  void Measure(HistogramKind kind, uint64_t value) const;

  // ---- background.cc
  // Throws std::bad_alloc before it has changed anything. REQUIRES: view_mutex_
  void InstallView(std::shared_ptr<ReadView> view);
  void NotifyWork();
  // What follows from the result of `work`: see error_policy.h.
  Outcome OutcomeOf(Work work, const Status& status) const noexcept;
  // The same. If it is kEndsWriting, the database takes no more writes from here on.
  Outcome Settle(Work work, const Status& status) noexcept;
  Status BackgroundError() const;

  // events.cc: what the user's functions are told. May be called with any lock.
  // Of Options::info_log. Its lines go through events_ once that is there; until then the user has no handle to use in the call.
  std::unique_ptr<Logger> MakeUsersLogger();
  struct CompletedMerge {
    Status status;
    uint64_t merged = 0, dropped = 0, elapsed_us = 0;
  };
  void PostMemTableSealed(uint64_t id) noexcept;
  // `flushed`: null at the beginning.
  void PostFlush(uint64_t memtable_id, const std::vector<FlushResult>* flushed) noexcept;
  // `completed`: null at the beginning.
  void PostCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept;
  void TellOfCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept;
  void PostBackgroundError(const Status& status) noexcept;
  void PostStallCondition() noexcept;

  void Log(const std::string& line) const;
  void EndWrites();  // every update gets an error from here on

  const Access access_;
  Options options_;
  Options given_;  // for the options file
  // What SetOptions changes, and began as it is in options_.
  struct Changing {
    std::atomic<uint64_t> memtable_size;
    std::atomic<uint32_t> max_immutable_memtables;
    std::atomic<uint32_t> l0_compaction_trigger;
    std::atomic<uint32_t> l0_slowdown_writes_trigger;
    std::atomic<bool> disable_auto_compaction;

    void Begin(const Options& options);
    // What it is at least, where the size of the last level decides.
    uint32_t SlowdownTrigger() const {
      constexpr uint32_t kLeast = 64;
      const uint32_t given = l0_slowdown_writes_trigger.load(std::memory_order_relaxed);
      return std::max(given == 0 ? kLeast : given, l0_compaction_trigger.load(std::memory_order_relaxed));
    }
    bool MergesByItself() const { return !disable_auto_compaction.load(std::memory_order_relaxed); }
  } changing_;
  std::map<uint32_t, std::map<std::string, std::string>> changed_foreign_;  // by family, for the options file; families_mutex_
  DramBudget dram_;                                                         // fixed when it is known how many regions there are
  const std::string path_;
  DatabaseFile place_;                             // what is noted in path_; its identity is 0 if nothing is
  const bool measures_;                            // Options::histograms
  mutable std::atomic<bool> observes_{measures_};  // or calls are sampled (sampled_latencies.h)
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<NewDatabase> creation_;  // while the open makes the database
  posix::Fd read_lock_;                    // in its place, if it is open for reading only
  std::unique_ptr<Logger> logger_;
  std::unique_ptr<RegionSet> regions_;
  std::unique_ptr<SegmentAllocator> segments_;
  Family default_family_;
  std::unique_ptr<ColumnFamilyHandle> default_handle_;
  std::unique_ptr<std::atomic<Family*>[]>
      by_id_;  // kMaxFamilies; null: there is none, or it is dropped and nothing is left of it
  std::mutex drop_mutex_;
  std::mutex families_mutex_;
  std::vector<std::shared_ptr<Family>> families_;  // all but the default one, those that are gone included; families_mutex_
  uint32_t last_family_id_ = 0;                    // the last id that a user's family got; manifest_mutex_
  std::atomic<bool> purge_waits_{false};           // a family was dropped, and is not forgotten yet
  std::atomic<uint64_t> families_forgotten_{0};    // how often some were
  CacheShare cache_share_;                         // the lookup cache's; cache_size_mutex_
  std::unique_ptr<LookupCache> lookup_cache_;      // may be null
  LookupCache* local_cache_ = nullptr;             // the same, if there is no other region, and no read latency is injected
  const bool asymmetric_fences_ = HasAsymmetricFences();
  mutable EpochManager epochs_;
  std::shared_ptr<MergeJournal> journal_;  // null: no family needs it
  mutable PerThread<ThreadState> threads_;
  std::mutex spare_barrier_mutex_;  // for threads that get no ThreadState
  AnnouncedNumber spare_barrier_;   // … which have this one by turns
  uint64_t last_update_at_open_ = 0;
  SnapshotList snapshots_;
  std::mutex pace_mutex_;           // who does not get it takes pace_ns_ as it is
  WritePace pace_;                  // pace_mutex_
  std::atomic<double> pace_ns_{0};  // for an entry

  // Sequence numbers: next_sequence_ is drawn from by writers and by rotation.
  alignas(128) std::atomic<uint64_t> next_sequence_{1};
  std::atomic<uint64_t> barriers_{0};  // under way; in the line that each write has just drawn from. See visibility.cc
  alignas(128) mutable std::atomic<uint64_t> published_below_{0};  // every write with a smaller number is known to be visible
  alignas(128) std::atomic<Memtable*> active_{nullptr};
  std::atomic<const ReadView*> view_{nullptr};
  std::atomic<uint32_t> immutable_count_{0};
  std::atomic<uint32_t> l0_count_{0};     // of the family that has the most
  std::atomic<uint32_t> l0_sum_{0};       // tables of all families
  std::atomic<uint32_t> l0_families_{0};  // that have tables
  std::atomic<uint64_t> l0_entries_{0};
  std::atomic<uint64_t> settled_entries_{0};        // of them, by the merge that is running
  std::atomic<uint64_t> oldest_l0_id_{UINT64_MAX};  // UINT64_MAX: L0 is empty
  std::atomic<uint64_t> flushed_memtable_id_{0};    // memtables up to this id are in L0 or below
  std::atomic<bool> write_failed_{false};
  const ForkMark fork_mark_{&write_failed_};
  std::atomic<bool> iterator_came_{false};         // since the last flush
  std::atomic<uint64_t> space_limit_{UINT64_MAX};  // of SpaceTaken without SpaceUnfilled, with bound_space
  std::atomic<bool> space_is_stuck_{false};        // nothing has made room since it was looked for
  std::atomic<uint32_t> held_writers_{0};
  std::atomic<uint64_t> space_looks_{0};
  std::atomic<uint64_t> flushed_at_look_{0};  // flushed_memtable_id_, then
  // Of what has a larger number, every entry is where it was written. Changed under compaction_mutex_.
  std::atomic<uint64_t> log_floor_{0};

  mutable std::mutex view_mutex_;
  std::shared_ptr<const ReadView> current_view_;  // owns *view_
  uint64_t next_memtable_id_ = 1;
  uint64_t last_rotated_id_ = 0;
  uint64_t active_first_sequence_ = 1;  // the active memtable's writes have larger numbers
  std::vector<PendingFlush> pending_flushes_;
  uint64_t flushed_boundary_ = 0;                          // of the last table that was flushed; the flush thread's
  std::unique_ptr<L0IndexWriter> l0_index_;                // the flush thread's
  static constexpr uint32_t kFlushesPerIterator = 16;      // so many behind an iterator, orders are merged for the next one
  uint32_t flushes_since_iterator_ = kFlushesPerIterator;  // the flush thread's, about

  static constexpr size_t kKeptArenas = 6;
  static constexpr size_t kKeptArenasOfBudget = 2;  // dram_budget.cc counts them
  size_t KeptArenas() const {
    return dram_.is_set() ? kKeptArenasOfBudget : std::min<size_t>(options_.max_immutable_memtables, kKeptArenas - 1) + 1;
  }
  // Bytes of one that are kept.
  uint64_t KeptArenaBytes() const { return std::min<uint64_t>(2 * changing_.memtable_size, dram_.kept_arena); }
  std::mutex ranges_mutex_;                     // the tombstones of all families
  std::atomic<uint64_t> range_bytes_{0};        // that they take; changed under it
  std::atomic<Family*> range_family_{nullptr};  // set once
  std::atomic<uint64_t> next_range_record_{1};
  std::atomic<bool> ranges_wait_{false};          // there are tombstones, or records without a family
  std::optional<RangeRound> range_round_;         // these: compaction_mutex_
  std::vector<std::string> stale_range_records_;  // keys of records of families that there are not
  bool range_in_memtable_ = false;                // one was seen there …
  std::chrono::steady_clock::time_point range_in_memtable_since_;

  std::mutex cache_size_mutex_;                // resizing and shrinking the lookup cache
  std::atomic<bool> cache_is_resized_{false};  // a resize has begun; changed under cache_size_mutex_
  std::atomic<bool> resize_waits_{false};      // for readers that may be in the old table; likewise
  enum class OldTable : uint8_t { kInUse, kMoved, kRetired, kLeft };
  std::atomic<OldTable> old_table_{OldTable::kInUse};  // of the resize
  uint64_t resized_from_bytes_ = 0;                    // cache_size_mutex_
  uint64_t idle_calls_ = 0;                            // CallsOfUsers, when it was looked at last; these two: the flush thread's
  uint32_t idle_rounds_ = 0;                           // looks in a row that saw the same

  std::mutex arenas_mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;

  std::mutex filter_mutex_;
  std::shared_ptr<KeyFilter> current_filter_;      // owns *filter_
  std::shared_ptr<KeyFilter> next_filter_;         // being made; changed by the compaction thread only
  std::atomic<const KeyFilter*> filter_{nullptr};  // has the keys of the last level, see filter.cc; null: there is none
  bool compaction_idle_ = false;                   // the compaction thread's, has been for a while
  bool uses_filter_ = false;                       // these: changed by the compaction thread only
  std::atomic<bool> filter_given_up_{false};       // no new one is made
  std::atomic<bool> filter_must_go_{false};        // the inner nodes need its share
  uint64_t filter_room_ = UINT64_MAX;              // entries of the database that a small filter is for
  uint64_t filter_built_keys_ = 0;
  std::optional<std::string> filter_position_;  // the key at which the walk along the last level goes on; none: its first
  uint64_t filter_sequence_ = 0;                // … and the version
  uint32_t filter_family_ = 0;                  // … and the family

  std::mutex manifest_mutex_;
  Manifest manifest_;
  ManifestState manifest_state_;
  size_t refused_tables_ = 0;  // tables of the oldest rotation, if the MANIFEST lists too many to take them; else 0

  std::mutex compaction_mutex_;
  // Of the CompactRange that is under way; compaction_mutex_. A sweep of everything asks the compaction filter, so that the
  // merges before it need not.
  enum class ManualCompaction : uint8_t { kNone, kBeforeSweep, kManual } manual_compaction_ = ManualCompaction::kNone;
  const Family* manual_family_ = nullptr;  // of it; compaction_mutex_
  std::mutex write_if_newest_mutex_;
  bool filter_writes_ended_ = false;       // under it
  bool tables_wait_for_index_ = false;     // some tables of L0; compaction_mutex_
  std::atomic<bool> resume_merge_{false};  // changed under it; one that was begun, before a crash perhaps, is not at its end

  mutable std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::atomic<bool> stopping_{false};
  bool flush_running_ = false;
  bool flush_thread_ended_ = false;  // no memtable is flushed any more
  bool compaction_running_ = false;
  uint32_t waiting_for_compaction_ = 0;                    // calls of WaitForCompaction
  Status postponed_merge_;                                 // why; OK: none is
  std::chrono::steady_clock::time_point postponed_until_;  // then it is tried again
  std::chrono::steady_clock::time_point last_flush_;       // none yet: long ago
  std::chrono::steady_clock::duration flush_interval_{0};  // between the last two
  WriterPressure pressure_{std::max(1u, std::thread::hardware_concurrency())};
  // Null: the user gave neither listeners nor info_log. What listeners were told last is the event thread's.
  std::unique_ptr<EventQueue> events_;
  WriteStallCondition told_condition_ = WriteStallCondition::kNormal;
  std::thread flush_thread_;
  std::thread compaction_thread_;
  Status background_error_;
  // The background error when there is not even memory for that.
  Status out_of_memory_ = Status::ReadOnly("no DRAM for background work; close the database, free some, and open it again");
  bool closed_ = true;  // until the background threads run
  Status close_status_;

  std::shared_ptr<MovedSegments> moved_;  // of the last relocation, null if all of it is released; compaction_mutex_
  std::atomic<bool> moved_waits_{false};  // there is one: looked at again now and then
  std::map<uint32_t, std::vector<std::string>> operand_keys_;  // by family: that wait to be collapsed; compaction_mutex_
  std::vector<bool> purged_families_;       // by id: those whose entries are being marked dead; empty: none. compaction_mutex_
  std::vector<Segment*> unpurged_;          // in which such may live; compaction_mutex_
  std::vector<Segment*> unaccounted_;       // segments of earlier sessions, their entries not counted yet; compaction_mutex_
  std::atomic<uint64_t> hidden_keys_{0};    // passed by scans since the last merge for them
  std::atomic<bool> scans_wait_{false};     // they were many
  std::atomic<uint64_t> scan_merge_id_{0};  // tables up to this id are merged for scans
  std::chrono::steady_clock::time_point next_scan_merge_;  // not before; the compaction thread's
  std::atomic<uint32_t> next_look_for_idle_{0};            // thread index; where the search for an idle thread begins
  std::atomic<uint64_t> taken_segments_{0};                // open segments that were taken from their threads
  std::atomic<uint64_t> adopted_segments_{0};              // of these, that have another owner, or none for good
  std::atomic<uint32_t> waiting_for_room_{0};              // writers that found no space
  std::atomic<uint64_t> dry_rounds_{0};                    // of MakeRoom, which found nothing to do
  std::atomic<uint64_t> dry_state_{0};                     // RoomState of the last one
  std::atomic<int64_t> dry_ms_{0};                         // when that was
  uint64_t swept_for_room_ = 0;                            // flushed_memtable_id_ of the last sweep; compaction_mutex_

  struct BackgroundCounters {
    std::atomic<uint64_t> rotations{0}, flushes{0}, flushed_entries{0}, checkpoints{0}, compactions{0}, merged{0}, dropped{0},
        flushed_lines{0}, l1_entries{0}, relocated_entries{0}, relocated_bytes{0}, collapsed_keys{0};
  };
  mutable BackgroundCounters counters_;
  uint64_t replayed_entries_ = 0;
  uint64_t recovery_us_ = 0;
  mutable std::atomic<uint64_t> sampling_end_ns_{0};
};

}  // namespace braiddb
