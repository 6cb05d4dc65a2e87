// OptimisticTransactionDB: transactions that lock nothing until the commit. The commit checks whether another write changed a
// protected key.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "txn/batch_keys.h"
#include "txn/stacked_db.h"
#include "txn/transaction_base.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// A lock of four bytes, because one commit may take a large number of locks.
class WordLock {
 public:
  void lock() {
    while (taken_.exchange(1, std::memory_order_acquire) != 0) {
      if (kCrashTest) {
        // The crash test's scheduler does not see a wait for a word. Without the yield it would run no other thread.
        std::this_thread::yield();
      } else {
        taken_.wait(1, std::memory_order_relaxed);
      }
    }
  }
  void unlock() {
    taken_.store(0, std::memory_order_release);
    taken_.notify_one();
  }

 private:
  std::atomic<uint32_t> taken_{0};
};

// Locks for the duration of a commit or write. Keys are mapped to locks by hash, and several keys share a lock.
class CommitLocks {
 public:
  // Throws std::bad_alloc only before it has locked anything.
  class Guard {
   public:
    template <class Keys, class KeyOf>
    Guard(CommitLocks* locks, const Keys& keys, const KeyOf& key_of) : locks_(locks) {
      held_.reserve(keys.size());
      for (const auto& key : keys) held_.push_back(FamilyKeyHasher()(key_of(key)) % kLocks);
      std::sort(held_.begin(), held_.end());  // a fixed order prevents deadlocks
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
  OptimisticTransaction(DB* base, const FamilyTable* families, CommitLocks* locks, const WriteOptions& write_options,
                        const OptimisticTransactionOptions& options)
      : TransactionBase(base, families, write_options, 0), locks_(locks) {
    if (options.set_snapshot) SetSnapshot();
  }
  ~OptimisticTransaction() override { BeginAnew(); }

  uint64_t GetID() const override { return id_; }

  Status SetName(const std::string&) override { return Status::InvalidArgument("Optimistic transactions cannot be named."); }
  const std::string& GetName() const override { return no_name_; }
  Status Prepare() override { return Status::InvalidArgument("Two phase commit not supported for optimistic transactions."); }
  TransactionState GetState() const override { return TransactionState::kStarted; }

  // ORDER: 1 lock  2 compare  3 write  4 unlock. Other writes lock too, so each of them is before step 2 or after step 4.
  Status Commit() override try {
    Status status = CheckActive();
    if (!status.ok()) return status;
    {
      const CommitLocks::Guard guard(locks_, protected_keys(), [](const auto& entry) { return FamilySlice(entry.first); });
      for (auto entry = protected_keys().begin(); entry != protected_keys().end() && status.ok(); ++entry) {
        status = Compare(entry->first, entry->second);
      }
      if (status.ok()) status = WriteBatchToBase();
    }
    if (status.ok()) BeginAnew();
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

 private:
  // ORDER: before the key is read (GetForUpdate). A concurrent write that is not visible yet then appears as a newer version at
  // the commit.
  Status Protect(const FamilySlice& key, bool, bool is_new, Seen* seen) override {
    if (!is_new) return Status::OK();
    const Status status = LatestSequence(key, &seen->sequence);
    seen->found = status.ok();
    // While the snapshot is registered, no merge drops a deletion that the snapshot sees.
    seen->conflicts = seen->found && GetSnapshot() != nullptr && seen->sequence > GetSnapshot()->GetSequenceNumber();
    return status.IsNotFound() ? Status::OK() : status;
  }
  // If the key was absent when it was protected and has a version now, another write came between protection and read. The commit
  // may not see this: a merge may have dropped both that version and its deletion. So the conflict is noted here.
  Status NoteValue(const FamilySlice& key, Seen* seen) override {
    if (seen->found) return Status::OK();
    uint64_t sequence = 0;
    const Status status = LatestSequence(key, &sequence);
    seen->conflicts |= status.ok();
    return status.IsNotFound() ? Status::OK() : status;
  }
  void Unprotect(const FamilySlice&) override {}

  // Whether the key still has the version that was seen. A merge may drop a deletion between protection and commit:
  // - The deletion came after the seen version: the key is absent, so it differs.
  // - The deletion came after a write that nobody read: the key is absent again, as it was seen. If the value was read, NoteValue
  //   has noted the conflict.
  // - The deletion itself was seen: the function reports a conflict without need.
  Status Compare(const FamilySlice& key, const Seen& seen) const {
    uint64_t sequence = 0;
    const Status status = LatestSequence(key, &sequence);
    if (!status.ok() && !status.IsNotFound()) return status;
    const bool same = !seen.conflicts && seen.found == status.ok() && (!seen.found || sequence == seen.sequence);
    return same ? Status::OK() : Status::Busy("another write came between; roll back and try again");
  }

  CommitLocks* const locks_;
  const uint64_t id_ = LockOwner::NewId();
  const std::string no_name_;
};

class OptimisticTransactionDBImpl final : public StackedDB<OptimisticTransactionDB> {
 public:
  using StackedDB::StackedDB;

  std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                const OptimisticTransactionOptions& options) override {
    return std::make_unique<OptimisticTransaction>(base(), families(), &locks_, write_options, options);
  }

  Status DeleteRange(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override {
    return Status::NotSupported("DeleteRange is not supported in an OptimisticTransactionDB: there are no locks for ranges");
  }
  Status Put(const WriteOptions& options, Slice key, Slice value) override {
    return WithLock({0, key}, [&] { return base()->Put(options, key, value); });
  }
  Status Delete(const WriteOptions& options, Slice key) override {
    return WithLock({0, key}, [&] { return base()->Delete(options, key); });
  }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Put(options, family, key, value); });
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Delete(options, family, key); });
  }
  Status Merge(const WriteOptions& options, Slice key, Slice operand) override {
    return WithLock({0, key}, [&] { return base()->Merge(options, key, operand); });
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Merge(options, family, key, operand); });
  }
  Status Write(const WriteOptions& options, const WriteBatch& batch) override try {
    std::vector<FamilySlice> keys;
    Status status = SortedKeys(batch, &keys);
    if (!status.ok()) return status;
    const CommitLocks::Guard guard(&locks_, keys, [](const FamilySlice& key) { return key; });
    return base()->Write(options, batch);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

 private:
  template <class Body>
  Status WithLock(const FamilySlice& key, const Body& body) try {
    const CommitLocks::Guard guard(&locks_, std::array{key}, [](const FamilySlice& k) { return k; });
    return body();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  CommitLocks locks_;
};

}  // namespace

Status OptimisticTransactionDB::Open(const Options& options, const std::string& path,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> none;
  return Open(options, path, {}, &none, db);
}

Status OptimisticTransactionDB::Open(const Options& options, const std::string& path,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  db->reset();
  std::unique_ptr<DB> base;
  Status status = RefuseTimestamps(options, families, "an OptimisticTransactionDB");
  if (status.ok()) status = DB::Open(options, path, families, handles, &base);
  return status.ok() ? StackOn<OptimisticTransactionDBImpl>(std::move(base), handles, db) : status;
}

}  // namespace braiddb
