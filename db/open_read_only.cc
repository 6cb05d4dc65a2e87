// Opening for reading only: an ordinary open of a private image of the files.
//
// WHY NOTHING CHANGES  The regions are mapped privately (RegionSet::OpenReadOnly). Recovery redoes, replays and links as always,
//   and its stores stay in this process. The directory, LOCK and the parts are opened to read. The open writes no log and no
//   options file.
// WHY NO OTHER PROCESS WRITES  Shared locks on LOCK and on the directory of each region exclude the exclusive locks of a writer.
//   The exclusion is needed: pages into which this process has not stored are those of the file, so it would see parts of foreign
//   writes.
// WHY NO THREAD WRITES  There is no flush thread and no compaction thread, and write_failed_ is set. Every write, flush and
//   compaction checks this flag first.
#include <pthread.h>

#include <chrono>

#include "check/check_files.h"
#include "db/db_impl.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// During a resize of the lookup cache, the interval between two checks whether the last reader has left the old table.
constexpr std::chrono::milliseconds kPauseForReaders{20};

}  // namespace

Status DBImpl::FindFiles(const std::vector<ColumnFamilyDescriptor>& families) {
  bool exists = false;
  Status status = JudgePlace(&exists);
  BRAIDDB_SYNC_POINT("DBImpl::FindFiles");
  if (status.ok()) status = LockForReading(path_, &read_lock_);
  // Repeated under the lock: another process may have removed the database meanwhile.
  if (status.ok()) status = JudgePlace(&exists);
  if (!status.ok()) return status;
  if (options_.info_log) logger_ = MakeUsersLogger();
  if (options_.verify_at_open) status = CheckBeforeOpen(families);
  return status.ok() ? RegionSet::OpenReadOnly(MakeRegionOptions(), &regions_) : status;
}

Status DBImpl::CheckReplayed() const {
  if (access_ != Access::kReadMerely || replayed_entries_ == 0) return Status::OK();
  return Status::Corruption("the log has " + std::to_string(replayed_entries_) + " updates that must be replayed, " +
                            "and error_if_wal_file_exists is set; open the database for writing, and close it");
}

void DBImpl::StartReading() {
  background_error_ = Status::NotSupported("Not supported operation in read only mode.");  // RocksDB's text
  write_failed_.store(true, std::memory_order_release);
  if (options_.info_log) events_ = std::make_unique<EventQueue>(std::vector<std::shared_ptr<EventListener>>());
  compaction_thread_ = std::thread([this] { PrepareReads(); });
  closed_ = false;
}

// Builds the indexes and the filter, which make reads faster. If a crash interrupted a merge, the merge stays unfinished. The
// lists of its tables lead into the last level, so only the lookup cache is grown.
void DBImpl::PrepareReads() try {
  pthread_setname_np(pthread_self(), "braid-index");
  std::lock_guard lock(compaction_mutex_);
  const bool is_merging = resume_merge_.load(std::memory_order_acquire);
  std::set<uint32_t> loaded;
  if (!is_merging) loaded = LoadIndexes();
  for (uint32_t id = 0; id < kMaxFamilies && !is_merging && !stopping_.load(std::memory_order_acquire); ++id) {
    Family* const family = FindFamily(id);
    if (family == nullptr) continue;
    TakeEntries(family);
    if (family->l1_entries.load() > 0) InstallLastLevel(family, 0, loaded.contains(id));
  }
  while (!stopping_.load(std::memory_order_acquire) && IndexRestoredTables({})) {
  }
  if (!is_merging) (void)MergeTableOrders(OrdersFor::kPause);
  while (!stopping_.load(std::memory_order_acquire) && BuildFilter(std::chrono::milliseconds(1))) {
  }
  const auto wanted = [this] { return stopping_.load(std::memory_order_acquire) || CacheWantsWork(); };
  while (!stopping_.load(std::memory_order_acquire)) {
    GrowLookupCache();
    std::unique_lock work(work_mutex_);
    if (cache_is_resized_.load(std::memory_order_acquire)) {
      work_changed_.wait_for(work, kPauseForReaders, wanted);
    } else {
      work_changed_.wait(work, wanted);
    }
  }
} catch (const std::bad_alloc&) {
}

Status DBImpl::CloseReadOnly() {
  stopping_.store(true, std::memory_order_release);
  NotifyWork();
  compaction_thread_.join();
  epochs_.Reclaim();
  Log("close: " + path_ + " was open for reading only");
  if (events_ != nullptr) events_->Stop();
  return Status::OK();
}

}  // namespace braiddb
