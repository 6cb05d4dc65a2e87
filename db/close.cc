// Closing a database.
#include <chrono>

#include "db/db_impl.h"
#include "db/new_database.h"  // for the destructor
#include "db/no_memory.h"
#include "util/sync_point.h"

namespace braiddb {

void DBImpl::operator delete(DBImpl* db, std::destroying_delete_t) {
  if (db->fork_mark_.is_in_child()) return;
  db->~DBImpl();
  static_assert(alignof(DBImpl) > __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  ::operator delete(static_cast<void*>(db), std::align_val_t(alignof(DBImpl)));
}

DBImpl::~DBImpl() {
  Status ignored = Close();
  (void)ignored;  // the error is in the log; a caller that needs it calls Close
  // If Close ran out of memory, the event thread still runs; its functions use members that are destroyed below.
  if (events_ != nullptr) events_->Stop();
  EndServing();  // if Close ran out of memory before
  view_.store(nullptr);
  current_view_.reset();
  pending_flushes_.clear();
  // Old views own memtables, whose deleters return arenas to this object. So they are freed while all members exist.
  for (int round = 0; round < 3 && epochs_.Reclaim() > 0; ++round) {
  }
  // Last levels retire the objects that they free, so they are destroyed before the epochs.
  default_family_.last_level.reset();
  for (const auto& family : families_) family->last_level.reset();
}

// Refuses all writes from here on: the MANIFEST says that the database was closed, so a later write would be lost.
void DBImpl::EndWrites() {
  const std::lock_guard lock(work_mutex_);
  if (background_error_.ok()) background_error_ = Status::Aborted("the database in " + path_ + " is closed; open it again");
  write_failed_.store(true, std::memory_order_release);
}

// Waits for what the thread does before it ends, for as long as a user may wait for a close.
void DBImpl::EndCompactionThread() {
  std::chrono::milliseconds most{1000};
  BRAIDDB_SYNC_POINT_ARG("DBImpl::EndCompactionThread", &most);
  {
    std::unique_lock lock(work_mutex_);
    work_changed_.wait_for(lock, most, [this] { return compaction_thread_ended_; });
  }
  tidying_stops_.store(true, std::memory_order_release);
  compaction_thread_.join();
}

// STEPS   1 flush all memtables  2 end the compaction thread, after it has released what short sessions left; a user's function
//         that waits for it gets Aborted  3 flush what compaction filters wrote until then, and end the flush thread  4 deliver
//         the events so far; later events wait for 6  5 store what makes the next open fast  6 refuse writes, and deliver the
//         remaining events.
// 4 and 6 come to an end: they do not wait for events that user's functions cause during delivery.
// A merge that runs during 2 asks filters, and then keeps the older version of a key. So their writes are refused only behind it.
Status DBImpl::Close() try {
  if (fork_mark_.is_in_child()) return InChild();
  if (closed_) return close_status_;
  closed_ = true;
  if (access_ == Access::kLive) return close_status_ = CloseLive();
  if (is_read_only()) return close_status_ = CloseReadOnly();
  close_status_ = Status::MemoryLimit({});  // the result if an allocation below fails
  Status status;
  const auto flush = [this, &status] {
    uint64_t last_id = 0;
    try {
      if (!write_failed_.load(std::memory_order_acquire)) status = FlushAll(&last_id);
    } catch (const std::bad_alloc&) {
      status = NoMemory();  // the threads must be joined all the same
    }
  };
  flush();
  stopping_.store(true, std::memory_order_release);
  NotifyWork();
  EndCompactionThread();
  EndFilterWrites();
  if (status.ok()) flush();
  flush_ends_.store(true, std::memory_order_release);
  NotifyWork();
  flush_thread_.join();
  if (events_ != nullptr) events_->Pause();  // until here the user's functions may use the database
  if (status.ok()) status = BackgroundError();
  std::vector<Segment*> sealing;
  if (status.ok()) {
    threads_.ForEach([&](ThreadState& thread) {
      if (Segment* const segment = thread.writer.PrepareSeal(segments_.get()); segment != nullptr) sealing.push_back(segment);
    });
  }
  epochs_.Reclaim();
  if (status.ok()) ReleaseMoved();
  if (status.ok()) status = default_family_.last_level->Close();
  for (const auto& family : families_) {
    if (status.ok() && !family->dropped.load(std::memory_order_relaxed)) status = family->last_level->Close();
  }
  if (status.ok()) status = segments_->FreeDeferred(true);
  if (status.ok()) status = CheckpointAndClose(sealing);
  if (status.ok()) StoreIndexes();
  close_status_ = status;
  EndWrites();
  EndServing();
  Log("close: " + status.ToString());
  if (events_ != nullptr) events_->Stop();
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();  // the next open replays unflushed entries
}

}  // namespace braiddb
