// LiveDB: the DB that OpenForReadOnly returns beside a process that has the database open for writing.
// docs/design/0024-live-readers.md
//
// EACH READ  1 follow the owner: its newest view, tombstones and parts of regions  2 read, as in any database  3 check that what
//            was read was valid. If a region grew meanwhile, the read may have met a pointer into a part that is not mapped here:
//            it is repeated. If this reader has expired, the result is Expired.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "db/read_only_db.h"

namespace braiddb {

// A key that stays as it is while reads, which may be repeated, write to `value`.
class KeptKey {
 public:
  KeptKey(Slice key, const std::string& value) : key_(key) {
    const std::less_equal<const char*> is_before;
    if (__builtin_expect(is_before(value.data(), key.data()) && is_before(key.data(), value.data() + value.size()), 0)) {
      copy_.assign(key);
      key_ = copy_;
    }
  }
  KeptKey(const KeptKey&) = delete;
  KeptKey& operator=(const KeptKey&) = delete;
  Slice slice() const { return key_; }

 private:
  Slice key_;
  std::string copy_;
};

class LiveDB final : public ReadOnlyDB {
 public:
  explicit LiveDB(std::unique_ptr<DBImpl> core) : core_(std::move(core)) {}

  Status Close() override { return core_->Close(); }
  Status Get(const ReadOptions& options, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override;
  Status GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) override;
  Status GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override;
  Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return core_->DefaultColumnFamily(); }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) override;
  Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  bool GetProperty(std::string_view property, std::string* value) override;
  bool GetIntProperty(std::string_view property, uint64_t* value) override;
  uint64_t GetLatestSequenceNumber() const override { return core_->GetLatestSequenceNumber(); }
  Status GetUpdatesSince(uint64_t, std::unique_ptr<TransactionLogIterator>*) override;
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override;
  Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) override {
    return core_->WaitForUpdate(sequence, timeout, latest);
  }
  const Options& GetOptions() const override { return core_->GetOptions(); }

  // The number of iterators, snapshots and pinned values that exist.
  uint64_t users() const { return users_.load(std::memory_order_acquire); }
  // Whether the process that was attached to has the database open, and this reader has not expired.
  bool IsAttached() const { return core_->CheckLive().ok() && !core_->live_reader_->IsDisconnected(); }
  Status Follow();
  const std::string& GetName() const override { return core_->GetName(); }

 private:
  friend class LiveIterator;
  // Calls `read`, which returns a Status, until its result is valid.
  template <class Read>
  Status ReadValidly(const Read& read);
  static constexpr size_t kMostCopied = 512;
  // A get that the owner's cache answers, in the steps that such a read needs, so that the CPU begins the next get while it waits
  // for this one. False: the get is to be made by ReadValidly; `deliver` may have been called.
  template <class Deliver>
  bool ReadHit(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver) const;
  // Whether what was read since the last FollowOwner is valid. `grown`: set if a region grew, and the read is to be repeated.
  Status IfThere(ColumnFamilyHandle* handle, const Status& result) const;
  Status Validate(uint64_t growths, bool* grown) const;
  template <class Read>
  std::vector<Status> ReadManyValidly(size_t keys, const Read& read);

  // Counts the pin of a slice that was read.
  Status CountPin(Status status, PinnableSlice* value);

  const std::unique_ptr<DBImpl> core_;
  std::atomic<uint64_t> users_{0};
};

}  // namespace braiddb
