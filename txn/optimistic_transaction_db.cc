// Optimistic transactions: nothing is locked until the commit, which looks whether another write came between.
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "db/no_memory.h"
#include "txn/batch_keys.h"
#include "txn/stacked_db.h"
#include "txn/transaction_base.h"

namespace braiddb {
namespace {

// A lock of four bytes: a commit may take very many at once.
class WordLock {
 public:
  void lock() {
    while (taken_.exchange(1, std::memory_order_acquire) != 0) taken_.wait(1, std::memory_order_relaxed);
  }
  void unlock() {
    taken_.store(0, std::memory_order_release);
    taken_.notify_one();
  }

 private:
  std::atomic<uint32_t> taken_{0};
};

// Locks for the time of a commit or write. Keys share them by hash.
class CommitLocks {
 public:
  // Throws std::bad_alloc before it has locked anything.
  class Guard {
   public:
    template <class Keys, class KeyOf>
    Guard(CommitLocks* locks, const Keys& keys, const KeyOf& key_of) : locks_(locks) {
      held_.reserve(keys.size());
      for (const auto& key : keys) held_.push_back(KeyHash(key_of(key)) % kLocks);
      std::sort(held_.begin(), held_.end());  // in one order, so that no two wait for each other
      held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
      for (const size_t index : held_) locks_->locks_[index].lock();
    }
    ~Guard() {
      for (const size_t index : held_) locks_->locks_[index].unlock();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CommitLocks* const locks_;
    std::vector<size_t> held_;
  };

 private:
  static constexpr size_t kLocks = 1024;
  std::array<WordLock, kLocks> locks_;
};

class OptimisticTransaction final : public TransactionBase {
 public:
  OptimisticTransaction(DB* base, CommitLocks* locks, const WriteOptions& write_options,
                        const OptimisticTransactionOptions& options)
      : TransactionBase(base, write_options, 0), locks_(locks) {
    if (options.set_snapshot) SetSnapshot();
  }
  ~OptimisticTransaction() override { End(); }

  uint64_t GetID() const override { return id_; }

  // ORDER   1 lock  2 compare  3 write  4 unlock. Other writes are before 2 or behind 4, since they lock, too.
  Status Commit() override try {
    Status status = CheckActive();
    if (!status.ok()) return status;
    {
      const CommitLocks::Guard guard(locks_, protected_keys(), [](const auto& entry) { return Slice(entry.first); });
      for (auto entry = protected_keys().begin(); entry != protected_keys().end() && status.ok(); ++entry) {
        status = Compare(entry->first, entry->second);
      }
      if (status.ok()) status = WriteBatchToBase();
    }
    if (status.ok()) End();
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

 private:
  // ORDER: before the key is read (GetForUpdate). A write that is under way and not visible yet is a newer version at the commit.
  Status Protect(Slice key, bool, bool is_new, Seen* seen) override {
    if (!is_new) return Status::OK();
    const Status status = base()->GetLatestSequenceForKey(key, &seen->sequence);
    seen->found = status.ok();
    // While the snapshot is registered, a deletion of what it sees is not forgotten.
    seen->conflicts = seen->found && GetSnapshot() != nullptr && seen->sequence > GetSnapshot()->GetSequenceNumber();
    return status.IsNotFound() ? Status::OK() : status;
  }
  void Unprotect(Slice) override {}

  // A deletion may be forgotten meanwhile: that of what was seen, then the key is not as it was; that of what was written in
  // between, then it is as it was; or one that was seen itself, then this is too careful.
  Status Compare(Slice key, const Seen& seen) const {
    uint64_t sequence = 0;
    const Status status = base()->GetLatestSequenceForKey(key, &sequence);
    if (!status.ok() && !status.IsNotFound()) return status;
    const bool same = !seen.conflicts && seen.found == status.ok() && (!seen.found || sequence == seen.sequence);
    return same ? Status::OK() : Status::Busy("another write came between; roll back and try again");
  }

  CommitLocks* const locks_;
  const uint64_t id_ = LockOwner::NewId();
};

class OptimisticTransactionDBImpl final : public StackedDB<OptimisticTransactionDB> {
 public:
  using StackedDB::StackedDB;

  std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                const OptimisticTransactionOptions& options) override {
    return std::make_unique<OptimisticTransaction>(base(), &locks_, write_options, options);
  }

  using StackedDB::Delete;
  using StackedDB::Put;
  Status Put(const WriteOptions& options, Slice key, Slice value) override try {
    const CommitLocks::Guard guard(&locks_, std::array{key}, [](Slice k) { return k; });
    return base()->Put(options, key, value);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  Status Delete(const WriteOptions& options, Slice key) override try {
    const CommitLocks::Guard guard(&locks_, std::array{key}, [](Slice k) { return k; });
    return base()->Delete(options, key);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  Status Write(const WriteOptions& options, const WriteBatch& batch) override try {
    std::vector<Slice> keys;
    Status status = SortedKeys(batch, &keys);
    if (!status.ok()) return status;
    const CommitLocks::Guard guard(&locks_, keys, [](Slice k) { return k; });
    return base()->Write(options, batch);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

 private:
  CommitLocks locks_;
};

}  // namespace

Status OptimisticTransactionDB::Open(const Options& options, const std::string& path,
                                     std::unique_ptr<OptimisticTransactionDB>* db) try {
  db->reset();
  std::unique_ptr<DB> base;
  Status status = DB::Open(options, path, &base);
  if (status.ok()) *db = std::make_unique<OptimisticTransactionDBImpl>(std::move(base));
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
