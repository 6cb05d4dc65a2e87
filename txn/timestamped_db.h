// TimestampedDB: a database with at least one column family with user-defined timestamps.
// docs/design/0023-user-timestamps.md
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "txn/history_limits.h"
#include "txn/stacked_db.h"
#include "txn/timestamped_batch.h"
#include "txn/timestamped_family.h"

namespace braiddb {

// Calls for families without timestamps go to the base.
// Thread safety: as DB.
class TimestampedDB final : public StackedDB<DB> {
 public:
  // The families with timestamps, by id.
  using Timestamped = std::map<uint32_t, std::shared_ptr<TimestampedFamily>>;

  TimestampedDB(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles, const Timestamped& timestamped);
  ~TimestampedDB() override;
  // Loads the limits of history. `existing`: the families that the database had before this open; null if all had been there.
  Status LoadLimits(const std::vector<std::string>* existing);
  // Removes all versions that are newer than the timestamp.
  Status Trim(Slice timestamp);
  // The options of a family with timestamps, with the filter that trims its history.
  static void AddHistoryFilter(const std::shared_ptr<TimestampedFamily>& family, const CompactionFilter** filter,
                               std::shared_ptr<CompactionFilterFactory>* factory);

  using StackedDB::CompactRange;
  using StackedDB::Delete;
  using StackedDB::DeleteRange;
  using StackedDB::Get;
  using StackedDB::GetLatestSequenceForKey;
  using StackedDB::Merge;
  using StackedDB::MultiGet;
  using StackedDB::NewIterator;
  using StackedDB::Put;

  Status Close() override;

  // ---- Writes
  Status Put(const WriteOptions& options, Slice key, Slice value) override;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override;
  Status Delete(const WriteOptions& options, Slice key) override;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) override;
  Status Merge(const WriteOptions& options, Slice key, Slice operand) override;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) override;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end) override;
  Status Write(const WriteOptions& options, const WriteBatch& batch) override;
  Status PutAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value) override;
  Status DeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp) override;
  Status SingleDeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp) override;
  Status DeleteRangeAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end, Slice timestamp) override;

  // ---- Reads
  Status Get(const ReadOptions& options, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override;
  Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) override;
  Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) override;
  Status GetAt(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
               std::string* timestamp) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::vector<Status> MultiGetAt(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                 const std::vector<Slice>& keys, std::vector<std::string>* values,
                                 std::vector<std::string>* timestamps) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override;
  Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) override;
  Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) override;

  // ---- Families, compactions, history
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            std::unique_ptr<ColumnFamilyHandle>* handle) override;
  Status DropColumnFamily(ColumnFamilyHandle* family) override;
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) override;
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                      const Slice* end) override;
  Status IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, Slice ts_low) override;
  Status GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts_low) override;

 private:
  // The family with timestamps; null if the family has none, or the handle is null.
  std::shared_ptr<TimestampedFamily> Find(const ColumnFamilyHandle* family) const;
  std::shared_ptr<TimestampedFamily> Find(uint32_t id) const;
  void Add(uint32_t id, std::shared_ptr<TimestampedFamily> family);
  void Remove(uint32_t id);
  // An error if the family was dropped. With increase_mutex_, the family then also exists until the mutex is unlocked.
  Status CheckExists(const ColumnFamilyHandle& handle) const;
  void DetachAll();
  // OK if the family has timestamps and this is one.
  static Status Check(const std::shared_ptr<TimestampedFamily>& family, const ColumnFamilyHandle* handle, Slice timestamp);
  // The same for the timestamp of a read.
  static Status CheckRead(const TimestampedFamily& family, const ColumnFamilyHandle& handle, const ReadOptions& options);
  // Finds the version of the key that the options see. *found is then its stored entry. `cursor`: an iterator over stored entries
  // of the family, or null for a new one.
  Status FindVersion(const ReadOptions& options, ColumnFamilyHandle* handle, const TimestampedFamily& family, Slice key,
                     std::unique_ptr<Iterator>* cursor);
  // As MultiGetAt, with a snapshot in the options.
  void GetEach(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families, const std::vector<Slice>& keys,
               std::vector<std::string>* values, std::vector<std::string>* timestamps, std::vector<Status>* statuses);
  Status PutVersion(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value,
                    uint8_t kind);
  // The database's snapshot, released at the end.
  class OwnSnapshot;

  const FindTimestamped find_ = [this](uint32_t id) { return Find(id); };
  HistoryLimits limits_;
  std::mutex increase_mutex_;  // one change of a limit, or of the set of families, at a time
  // Shared by writes to families with timestamps; exclusive for deletions of ranges, which read and then write.
  std::shared_mutex writes_mutex_;
  mutable std::shared_mutex families_mutex_;
  // families_mutex_; a dropped family stays until another family gets its id, since handles may read it
  Timestamped timestamped_;
};

}  // namespace braiddb
