// DBImpl: an open database. Its functions are implemented in files by verb: open.cc, recover.cc, close.cc, families.cc,
// family_drop.cc, write.cc, visibility.cc, read.cc, make_iterator.cc, flush.cc, compaction_thread.cc, compact.cc,
// compact_range.cc, reclaim.cc, relocate.cc, room.cc, filter.cc, dram.cc, admin.cc; background.cc has the parts that the
// background threads share.
//
// LOCKS  docs/CONCURRENCY.md has the order of the mutexes, and which mutexes are taken while another is held.
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
#include <set>
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
#include "db/arena_pool.h"
#include "db/cache_share.h"
#include "db/dram_budget.h"
#include "db/error_policy.h"
#include "db/event_queue.h"
#include "db/family.h"
#include "db/l0_load.h"
#include "db/live_board.h"
#include "db/live_reader.h"
#include "db/live_readers.h"
#include "db/merge_context.h"
#include "db/relocation_progress.h"
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
#include "util/local_server.h"
#include "util/logger.h"
#include "util/per_thread.h"
#include "util/perf.h"

namespace braiddb {

class NewDatabase;
struct LiveFamily;
struct LiveMemtable;
struct LiveView;
class RangeUpdate;
struct MetricFigures;
struct ReplayResult;

class DBImpl final : public DB {
 public:
  enum class Access : uint8_t {
    kWrite,
    kRead,
    kReadMerely,  // as kRead, but an open that would have to replay the log is an error
    kLive,        // another process has the database open for writing; see live_read.cc
  };
  static constexpr uint64_t kLeastMemtableSize = 16 << 10;

  // `takes_prepared`: the caller handles prepared transactions. If false, an open with prepared transactions is refused.
  // `handles`: may be null.
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     bool takes_prepared, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                     Access access = Access::kWrite);
  ~DBImpl() override;
  // Does nothing in a child of the process that opened the database: the object's parts belong to the parent.
  static void operator delete(DBImpl* db, std::destroying_delete_t);
  // Frees the memory of an object whose constructor threw. A class that only has a destroying delete would leak it.
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
  Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) override;
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override;
  const Options& GetOptions() const override { return options_; }
  const std::string& GetName() const override { return name_; }
  // Its directory, also if the program has changed its working directory.
  const std::string& directory() const { return path_; }

  // Like CreateColumnFamily, GetColumnFamilies and Write, but also for the hidden family of prepared transactions
  // (hidden_family.h). For code of the library that uses or copies this family.
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
  // An error if recovery replayed entries although the access does not allow a replay.
  Status CheckReplayed() const;
  void StartReading();
  void PrepareReads();
  Status CloseReadOnly();

  // ---- live_serve.cc
  class LiveService;
  void InitThread(uint32_t index, ThreadState* thread);
  void BeginServing();
  void EndServing();
  bool AnswerReader(const LocalServer::Peer& peer, uint64_t layout);
  bool ListReaders(const LocalServer::Peer& peer);
  bool ChooseForReader(const LocalServer::Peer& peer, uint32_t element);
  bool ShareMemory();
  void PublishBlock(std::atomic<uint64_t>* place, const std::vector<uint64_t>& words);
  // Stores the offset of a block, and frees the block before it when no reader can use it.
  void ReplaceBlock(std::atomic<uint64_t>* place, uint64_t offset) noexcept;
  void PublishView() noexcept;
  void ShareLevels();
  void ShareFilter();
  void PublishRanges() noexcept;
  void TellReaders() noexcept;
  void GiveUpReaders() noexcept;
  // The sequence numbers of all snapshots, also those of readers in other processes. If a number is missing, it is at least as
  // large as every number that was drawn before the call.
  std::vector<uint64_t> CopySnapshots() const;
  // The smallest of them; UINT64_MAX if there is none.
  uint64_t OldestSnapshot() const;

  // ---- live_read.cc
  friend class LiveDB;
  friend class LiveIterator;
  Status AttachToOwner(const std::vector<ColumnFamilyDescriptor>& families);
  Status TakeFamilies(const LiveView& view, const std::vector<ColumnFamilyDescriptor>& descriptors);
  Status AttachLevel(Family* family);
  void StartFollowing();
  Status CloseLive();
  Status LoadView(uint64_t offset, LiveView* view) const;
  // Whether this process may use what it has read. CheckLive says why not.
  Status CheckLive() const;
  bool is_live_reader() const { return live_reader_ != nullptr; }
  bool IsLive() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the loads of a read come first; x86 keeps the order of loads
    return !live_reader_->has_expired() && !regions_->WriterChanged(writer_runs_);
  }
  // Whether what was read is valid, and met no part that is not mapped. `growths`: followed_growths_ before the read.
  bool IsInPlace(uint64_t growths) const {
    return live_reader_->board().growths.load(std::memory_order_acquire) == growths && IsLive();
  }
  // Makes this process see all that the owner has published. A few loads if that is nothing new. REQUIRES: no epoch guard is
  // held.
  Status FollowOwner();
  // Whether FollowOwner would find nothing new.
  bool HasNewest() const {
    const LiveBoard& board = live_reader_->board();
    return !fork_mark_.is_in_child() &&
           board.version.load(std::memory_order_seq_cst) == followed_version_.load(std::memory_order_acquire) &&
           board.growths.load(std::memory_order_acquire) == followed_growths_.load(std::memory_order_acquire);
  }
  Status FollowChanges();
  void FollowNews();
  Status FollowLocked();
  void RetireOldViews();
  void RetireLocked();
  Family* FollowFamily(const LiveFamily& from);
  static void EndFamily(Family* family);
  std::shared_ptr<Memtable> AttachForeign(const LiveMemtable& from, MemtableKind kind);
  // The last level of a view, with the owner's index if this process can use it. REQUIRES: follow_mutex_. May throw
  // std::bad_alloc.
  std::shared_ptr<const OrderedLevel> AttachIndex(const LiveFamily& from, Family* family) const;
  bool AttachOrders(const LiveFamily& from, const FamilyView* before, FamilyView* levels) const;
  Status InstallForeignView(uint64_t offset, const std::shared_ptr<LiveHold>& hold);
  Status InstallForeignRanges(uint64_t offset);
  // Throws LiveFailure.
  uint64_t RegisterLiveSnapshot();
  // Whether no newer view exists; a live reader follows the owner first.
  bool IsNewestView(const ReadView& view);

  // ---- place.cc
  Status JudgePlace(bool* exists);
  Status CheckRegionPaths() const;
  Status NotePlace() const;
  Status OpenFiles(const std::vector<ColumnFamilyDescriptor>& families);
  Status CreateFiles();
  Status FinishCreation(bool notes_options);
  static void AbandonCreation(std::unique_ptr<DBImpl> db);

  // ---- open.cc
  Status InChild() const;
  Status CheckBeforeOpen(const std::vector<ColumnFamilyDescriptor>& families) const;
  Status CheckDramBudget() const;
  // InvalidArgument if the default family has another comparator or kind of last level than the options.
  Status CheckDefaultFamily(const std::string& comparator, uint8_t l1_kind) const;
  Status OpenStructures();
  void StartBackground();
  // REQUIRES: families_mutex_.
  void NoteOptions() const;
  RegionSetOptions MakeRegionOptions() const;

  // ---- recover.cc
  Status Recover();
  Status CopyReplayed(ReplayResult* replay);
  Status OpenJournal();
  Status OpenLevels();
  Status ReleaseUnownedSegments();
  void RestoreTables();

  // ---- close.cc
  // Every later write gets an error.
  void EndWrites();

  // ---- families.cc
  // Creates the Family objects of the families that the MANIFEST lists, with the options of `descriptors`.
  Status FindFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors);
  // NotSupported if there are prepared transactions.
  Status RefusePrepared();
  // Creates the families that do not exist, if the options allow it.
  Status CreateMissing(const std::vector<ColumnFamilyDescriptor>& descriptors);
  Status MakeFamily(const ColumnFamilyOptions& options, const std::string& name);
  // The id for a new family; 0 if no id is free. REQUIRES: manifest_mutex_
  uint32_t FreeFamilyId(bool is_hidden);
  std::unique_ptr<ColumnFamilyHandle> MakeHandle(const std::string& name);
  // A handle whose deletion is reported to the listeners.
  std::unique_ptr<ColumnFamilyHandle> MakeUsersHandle(const std::string& name);
  // The handle's family. Null, and an error, if the handle is null or belongs to another database.
  Family* FamilyOf(const ColumnFamilyHandle* handle, Status* status) const;
  // Null if there is no such family. May be called by any thread.
  Family* FindFamily(uint32_t id) const { return by_id_[id].load(std::memory_order_acquire); }
  bool IsHidden(uint32_t id) const {
    if (id == 0 || id >= kMaxFamilies) return false;
    const Family* const family = FindFamily(id);
    return family != nullptr && family->is_hidden;
  }
  Family* NewFamily(uint32_t id, uint64_t number, const std::string& name, const ColumnFamilyOptions& options);
  // Null if there is no such family.
  std::shared_ptr<Family> FindFamilyByName(const std::string& name);
  Options LevelOptions(const ColumnFamilyOptions& options) const;
  LastLevel::Parts LevelParts(const Family& family);

  // ---- family_drop.cc
  class LetsOthersBeDropped;
  // Merges until the MANIFEST lists all tables of rotations up to this one.
  Status ListTablesUntil(uint64_t last_id);
  Status CommitDropWhenPossible(Family* family);
  // `lock`: of manifest_mutex_.
  Status CommitDrop(Family* family, std::unique_lock<std::mutex> lock);
  Status CommitDropLocked(Family* family);
  // Makes one step of the purge of dropped families without handles. False: nothing can be done at present.
  bool PurgeFamilies();
  // Whether no reader uses the family, and its last level is released. Makes the steps towards that.
  bool HasLeft(Family* family);
  Status PurgeOneSegment();
  // Waits until families_forgotten_ differs from `forgotten`. False: that will not happen before the deadline.
  // REQUIRES: no mutex of the database is held.
  bool WaitForPurge(uint64_t forgotten, std::chrono::steady_clock::time_point deadline);
  Status ForgetPurged();

  // ---- int_properties.cc, admin.cc
  bool IntProperty(const Family& family, std::string_view property, uint64_t* value);
  uint64_t EntriesInActive(const ReadView& view, const Family& family) const;
  bool Property(const Family& family, std::string_view property, std::string* value);

  // ---- write.cc
  Status WriteSingle(const WriteOptions& options, EntryType type, uint32_t family, const Slice& key, const Slice& value);
  // Like WriteSingle, but not inlined.
  Status WriteOne(const WriteOptions& options, EntryType type, uint32_t family, Slice key, Slice value);
  // The lookup cache, if it may have keys of the family; else null.
  LookupCache* CacheOf(uint32_t family) const {
    return __builtin_expect(family == 0, 1) || FindFamily(family)->is_hashed ? lookup_cache_.get() : nullptr;
  }
  // Prefetches the cache bucket of a single update, and notes the hash of its key. Called before the other steps of the write.
  void BeginSingle(ThreadState* thread, const LogUpdate& update);
  // Implements Write and WriteToAnyFamily.
  template <bool kHiddenFamilies>
  Status WriteBatchTo(const WriteOptions& options, const WriteBatch& batch);
  // One attempt. *skipped: the number of updates that were skipped because their family does not exist.
  template <bool kHiddenFamilies>
  Status TryWriteBatch(const WriteOptions& options, const WriteBatch& batch, size_t* skipped);
  template <bool kSingle, class Admission>
  Status WriteUpdates(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates, const Admission& admission);
  template <bool kSingle, class Admission>
  Status WriteAdmitted(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates,
                       const Admission& admission);
  // Like WriteAdmitted, with measurements.
  template <bool kSingle, class Admission>
  Status ObserveWrite(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates, const Admission& admission);
  Status WriteRanges(const WriteOptions& options, ThreadState* thread, RangeUpdate* ranges);
  Status ReserveLog(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  Status ReserveElsewhere(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  // Continues an announced write whose segment another thread has taken.
  template <bool kSingle, class Admission>
  Status AppendElsewhere(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t count, LogSlot* slot,
                         const Admission& admission);
  SpaceUse UseOf(std::span<const LogUpdate> updates) const;
  // Builds the entry of a single update in DRAM, and notes its address in DRAM and its address in the log in the thread's
  // insertions.
  static void StageEntry(ThreadState* thread, LogSlot* slot, uint64_t sequence, const LogUpdate& update);
  void AppendStaged(const LogSlot& slot, const LogEntry* staged);
  // Writes entries to the log, starts the flush of their lines, and notes their addresses in the thread's insertions.
  void WriteInPlace(ThreadState* thread, LogSlot* slot, uint64_t first, std::span<const LogUpdate> updates);
  template <bool kSingle, class Admission>
  Status AppendAndPublish(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t number,
                          LogSlot* slot, const Admission& admission);
  // Like AppendAndPublish, for a slot in a segment of its own. A refused write gives the segment back.
  template <bool kSingle, class Admission>
  Status AppendDedicated(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t count, LogSlot* slot,
                         const Admission& admission);
  // Writes a newer version of a key if `seen` is its newest version; else Aborted. REQUIRES: `seen` is not freed during the call.
  Status WriteIfNewest(const Family& family, const LogEntry& seen, EntryType type, Slice value);
  // Deletes the keys in one batch. Aborted if the database is being closed. Takes no space that needs a compaction, like
  // WriteIfNewest.
  Status DeleteInBackground(const Family* family, std::span<const std::string> keys);
  // Waits for a WriteIfNewest or DeleteInBackground that is running. Later calls return Aborted.
  void EndFilterWrites();
  ThreadState* GetThreadState();
  // Announces a number that is not larger than the one that the write will draw. A thread that later draws from or loads
  // next_sequence_, after the write's draw, sees the announcement. A thread that changes a variable which writes load before they
  // draw, such as active_, calls FenceAnnouncements after the change. Then it sees the announcements of all writes that did not
  // see the change. The fences are asymmetric, because every write announces itself.
  void Announce(ThreadState* thread);
  void FenceAnnouncements() const;
  // The largest sequence number that was drawn: by a write, by a rotation, or by a write that was refused.
  // ---- wait_for_update.cc
  // Called by a write that is visible, if update_is_awaited_.
  void WakeAwaiting();
  void AwaitForReader(uint64_t next);
  bool IsVisibleBehind(uint64_t sequence, uint64_t* latest);
  Status SleepUntilDrawn(uint64_t next, std::chrono::nanoseconds timeout);

  uint64_t LastDrawn() const { return next_sequence_->load(std::memory_order_acquire) - 1; }

  // ---- open_segments.cc
  // The threads whose open segments may be taken.
  enum class Idleness : uint8_t {
    kEnded,  // threads that have ended, or whose own calls have ended
    kIdle,   // also threads that have written nothing since the last check
    kAny,
  };
  // Reserves space in another thread's open segment, which then belongs to this thread. REQUIRES: this thread has announced
  // nothing.
  Status ReserveInIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot);
  Status SearchIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot);
  // Records the positions of all open segments. Threads that write nothing after this call are idle.
  void LookForIdle() const;
  // Seals the open segments of idle threads.
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
  // Notes that every write with a number <= `sequence` is visible.
  void NotePublished(uint64_t sequence) const;
  // Begin and end of a barrier, an operation on several keys. Begins before the operation draws or chooses its number.
  void BeginBarrier(AnnouncedNumber* barrier);
  void EndBarrier(AnnouncedNumber* barrier);
  // Ends the announcement of the thread's write: the write is visible, or was refused.
  [[gnu::always_inline]] void EndAnnounced(ThreadState* thread, bool is_barrier) {
    thread->announced->in_flight.End(asymmetric_fences_);
    if (is_barrier) EndBarrier(&thread->announced->barrier);
  }
  // Returns when the barriers with positions <= `sequence` are complete. REQUIRES: that number has been drawn, and this thread
  // has announced no smaller one.
  void WaitBarriers(uint64_t sequence) const;
  // Returns when the thread's write, which has drawn `first`, may become visible.
  void WaitForTurn(ThreadState* thread, uint64_t first) const;
  // For a version that a read of the newest state returns: if it belongs to a batch, waits until the whole batch is visible.
  [[gnu::always_inline]] void WaitWhole(const LogEntry& entry) const {
    if (entry.is_batch_member() && barriers_->load(std::memory_order_seq_cst) != 0) WaitWholeLonger(entry.sequence());
  }
  void WaitWholeLonger(uint64_t sequence) const;
  // Chooses a number, and returns when all writes up to this number are visible. All writes that were acknowledged or read before
  // the call have such numbers.
  template <class Choose>
  uint64_t ChooseState(const Choose& choose);
  // The number of a state of the database, which is registered in snapshots_. All writes that were acknowledged or read before
  // the call have numbers up to the result.
  uint64_t RegisterSnapshot();
  uint64_t ChooseLogBound();

  // ---- rotate.cc
  // An arena for a memtable of about this number of entries.
  // `heap`: null for private memory.
  static std::unique_ptr<Arena> CreateArena(uint64_t entries, SharedHeap* heap);
  // An estimate of the number of entries of the next memtable. `before`: its predecessor; null if there is none.
  uint64_t ExpectedEntries(const Memtable* before) const;
  std::shared_ptr<Memtable> NewMemtable(const Memtable* before);
  std::unique_ptr<Memtable> MakeMemtable(uint64_t id, const KeyOrder& order, std::unique_ptr<Arena> arena,
                                         uint64_t entries) const;
  // The memtable of a family other than the default one, and the thread's nodes there. An error if the family was dropped, or if
  // there is no memory.
  Status ChooseMemtable(ThreadState* thread, Memtable* set, uint32_t family, Memtable** memtable, Memtable::NodeBlock** nodes);
  // Begins an extent: the slot is the thread's first in this memtable, or in this segment.
  void BeginExtent(ThreadState* thread, Memtable* memtable, const LogSlot& slot);
  // Adds the thread's uncharged bytes and entries to the memtable's counters. True if the memtable is full.
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
  // Whether Options::bound_space applies.
  bool BoundsSpace() const { return options_.bound_space && !default_family_.kind->needs_space_to_merge; }
  void HoldForSpace(ThreadState* thread);
  bool IsHeldForSpace() const;
  bool SpaceIsShort() const;  // whether all tables in L0 are to be merged at once
  uint64_t SpaceTaken() const;
  uint64_t SpaceUnfilled() const;  // the part of SpaceTaken in segments that are being written that is still unused
  uint64_t BytesNotMerged() const;
  uint64_t CountGains() const;
  // Computes the limit of the space. Called by the compaction thread after each search for work, with whether the search gained
  // space; also by an open and a CompactRange.
  void LookAtSpace(bool gained);
  uint64_t MemtableSize(uint64_t wanted) const;
  // Lets waiting writers continue until the compaction thread has computed the limit again.
  void LetWritersGo() {
    if (BoundsSpace()) space_is_stuck_.store(true, std::memory_order_release);
  }
  uint64_t SleepForWrites(ThreadState* thread, uint64_t ns) const;

  // ---- room.cc
  // Asks the compaction thread for room in a full region, and waits for it for at most Options::no_space_timeout_ms.
  Status WaitForRoom(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot);
  // A number that changes whenever there may be new room.
  uint64_t RoomState() const;
  // One step of the compaction thread. False: there is nothing left to do. REQUIRES: compaction_mutex_, and no background error.
  bool MakeRoom();
  bool RelocateForRoom();
  bool FlushForRoom();
  bool SweepForRoom();
  bool WaitForReaders();
  void NoteDry(uint64_t state);
  // Makes room while writers wait for it. REQUIRES: compaction_mutex_
  void ServeRoom();

  // ---- scan_merge.cc
  // Counts the deleted keys that an iterator passed in one movement.
  void NoteHiddenKeys(uint64_t keys);
  void WantScanMerge();
  // Rotates the memtable if scans passed many deleted keys. Its table and older ones are merged then. `last_merge`: the duration
  // of the last merge.
  void BeginScanMerge(std::chrono::steady_clock::duration last_merge);

  // ---- range_delete.cc
  // The hidden family of range tombstones. Creates it if it does not exist.
  Status RangeFamily(Family** family);
  // Loads the range tombstones from their records. REQUIRES: no other thread reads or writes.
  Status LoadRanges();
  // The range tombstones of the family; null if there are none. REQUIRES: no epoch guard.
  std::shared_ptr<const RangeTombstones> RangesOf(const Family& family) const;
  // REQUIRES: ranges_mutex_. Allocates nothing.
  void InstallRanges(Family* family, std::shared_ptr<const RangeTombstones>* ranges);
  // Frees a replaced set when its readers have left. REQUIRES: no epoch guard, and no write of this thread is announced.
  void RetireRanges(std::shared_ptr<const RangeTombstones> ranges);
  uint64_t CountRanges() const;
  // With a DRAM budget: whether range tombstones take so much memory that the work needed to forget them is done at once.
  bool RangesAreMany() const { return range_bytes_.load(std::memory_order_relaxed) > dram_.ranges / 2; }
  void WaitForRanges(ThreadState* thread);

  // ---- range_sweep.cc
  // Tombstones of one family whose hidden entries are being removed.
  struct RangeRound {
    Family* family = nullptr;  // null: records without a family
    std::vector<RangeTombstones::Tombstone> tombstones;
    // Joined ranges of the tombstones, in ascending order, disjoint; they refer to the tombstones' bounds.
    std::vector<std::pair<Slice, Slice>> stretches;
    size_t next = 0;                      // the index of the next element of stretches
    std::optional<std::string> position;  // where the sweep of that element continues; none: at its begin
  };
  // Makes one step of the removal of entries that range tombstones hide, or ends a round. *stepped: there may be another step.
  // `sweeps`: if false, only tombstones of dropped families are removed.
  // REQUIRES: compaction_mutex_, and no background error.
  Status SweepRanges(bool sweeps, bool* stepped);
  bool BeginRangeRound(bool sweeps);
  Status SweepStretches();
  Status EndRangeRound();
  Status DeleteRangeRecords(const std::vector<std::string>& keys);
  static void JoinStretches(const KeyOrder& order, const std::vector<RangeTombstones::Tombstone>& tombstones,
                            std::vector<std::pair<Slice, Slice>>* stretches);
  // `in_memtable`: whether the record of a tombstone is in the active memtable.
  void RotateForRanges(bool in_memtable);
  // The tombstones that sweeps may apply: durable ones, up to the number *at_most. Null if there are none.
  std::shared_ptr<const RangeTombstones> RangesForSweep(const Family& family, uint64_t* at_most);

  // ---- read.cc
  // Whether a thread with a state may use the short paths of reads.
  bool IsPlainRead(const ReadOptions& options, const Family& family, const ThreadState* thread) const {
    return thread != nullptr && thread->epoch_slot != nullptr && options.snapshot == nullptr &&
           !(options.verify_checksums | options.timestamp.has_value()) && local_cache_ != nullptr && family.is_hashed;
  }
  // The levels that a key is not in, by the filters over hashes of keys.
  struct Excluded {
    const ReadView* view = nullptr;  // its memtables are excluded; null: nothing is. Valid within the epoch guard of the check
    bool l0 = false;                 // its L0, too
    bool all = false;                // the last level, too
    bool by_filter = false;          // with l0: the filter of the last level was asked
  };
  // The result of a lookup in the cache, or in that of the owner: the newest version of the key, which is a put, or the state of
  // its bucket.
  struct Cached {
    const LogEntry* entry = nullptr;
    LookupCache::Miss miss;
    Excluded excluded;  // checked after the lookup
  };
  template <class Observer>
  Cached SearchCache(const Observer& observer, const Family& family, Slice key, uint64_t hash) const;
  // Whether a read of the newest state may return an entry of local_cache_ without further checks, and counts nothing but
  // plain_hits.
  bool IsPlainHit(const Family& family, const LogEntry* cached) const {
    return cached != nullptr && !family.looks_closer.load(std::memory_order_acquire) && cached->type() == EntryType::kPut &&
           !regions_->damage_seen() && (!cached->is_batch_member() || barriers_->load(std::memory_order_seq_cst) == 0);
  }
  // Checks the filters over hashes of keys: those of the memtables and of L0, and the filter of the last level. Stops at the
  // first level that may have the key.
  // REQUIRES: called within an epoch guard; after the lookup in the cache, if the levels are then searched.
  template <class Observer>
  Excluded CheckFilters(const Observer& observer, const Family& family, uint64_t hash) const noexcept;
  template <class Observer>
  static void NoteExcluded(const Observer& observer, const Excluded& excluded);
  // Limits of ThreadState::missing_streak: from kMissesExpected on, a read checks the levels before the cache; kMostMisses is the
  // maximum. A read of a key in the cache resets the streak. A read of a key that is neither in the cache nor excluded by the
  // levels halves it.
  static constexpr uint32_t kMissesExpected = 8;
  static constexpr uint32_t kMostMisses = 31;
  // Whether the filters exclude the key, which is counted. Otherwise their result goes to *cached.
  template <class Observer>
  [[gnu::always_inline]] bool IsPlainMiss(const Observer& observer, const Family& family, uint64_t hash, ThreadState* thread,
                                          Cached* cached) const {
    if (cached->entry != nullptr) {
      thread->missing_streak = 0;
      return false;
    }
    cached->excluded = CheckFilters(observer, family, hash);
    NoteExcluded(observer, cached->excluded);
    const bool is_missing = cached->excluded.all;
    thread->plain_misses.Add(is_missing);
    uint32_t& streak = thread->missing_streak;
    streak = is_missing ? std::min(streak + 1, kMostMisses) : streak / 2;
    return is_missing;
  }
  const LogEntry* UseCached(const SearchKey& target, const LogEntry* cached, LookupTrace* trace) const;
  const LogEntry* FindEntry(const Family& family, const SearchKey& target, uint64_t hash, LookupTrace* trace) const;
  // `Observer`: one of read_observer.h, in all of these functions.
  // Searches the levels that are not excluded, from the newest on.
  template <class Observer>
  const LogEntry* SearchLevels(const Observer& observer, const Family& family, const SearchKey& target, uint64_t hash,
                               const Excluded& excluded, LookupTrace* trace) const;
  // The put, or operand, that `target` selects; null if the key does not exist. Called within an epoch guard. With kMaxSequence:
  // the newest state. Corruption in *status if the search met a damaged pointer, or if `verify` is true and the selected version
  // is damaged.
  // `hash`: of target.key in the family. `cached`: the lookup of the same key in the cache, made within the same guard.
  template <class Observer>
  const LogEntry* FindPut(const Observer& observer, const Family& family, const SearchKey& target, uint64_t hash,
                          const Cached& cached, ThreadState* thread, bool* met_dead, bool verify, Status* status) const;
  // Corruption if `entry` is not a valid entry of a segment. Called within an epoch guard or a pin. Follows no pointer.
  Status VerifyEntry(const LogEntry* entry) const;
  // Gives the put, or null, to `deliver` within an epoch guard, or a merged value outside of a guard.
  template <class Deliver>
  Status ReadKey(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  template <class Observer, class Deliver>
  Status ReadKeyAs(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  // The rest of ReadKey after the cache did not answer. `slot`: a slot of epochs_ that was entered before the lookup in the
  // cache; left by this function.
  template <class Observer, class Deliver>
  Status ReadBehindCache(Observer observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                         Cached cached, ThreadState* thread, std::atomic<uint64_t>* slot, Deliver deliver);
  // For a thread whose reads mostly find no key: whether the filters, which are checked before the cache, exclude the key. Then
  // the read is counted.
  template <class Observer>
  bool IsExpectedMiss(const Observer& observer, const Family& family, uint64_t hash, ThreadState* thread) const;
  // ReadKey for such a thread.
  template <class Deliver>
  Status ReadMissing(const ReadOptions& options, const Family& family, Slice key, ThreadState* thread, Deliver deliver);
  // ReadKey for any options and any set-up of the database.
  template <class Deliver>
  Status ReadAnyKey(const ReadOptions& options, const Family& family, Slice key, Deliver deliver);
  template <class Deliver>
  Status ObserveRead(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver);
  // Reads the newest state. False if a read as of a sequence number has to follow. Called within the guard of the lookup of
  // `cached`.
  template <class Observer>
  bool ReadNewest(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                  const Cached& cached, ThreadState* thread, const LogEntry** entry, Status* status) const;
  // Reads as of the snapshot, or of a number that is registered for this read. `has_operands`: the key is known to have operands.
  // REQUIRES: no epoch guard.
  template <class Observer, class Deliver>
  Status ReadAsOf(const Observer& observer, const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                  bool has_operands, const Deliver& deliver);
  Status GetString(const ReadOptions& options, const Family& family, Slice key, std::string* value);
  Status GetPinned(const ReadOptions& options, const Family& family, Slice key, PinnableSlice* value);
  Status GetReceived(const ReadOptions& options, const Family& family, Slice key, ValueReceiver* value);
  Status LatestSequence(const Family& family, Slice key, uint64_t* sequence);
  // `family(i)`: the family of keys[i]; null after an error, which is in (*statuses)[i].
  template <class FamilyAt>
  void ReadKeys(const ReadOptions& options, const FamilyAt& family, const std::vector<Slice>& keys,
                std::vector<std::string>* values, std::vector<Status>* statuses);
  template <class Observer, class FamilyAt>
  void ReadKeysAs(const Observer& observer, const ReadOptions& options, const FamilyAt& family, const std::vector<Slice>& keys,
                  std::vector<std::string>* values, std::vector<Status>* statuses);
  std::unique_ptr<Iterator> MakeIterator(const ReadOptions& options, const Family& family);

  // ---- merge_read.cc
  void AddVersions(const KeyOrder& order, EntryCursor* cursor, const SearchKey& target, MergeContext* merge) const;
  // Collects all operands of the key up to target.sequence, and the version that they are applied to. `verify`: every operand is
  // read, and no remembered run is used.
  // REQUIRES: the view is pinned, no epoch guard; `merge` is clear.
  void CollectOperands(const ReadView& all, const Family& family, const SearchKey& target, uint64_t hash, bool verify,
                       MergeContext* merge) const;
  void AddFromTable(const PmTable& table, const Family& family, const SearchKey& target, bool verify, MergeContext* merge) const;
  // The value of a key that has operands, or may have had some. REQUIRES: target.sequence is registered, and no epoch guard.
  Status ReadMerged(const Family& family, const SearchKey& target, uint64_t hash, bool verify, std::string* value);

  // ---- flush.cc
  struct PendingFlush {
    std::shared_ptr<Memtable> memtable;
    uint64_t last_announced;  // the memtable is flushed when no write that announced this number or a smaller one is under way
  };
  void FlushLoop();
  void FlushUntilStopped();
  void PrepareArena(const Memtable& like);
  // Waits until `wanted` is true. REQUIRES: *lock holds work_mutex_.
  void WaitIdle(std::unique_lock<std::mutex>* lock, const std::function<bool()>& wanted);
  // False after an error, which ends writing.
  bool FlushOne(const PendingFlush& pending, WriterPressure::Flush* took);
  bool FinishCopies(FlushCopier* copies);
  void MoveToCopies(const PmTable& table);
  void ReleaseFlushedLog(uint64_t boundary);
  // Rotates, flushes and checkpoints everything that was written before the call. *last_id: the id of the last memtable.
  Status FlushWritten(uint64_t* last_id);
  // Like FlushWritten, without the checkpoint.
  Status FlushMemtables(uint64_t* last_id);
  // Like FlushMemtables, also during a close.
  Status FlushAll(uint64_t* last_id);
  Status Closing() const;
  Status CheckpointTables();
  // Like CheckpointTables, and records in the MANIFEST that the database was closed. `sealing`: the result of PrepareSeal.
  Status CheckpointAndClose(const std::vector<Segment*>& sealing);
  Status ListTables(ManifestState* state, std::vector<std::shared_ptr<PmTable>>* tables, uint64_t* lines);
  void OnListed(ManifestState state, const std::vector<std::shared_ptr<PmTable>>& tables, uint64_t lines);
  Status ReserveForTables(const ManifestState& state, const ManifestState& longer);

  // ---- table_orders.cc
  // The cost of planning a merge of lists grows with the square of the number of tables, and a long merge delays the release of
  // space. The limit allows for several sorted runs of many tables, and some tables without a run.
  static constexpr size_t kMaxMergedTables = 80;
  using Orders = std::vector<std::shared_ptr<const TableOrder>>;  // of neighbouring tables in L0, newest first
  // The reason for a merge of sorted runs: iterators are being created; or iterators may be created, while writers leave a CPU
  // idle, or while they pause.
  enum class OrdersFor : uint8_t { kIterators, kIdleCpu, kPause };
  // False: the merge was interrupted for flushes, or because of a close.
  bool MergeTableOrders(OrdersFor whom);
  void ShareOrders();
  // Called by the flush thread once for each flush: whether iterators were created a short time ago.
  bool IteratorsCome();
  uint64_t MostEntriesOfOrder() const;
  // Whether merges into this family's last level follow a sorted run.
  bool GoesByOrder(const Family& family) const;
  // The sorted run of all tables of a merge. Null if there is no memory, or if prefixes do not tell keys apart.
  std::shared_ptr<const TableOrder> MergeOrdersOf(const Family& family, Orders orders);
  // Puts the run `together` in the place of the runs `of` in the view.
  void InstallOrder(const Family& family, const Orders& of, const std::shared_ptr<const TableOrder>& together, bool of_merge);

  // ---- index_file.cc
  // Takes the indexes and the filter of the file INDEX. Returns the families whose levels have an index now.
  // REQUIRES: compaction_mutex_, and no merge has run or waits to be resumed.
  std::set<uint32_t> LoadIndexes();
  void LoadIndexes(const BlockFileReader& file, std::set<uint32_t>* loaded);
  // Called before a last level changes. REQUIRES: compaction_mutex_
  void ForgetIndexFile();
  // Called at the end of a close, after its last commit. An error is logged only.
  void StoreIndexes();

  // ---- compaction_thread.cc
  void CompactionLoop();
  void IndexLastLevels();
  void CompactUntilStopped();
  bool CompactionWanted() const;
  bool WritersPause() const;
  std::chrono::steady_clock::time_point WritersPauseAt() const;
  // False if there was no work for this time. REQUIRES: *lock holds work_mutex_
  bool WaitForWork(std::unique_lock<std::mutex>* lock, std::chrono::steady_clock::duration at_most);
  Status MakeCopies(bool* collapses_next);
  // Postpones all merges: no table of L0 is listed, and the MANIFEST has no room for one. A merge is tried again after a second.
  Status PostponeAll();
  // Postpones a merge or sweep after an error that allows a retry.
  void PostponeMerge(const Status& status);

  // ---- compact_range.cc
  bool CompactionIdle() const;
  Status CompactFamily(const CompactRangeOptions& options, Family* family, const Slice* begin, const Slice* end);

  // ---- compact.cc
  MergeJob MakeJob(uint64_t id, const Family& family, const VersionFilter* filter);
  // The family whose tables are merged next, among those with tables that the MANIFEST lists: first a family with copies of a
  // relocation; then, in a CompactRange, the family with the oldest table; else the family with the most tables. Null: no table
  // is listed.
  // `but`: a family that is left out.
  // REQUIRES: view_mutex_, compaction_mutex_
  Family* ChooseFamily(const Family* but) const;
  struct MergeInput {
    Family* family = nullptr;
    std::vector<std::shared_ptr<PmTable>> tables;  // oldest first
    Orders orders;                                 // sorted runs that cover all of the tables; or none
    uint64_t id = 0;
  };
  // Merges that follow each other: a commit of the MANIFEST ends one and announces the next.
  struct MergeTurn {
    MergeInput now, next;  // next.family is null if no merge follows
    uint64_t entries = 0;  // of the merges that have ended
    bool is_resumed = false;
  };
  // False if there is nothing to merge; input->family is null if no table is listed.
  bool PickMerge(const Family* but, MergeInput* input);
  void Announce(MergeInput* input, ManifestState* state);
  void AnnounceNext(MergeTurn* turn, ManifestState* state);
  Status CompactTables();
  Status MergeTables(MergeTurn* turn);
  Status FinishMerge(Family* family, MergeTurn* turn, const MergeStats& stats);
  // `has_index`: the level has its index already.
  void InstallLastLevel(Family* family, size_t merged_tables, bool has_index = false);
  void TakeEntries(Family* family);
  bool MergeIsUnfinished();
  // `asks`: whether the user's compaction filter is called, if there is one.
  // REQUIRES: compaction_mutex_
  Status SweepFamily(Family* family, const KeyRanges& keys, bool asks);
  // A number below which every live entry is in the last level of its family; 0: not known yet. REQUIRES: compaction_mutex_
  uint64_t MergedBoundary();
  // The same for one family. Every entry in its last level has a smaller number.
  uint64_t MergedBoundary(const Family& family);
  void NoteMerged(const ManifestState& before, const ManifestState& after);

  // ---- compaction_filter.cc
  bool FiltersMerges(const Family& family) const;
  // The filter of a merge; null: no filter is called. REQUIRES: compaction_mutex_
  std::unique_ptr<EntryFilterSource> FilterMerge(const Family& family);
  // The filter of a sweep. `has_ranges`: the sweep may remove entries that range tombstones hide. `asks`: as in SweepFamily.
  std::unique_ptr<EntryFilterSource> FilterSweep(const Family& family, bool everything, bool asks, bool has_ranges);

  // ---- give_back.cc
  // Wakes the flush thread if there are superfluous free segments. REQUIRES: not work_mutex_.
  void NoteSuperfluous();
  // The next time at which GiveBackSpace acts. Used by the flush thread, as is GiveBackSpace.
  std::chrono::steady_clock::time_point NextGiveBack() const;
  // Gives blocks of superfluous segments back, if it is time. REQUIRES: no lock.
  void GiveBackSpace();

  // ---- reclaim.cc
  // Counts the entries of one segment of an earlier session. False if no such segment is left.
  bool AccountOneSegment();
  // Merges, counts and relocates what short sessions left, if it is little data in much space. REQUIRES: compaction_mutex_; the
  // database is being closed, and memtables have entries of compaction filters only.
  void TidyBeforeClose();
  void EndCompactionThread();
  void ReclaimSegments();
  void Release(Segment* segment);
  void ReleaseLater(Segment* segment);
  // Whether flush.cc releases this segment of the log as a whole, so that its entries get no marks.
  bool IsFlushedByCopies(const Segment& segment) const {
    return !options_.index_unified_logging && !segment.holds_copies.load(std::memory_order_relaxed);
  }

  // ---- log_iterator.cc
  void RaiseLogFloor(uint64_t sequence);

  // ---- relocate.cc
  // *relocated: whether there is a new table of copies that is to be merged.
  // `urgent`: a region is full, so the limits do not count.
  Status RelocateSparse(bool* relocated, bool urgent = false);
  Status InstallRelocation(const Relocation& relocation);
  // The originals of a relocation, kept until no reader uses them.
  struct MovedSegments {
    MovedEntries entries;
    std::unordered_set<Segment*> from;
    std::vector<Segment*> retired;  // the segments of `from` that have no live entry
    // Groups of readers that may still use originals: those of the relocation, and those of each addition to `retired`.
    std::atomic<size_t> waiting{1};
  };
  void MoveInCache(PmPtr from, PmPtr to);
  void KeepMoved(MovedEntries entries);
  // Releases the segments that the last relocation emptied, all at once. False while readers may need them.
  bool ReleaseMoved();
  // The same, and waits for readers that are about to leave.
  bool ReleaseMovedWithin(std::chrono::nanoseconds limit);
  Status RelocateAll();
  // Live entries with smaller numbers may be copied now; 0: no entry may. REQUIRES: compaction_mutex_
  uint64_t BoundaryOfCopies();
  // Returns false if relocations have gained nothing for a while. Counts the one that begins. REQUIRES: compaction_mutex_
  bool RelocationsGain();
  // Steps 2 to 5 of relocate.cc. After an error that is not fatal the copies are discarded.
  Status PublishCopies(Relocation* made);

  // ---- collapse.cc
  // Replaces operands that merges met by puts. *collapsed: whether there is a new table of copies that is to be merged.
  Status CollapseOperands(bool* collapsed);
  Status CollapseFamily(const Family& family, std::vector<std::string>* keys, bool* collapsed);
  Status CollapseAll();
  void NoteOperandKeys(const Family& family, std::vector<std::string> keys);

  // ---- restored_tables.cc
  // Gives some restored tables of L0 an index and a sorted run, and continues until `at_least` has passed. False: no restored
  // table is left.
  bool IndexRestoredTables(std::chrono::steady_clock::duration at_least);
  static std::vector<std::shared_ptr<PmTable>> ChooseRestoredTables(const ReadView& view);
  std::shared_ptr<const TableOrder> WalkTable(const PmTable& table, L0IndexWriter* index) const;

  // ---- filter.cc
  // Keeps a view, and every object that it reaches, unchanged.
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
  // Called by the compaction thread: builds a new filter, one step in each call, and more steps until `at_least` has passed.
  // False when there is nothing to do. Without memory the database has no filter, which only makes gets slower.
  bool BuildFilter(std::chrono::steady_clock::duration at_least);
  bool FilterWanted() const;
  enum class FilterStep { kMore, kEnd, kFailed };
  uint64_t KeysThatFit(uint64_t in_use) const;
  FilterStep BeginFilter();
  FilterStep AddLastLevel();
  bool AddEntries(const KeyOrder& order, EntryCursor* cursor, uint64_t count, KeyFilterWriter* writer) const;
  void EndFilter();
  void ReplaceFilter(std::shared_ptr<KeyFilter> filter);
  void RetireFilter(std::shared_ptr<KeyFilter> old);
  void GiveUpFilter();

  // ---- dram.cc
  // The largest size that the lookup cache may have.
  uint64_t MostLookupCache() const;
  void CreateLookupCache();
  // Enlarges the lookup cache if it is crowded. Returns early when a memtable waits for its flush; a later call continues.
  void GrowLookupCache();
  // REQUIRES: cache_size_mutex_. ContinueResize returns false if a memtable waits for its flush, except if `waits` is true.
  void StartGrowth();
  void StartSharing();
  bool ContinueResize(bool waits);
  void ReleaseOldTable();
  bool CacheWantsWork() const {
    if (lookup_cache_ == nullptr) return false;
    if (cache_is_resized_.load(std::memory_order_acquire)) return !resize_waits_.load(std::memory_order_relaxed);
    return lookup_cache_->is_crowded() || cache_should_be_shared_.load(std::memory_order_acquire);
  }
  // Gives memory of an idle database back to the system. False: nothing more can be given back.
  bool GiveBackIdle();
  // The number of writes and gets since the open.
  uint64_t CallsOfUsers() const;
  // The part of the DRAM budget that is left for the lookup cache beside the inner nodes of the last level and the filter.
  uint64_t RoomForCache() const;
  // Shrinks the lookup cache by what the inner nodes took. If that is not enough, has the filter removed. REQUIRES:
  // compaction_mutex_
  void KeepDramBudget();
  bool HasFilter() const;
  uint64_t NodeBytes() const;
  void AddDram(MetricFigures* figures) const;
  uint64_t DramBytes() const;
  static uint64_t MemtableBytes(const Memtable& memtable);

  // For callers that do not hold compaction_mutex_. May be null.
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
  // Whether calls are measured: by a PerfContext of their thread, in histograms, or as samples.
  [[gnu::always_inline]] bool IsObserved() const {
    return __builtin_expect(perf::t_counts | observes_.load(std::memory_order_relaxed), 0) != 0;
  }
  // `value`: nanoseconds if `kind` is a duration.
  void Measure(HistogramKind kind, uint64_t value) const;

  // ---- background.cc
  // Throws std::bad_alloc only before it has changed anything. REQUIRES: view_mutex_
  void InstallView(std::shared_ptr<ReadView> view);
  void NotifyWork();
  // The consequence of the result of `work`; see error_policy.h.
  Outcome OutcomeOf(Work work, const Status& status) const noexcept;
  // Like OutcomeOf. If the outcome is kEndsWriting, the database takes no more writes.
  Outcome Settle(Work work, const Status& status) noexcept;
  Status BackgroundError() const;

  // events.cc: events for the user's functions. The Post functions may be called with any lock held.
  // The logger of Options::info_log. Its lines go through events_ as soon as events_ exists. Before that the user has no handle
  // to use in the call.
  std::unique_ptr<Logger> MakeUsersLogger();
  struct CompletedMerge {
    Status status;
    uint64_t merged = 0, dropped = 0, elapsed_us = 0;
  };
  void PostMemTableSealed(uint64_t id) noexcept;
  // `flushed`: null when the flush begins.
  void PostFlush(uint64_t memtable_id, const std::vector<FlushResult>* flushed) noexcept;
  // `completed`: null when the merge begins.
  void PostCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept;
  void TellOfCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept;
  void PostBackgroundError(const Status& status) noexcept;
  void PostStallCondition() noexcept;

  void Log(const std::string& line) const;

  const Access access_;
  Options options_;
  Options given_;  // the options as they were given, for the options file
  // Options that SetOptions may change. They start with the values of options_.
  struct Changing {
    std::atomic<uint64_t> memtable_size;
    std::atomic<uint32_t> max_immutable_memtables;
    std::atomic<uint32_t> l0_compaction_trigger;
    std::atomic<uint32_t> l0_slowdown_writes_trigger;
    std::atomic<bool> disable_auto_compaction;

    void Begin(const Options& options);
    // The number of tables at which writers are throttled; a lower limit if the size of the last level decides.
    uint32_t SlowdownTrigger() const {
      constexpr uint32_t kLeast = 64;
      const uint32_t given = l0_slowdown_writes_trigger.load(std::memory_order_relaxed);
      return std::max(given == 0 ? kLeast : given, l0_compaction_trigger.load(std::memory_order_relaxed));
    }
    bool MergesByItself() const { return !disable_auto_compaction.load(std::memory_order_relaxed); }
  } changing_;
  std::map<uint32_t, std::map<std::string, std::string>> changed_foreign_;  // by family, for the options file; families_mutex_
  DramBudget dram_;                                                         // set when the number of regions is known
  const std::string name_;                                                  // the path that the program gave
  const std::string path_;                         // the same, absolute: the working directory may change
  DatabaseFile place_;                             // the content of the file DATABASE; its identity is 0 if there is no such file
  const bool measures_;                            // Options::histograms
  mutable std::atomic<bool> observes_{measures_};  // or calls are sampled (sampled_latencies.h)
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<NewDatabase> creation_;  // during the open that creates the database
  posix::Fd read_lock_;                    // used instead of lock_ by an open for reading only
  std::unique_ptr<Logger> logger_;
  std::unique_ptr<RegionSet> regions_;
  std::unique_ptr<SegmentAllocator> segments_;
  Family default_family_;
  std::unique_ptr<ColumnFamilyHandle> default_handle_;
  std::unique_ptr<std::atomic<Family*>[]> by_id_;  // kMaxFamilies elements; null: no such family, or the family was purged
  std::mutex drop_mutex_;
  std::mutex families_mutex_;
  std::vector<std::shared_ptr<Family>> families_;  // all families except the default one, dropped ones included; families_mutex_
  uint32_t last_family_id_ = 0;                    // the last id that was given to a user's family; manifest_mutex_
  std::atomic<bool> purge_waits_{false};           // a family was dropped and is not yet purged
  std::atomic<uint64_t> families_forgotten_{0};    // the number of purges that ended
  // The memory of structures that readers in other processes use. It outlives them.
  std::unique_ptr<SharedHeap> owned_heap_;
  std::atomic<SharedHeap*> live_heap_{nullptr};  // stored once, when the first reader has come
  CacheShare cache_share_;                       // the share of the lookup cache; cache_size_mutex_
  std::unique_ptr<LookupCache> lookup_cache_;    // may be null
  LookupCache* local_cache_ = nullptr;  // lookup_cache_ if there is only one region and no injected read latency; else null
  const bool asymmetric_fences_ = HasAsymmetricFences();
  std::atomic<bool> update_is_awaited_{false};  // a thread sleeps until there is an update; wait_for_update.cc
  // The numbers that readers in other processes need. The board outlives all structures that announce or draw numbers.
  const LiveBoardMemory board_memory_;
  LiveBoard* const board_ = board_memory_.get();
  // LiveBoard::next_sequence and LiveBoard::barriers of this database. A live reader has pointers to those of the owner, and does
  // not store to them.
  std::atomic<uint64_t>* next_sequence_ = &board_->next_sequence;
  std::atomic<uint64_t>* barriers_ = &board_->barriers;
  mutable LiveReaders live_readers_{board_};
  std::unique_ptr<LocalServer::Handler> live_service_;
  std::unique_ptr<LocalServer> live_server_;
  std::atomic<bool> ranges_are_published_{false};
  std::atomic<LocalServer*> telling_server_{nullptr};  // live_server_, once it is known to other threads
  // Only with Access::kLive. It outlives the views, which hold epochs of the owner.
  std::unique_ptr<LiveReader> live_reader_;
  WriterRuns writer_runs_;
  std::mutex follow_mutex_;
  std::map<uint32_t, uint64_t> families_not_given_;  // ids and numbers of families that the open did not name; follow_mutex_
  std::vector<std::shared_ptr<Family>>
      replaced_families_;  // their ids have other families, and they are to be retired; follow_mutex_
  // Of a live reader: views that are to be retired, and the families that they need; view_mutex_.
  struct OldView {
    std::shared_ptr<const ReadView> view;
    std::shared_ptr<std::vector<std::shared_ptr<Family>>> families;
  };
  std::vector<OldView> unretired_views_;
  std::atomic<const LookupCache::ForeignTable*> foreign_cache_{nullptr};  // of the owner; lives as long as the view that names it
  uint64_t followed_view_ = 0;    // offset of the block that current_view_ is a copy of; follow_mutex_
  uint64_t followed_ranges_ = 0;  // the same for range tombstones; follow_mutex_
  std::atomic<uint64_t> followed_version_{0};
  std::atomic<uint64_t> followed_growths_{0};
  mutable EpochManager epochs_;
  std::shared_ptr<MergeJournal> journal_;  // null: no family needs it
  mutable PerThread<ThreadState> threads_{[this](uint32_t index, ThreadState* thread) { InitThread(index, thread); }};
  std::mutex spare_barrier_mutex_;  // for LiveBoard::spare_barrier, which threads without a ThreadState share
  SnapshotList snapshots_;
  SharedWritePace pace_;

  alignas(128) mutable std::atomic<uint64_t> published_below_{0};  // every write with a smaller number is visible
  alignas(128) std::atomic<Memtable*> active_{nullptr};
  std::atomic<const ReadView*> view_{nullptr};
  std::atomic<uint32_t> immutable_count_{0};
  std::atomic<uint64_t> flushed_memtable_id_{0};  // memtables up to this id are in L0 or below
  std::atomic<bool> write_failed_{false};
  const ForkMark fork_mark_{&write_failed_};
  std::atomic<bool> iterator_came_{false};         // since the last flush
  std::atomic<uint64_t> space_limit_{UINT64_MAX};  // limit of SpaceTaken() - SpaceUnfilled(), with bound_space
  std::atomic<bool> space_is_stuck_{false};        // the last search has freed no space, so writers do not wait
  std::atomic<uint32_t> held_writers_{0};
  std::atomic<uint64_t> space_looks_{0};
  std::atomic<uint64_t> flushed_at_look_{0};  // flushed_memtable_id_ at the last search
  // Every entry with a larger number is where it was written. Changed under compaction_mutex_.
  std::atomic<uint64_t> log_floor_{0};

  L0Load l0_load_;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const ReadView> current_view_;  // owns *view_
  uint64_t next_memtable_id_ = 1;
  uint64_t last_rotated_id_ = 0;
  uint64_t active_first_sequence_ = 1;  // writes of the active memtable have larger numbers
  std::vector<PendingFlush> pending_flushes_;
  uint64_t flushed_boundary_ = 0;            // the boundary of the last table that was flushed; used by the flush thread
  std::unique_ptr<L0IndexWriter> l0_index_;  // used by the flush thread
  // For this number of flushes after an iterator, sorted runs are merged for the next iterator.
  static constexpr uint32_t kFlushesPerIterator = 16;
  uint32_t flushes_since_iterator_ = kFlushesPerIterator;  // used by the flush thread

  static constexpr size_t kKeptArenasOfBudget = 2;  // dram_budget.cc counts them
  size_t KeptArenas() const {
    return dram_.is_set() ? kKeptArenasOfBudget : std::min<size_t>(options_.max_immutable_memtables, ArenaPool::kMost - 1) + 1;
  }
  // The number of bytes of a kept arena that stay allocated.
  uint64_t KeptArenaBytes() const { return std::min<uint64_t>(2 * changing_.memtable_size, dram_.kept_arena); }
  std::mutex ranges_mutex_;                     // guards the tombstones of all families
  std::atomic<uint64_t> range_bytes_{0};        // bytes of the tombstones; changed under ranges_mutex_
  std::atomic<Family*> range_family_{nullptr};  // set once
  std::atomic<uint64_t> next_range_record_{1};
  std::atomic<bool> ranges_wait_{false};          // there are tombstones, or records without a family
  std::optional<RangeRound> range_round_;         // this and the next three members: compaction_mutex_
  std::vector<std::string> stale_range_records_;  // keys of records of families that do not exist
  bool range_in_memtable_ = false;                // the record of a tombstone was seen in the active memtable
  std::chrono::steady_clock::time_point range_in_memtable_since_;

  std::mutex cache_size_mutex_;                // for resizing and shrinking the lookup cache
  std::atomic<bool> cache_is_resized_{false};  // a resize has begun; changed under cache_size_mutex_
  std::atomic<bool> resize_waits_{false};      // the resize waits for readers of the old table; changed under cache_size_mutex_
  std::atomic<bool> cache_should_be_shared_{false};   // a resize will move the table to the shared heap
  std::atomic<bool> levels_should_be_shared_{false};  // the compaction thread will copy what was made before to the heap
  bool orders_are_shared_ = false;                    // sorted arrays are in the shared heap; of the flush thread
  enum class OldTable : uint8_t { kInUse, kMoved, kRetired, kLeft };
  std::atomic<OldTable> old_table_{OldTable::kInUse};   // the state of the old table during a resize
  uint64_t resized_from_bytes_ = 0;                     // cache_size_mutex_
  std::atomic<bool> space_is_superfluous_{false};       // the flush thread has blocks to give back
  std::chrono::steady_clock::time_point gave_back_at_;  // used by the flush thread
  uint64_t idle_calls_ = 0;   // CallsOfUsers at the last check; this and idle_rounds_ are used by the flush thread
  uint32_t idle_rounds_ = 0;  // consecutive checks that found the same number

  ArenaPool arenas_;

  std::mutex filter_mutex_;
  std::shared_ptr<KeyFilter> current_filter_;      // owns *filter_
  std::shared_ptr<KeyFilter> shared_filter_;       // the filter that views for live readers name; view_mutex_
  std::shared_ptr<KeyFilter> next_filter_;         // the filter that is being built; changed by the compaction thread only
  std::atomic<const KeyFilter*> filter_{nullptr};  // has the keys of the last level, see filter.cc; null: there is no filter
  uint64_t session_seed_ = 0;                      // of the heights of entries that this open writes
  uint64_t stamp_at_open_ = 0;                     // Manifest::stamp that this open has found
  bool index_file_is_true_ = false;                // INDEX describes the last levels as they are; compaction_mutex_
  bool last_levels_changed_ = false;               // since the open; compaction_mutex_
  bool levels_are_indexed_ = false;                // IndexLastLevels has been called; compaction_mutex_
  bool index_file_has_filter_ = false;             // if index_file_is_true_; compaction_mutex_
  std::shared_ptr<KeyFilter> stored_filter_;       // of INDEX: has the keys of the last levels as they are; compaction_mutex_
  bool compaction_idle_ = false;                   // the compaction thread has had no work for some time
  bool uses_filter_ = false;                       // this and the members below are changed by the compaction thread only
  std::atomic<bool> filter_given_up_{false};       // no new filter is built
  std::atomic<bool> filter_must_go_{false};        // the inner nodes need the filter's memory
  uint64_t filter_room_ = UINT64_MAX;              // the number of entries up to which a small filter is enough
  uint64_t filter_built_keys_ = 0;
  std::optional<std::string> filter_position_;  // the key at which the walk along the last level continues; none: the first
  uint64_t filter_sequence_ = 0;                // the version at which the walk continues
  uint32_t filter_family_ = 0;                  // the family in which the walk continues

  std::mutex manifest_mutex_;
  Manifest manifest_;
  ManifestState manifest_state_;
  // The family that a merge uses, as the only one of the thread that holds compaction_mutex_. Null: unknown.
  const Family* only_used_family_ = nullptr;

  std::mutex compaction_mutex_;
  // The kind of the CompactRange that is running; compaction_mutex_. If a sweep of the whole level follows, the sweep calls the
  // compaction filter, and the merges before it do not.
  enum class ManualCompaction : uint8_t { kNone, kBeforeSweep, kManual } manual_compaction_ = ManualCompaction::kNone;
  const Family* manual_family_ = nullptr;  // the family of the CompactRange; compaction_mutex_
  std::mutex write_if_newest_mutex_;
  bool filter_writes_ended_ = false;               // write_if_newest_mutex_
  bool tables_wait_for_index_ = false;             // some tables of L0 have no index; compaction_mutex_
  std::atomic<bool> restored_orders_wait_{false};  // restored tables got sorted runs, which the flush thread is to merge
  // A merge has begun, perhaps before a crash, and has not ended. Changed under compaction_mutex_.
  std::atomic<bool> resume_merge_{false};

  mutable std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::atomic<bool> stopping_{false};
  const std::atomic<bool>* job_stop_ = &stopping_;  // of merges and relocations; compaction_mutex_
  std::atomic<bool> tidying_stops_{false};          // TidyBeforeClose takes too long
  std::atomic<bool> flush_ends_{false};             // the flush thread ends once all memtables are flushed
  bool flush_running_ = false;
  bool flush_thread_ended_ = false;  // no more memtables are flushed
  bool compaction_thread_ended_ = false;
  bool compaction_running_ = false;
  uint32_t waiting_for_compaction_ = 0;                    // calls of WaitForCompaction
  Status postponed_merge_;                                 // the reason; OK: no merge is postponed
  std::chrono::steady_clock::time_point postponed_until_;  // the time of the next attempt
  std::chrono::steady_clock::time_point last_flush_;       // initially long ago
  std::chrono::steady_clock::duration flush_interval_{0};  // the time between the last two flushes
  WriterPressure pressure_{std::max(1u, std::thread::hardware_concurrency())};
  // Null if the user gave neither listeners nor an info_log.
  std::unique_ptr<EventQueue> events_;
  WriteStallCondition told_condition_ = WriteStallCondition::kNormal;  // as listeners know it; used by the event thread
  std::thread flush_thread_;
  std::thread compaction_thread_;
  Status background_error_;
  // The background error if there is no memory for another one.
  Status out_of_memory_ = Status::ReadOnly("no DRAM for background work; close the database, free some, and open it again");
  bool closed_ = true;  // false from the start of the background threads to the close
  Status close_status_;

  std::shared_ptr<MovedSegments> moved_;    // originals of the last relocation; null if all are released; compaction_mutex_
  RelocationProgress relocation_progress_;  // compaction_mutex_
  std::atomic<bool> moved_waits_{false};    // whether moved_ is set; checked at intervals
  // By family: keys whose operands wait to be collapsed. compaction_mutex_
  std::map<uint32_t, std::vector<std::string>> operand_keys_;
  std::vector<bool> purged_families_;       // by id: families whose entries are being marked dead; empty: none. compaction_mutex_
  std::vector<Segment*> unpurged_;          // segments that may have entries of these families; compaction_mutex_
  std::vector<Segment*> unaccounted_;       // segments of earlier sessions whose entries are not counted yet; compaction_mutex_
  std::atomic<uint64_t> hidden_keys_{0};    // deleted keys that scans passed since the last merge for scans
  std::atomic<bool> scans_wait_{false};     // scans passed many deleted keys
  std::atomic<uint64_t> scan_merge_id_{0};  // tables up to this id are merged for scans
  // The earliest time of the next merge for scans; used by the compaction thread.
  std::chrono::steady_clock::time_point next_scan_merge_;
  std::atomic<uint32_t> next_look_for_idle_{0};  // the thread index at which the search for an idle thread begins
  std::atomic<uint64_t> taken_segments_{0};      // open segments that were taken from their threads
  std::atomic<uint64_t> adopted_segments_{0};    // taken segments that have another owner, or were sealed or released
  std::atomic<uint32_t> waiting_for_room_{0};    // writers that wait for room
  std::atomic<uint64_t> dry_rounds_{0};          // rounds of MakeRoom that found nothing to do
  std::atomic<uint64_t> dry_state_{0};           // RoomState at the last such round
  std::atomic<int64_t> dry_ms_{0};               // the time of the last such round
  // Of the last sweep: flushed_memtable_id_ and the oldest snapshot; compaction_mutex_.
  std::pair<uint64_t, uint64_t> swept_for_room_{UINT64_MAX, 0};
  std::atomic<int32_t> held_segments_{0};  // retired, and not released yet, since readers may use them

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
