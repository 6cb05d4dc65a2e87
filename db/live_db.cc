#include "db/live_db.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "db/db_iterator.h"
#include "db/error_iterator.h"
#include "db/no_memory.h"
#include "db/read_path.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

Status NoChecksums() {
  return Status::NotSupported(
      "ReadOptions::verify_checksums needs the segments' seeds, which the process that writes the database has");
}

}  // namespace

Status LiveDB::Validate(uint64_t growths, bool* grown) const {
  *grown = core_->live_reader_->board().growths.load(std::memory_order_acquire) != growths;
  return core_->CheckLive();
}

// `result` is that of a read of the family. The read may have met a view without the family, which the owner has purged
// meanwhile.
Status LiveDB::IfThere(ColumnFamilyHandle* handle, const Status& result) const {
  Status status;
  return core_->FamilyOf(handle, &status) == nullptr ? status : result;
}

template <class Read>
Status LiveDB::ReadValidly(const Read& read) try {
  for (bool is_last = false;;) {
    if (Status status = core_->FollowOwner(); !status.ok()) return status;
    const uint64_t growths = core_->followed_growths_.load(std::memory_order_acquire);
    BRAIDDB_SYNC_POINT("LiveDB::ReadValidly:Followed");
    Status result = read();
    bool grown = false;
    if (Status valid = Validate(growths, &grown); !valid.ok()) return valid;
    if (!grown && (is_last || !core_->regions_->damage_seen())) return result;
    // Another thread may have noted the damage, when it met a pointer into a part that was not mapped.
    core_->regions_->ClearDamage();
    is_last = !grown;
  }
} catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

template <class Deliver>
[[gnu::always_inline]] inline bool LiveDB::ReadHit(const ReadOptions& options, const Family& family, Slice key,
                                                   const Deliver& deliver) const try {
  ThreadState* const thread = core_->threads_.Find(PeekThreadIndex());
  if (thread == nullptr || thread->epoch_slot == nullptr || options.snapshot != nullptr || options.timestamp.has_value() ||
      !family.is_hashed || core_->IsObserved() || !core_->HasNewest()) {
    return false;
  }
  {
    core_->epochs_.EnterOwn(thread->epoch_slot);
    const EpochManager::Guard guard(thread->epoch_slot);
    const LookupCache::ForeignTable* const cache = core_->foreign_cache_.load(std::memory_order_acquire);
    if (cache == nullptr) return false;
    const LogEntry* const entry = cache->Find(family.id, key, family.HashOf(key));
    if (!core_->IsPlainHit(family, entry)) return false;
    deliver(entry->value());
  }
  // The hit took effect when its bucket was loaded. Its place was in a part that is mapped, so growth needs no check.
  return core_->CheckLive().ok();
} catch (const std::bad_alloc&) {
  return false;
}

Status LiveDB::GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) {
  return GetTo(options, DefaultColumnFamily(), key, value);
}

// The receiver is called once, so it gets what was checked. Larger values are pinned for that.
Status LiveDB::GetTo(const ReadOptions& options, ColumnFamilyHandle* handle, Slice key, ValueReceiver* value) {
  if (options.verify_checksums) return NoChecksums();
  char copy[kMostCopied];
  size_t size = 0;
  const auto keep = [&](Slice found) {
    size = found.size();
    if (size <= sizeof(copy)) CopyBytes(copy, found);
  };
  Status status;
  const Family* const family = core_->FamilyOf(handle, &status);
  if (family != nullptr && ReadHit(options, *family, key, keep) && size <= sizeof(copy))
    return value->Receive({copy, size}) ? Status::OK() : NoMemory();
  return DB::GetTo(options, handle, key, value);
}

Status LiveDB::Get(const ReadOptions& options, Slice key, std::string* value) {
  if (options.verify_checksums) return NoChecksums();
  if (ReadHit(options, core_->default_family_, key, [value](Slice found) { AssignTo(value, found); })) return Status::OK();
  const KeptKey kept(key, *value);
  return ReadValidly([&] { return core_->Get(options, kept.slice(), value); });
}

Status LiveDB::CountPin(Status status, PinnableSlice* value) {
  if (!status.ok()) value->Reset();  // the read may have pinned a value before the check found that it is not valid
  if (value->owner_ != &core_->epochs_ || value->release_ == nullptr) return status;
  users_.fetch_add(1, std::memory_order_relaxed);
  value->owner_ = this;
  value->release_ = [](void* owner, uint64_t pin) {
    auto* const db = static_cast<LiveDB*>(owner);
    db->core_->epochs_.Unpin(pin);
    db->users_.fetch_sub(1, std::memory_order_release);
  };
  return status;
}

Status LiveDB::Get(const ReadOptions& options, Slice key, PinnableSlice* value) {
  if (options.verify_checksums) return NoChecksums();
  return CountPin(ReadValidly([&] { return core_->Get(options, key, value); }), value);
}

Status LiveDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) {
  if (options.verify_checksums) return NoChecksums();
  Status status;
  const Family* const known = core_->FamilyOf(family, &status);
  const auto copy = [value](Slice found) { AssignTo(value, found); };
  if (known != nullptr && ReadHit(options, *known, key, copy)) return Status::OK();
  const KeptKey kept(key, *value);
  return ReadValidly([&] { return IfThere(family, core_->Get(options, family, kept.slice(), value)); });
}

Status LiveDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) {
  if (options.verify_checksums) return NoChecksums();
  return CountPin(ReadValidly([&] { return IfThere(family, core_->Get(options, family, key, value)); }), value);
}

template <class Read>
std::vector<Status> LiveDB::ReadManyValidly(size_t keys, const Read& read) {
  std::vector<Status> statuses;
  const Status status = ReadValidly([&] {
    statuses = read();
    return Status::OK();
  });
  if (!status.ok()) statuses.assign(keys, status);
  return statuses;
}

std::vector<Status> LiveDB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                     std::vector<std::string>* values) {
  values->resize(keys.size());
  if (options.verify_checksums) return std::vector<Status>(keys.size(), NoChecksums());
  return ReadManyValidly(keys.size(), [&] { return core_->MultiGet(options, keys, values); });
}

std::vector<Status> LiveDB::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                     const std::vector<Slice>& keys, std::vector<std::string>* values) {
  values->resize(keys.size());
  if (options.verify_checksums) return std::vector<Status>(keys.size(), NoChecksums());
  return ReadManyValidly(keys.size(), [&] {
    std::vector<Status> statuses = core_->MultiGet(options, families, keys, values);
    for (size_t i = 0; i < std::min(statuses.size(), families.size()); ++i) statuses[i] = IfThere(families[i], statuses[i]);
    return statuses;
  });
}

// ---- Iterators

// An iterator of one view. If a region grows during a movement, the movement is repeated from the key before it, with another
// iterator of the same view: the one before may have met a pointer into a part that was not mapped, and keeps that as damage. A
// repeated step keeps the limit of the last seek, since the seek to the key of the step has another one.
class LiveIterator final : public Iterator {
 public:
  LiveIterator(LiveDB* db, const ReadOptions& options, std::unique_ptr<DBIterator> base)
      : db_(db), options_(options), base_(std::move(base)) {
    const auto keep = [](std::optional<Slice>* bound, std::string* kept) {
      if (!bound->has_value()) return;
      kept->assign(**bound);
      *bound = Slice(*kept);
    };
    keep(&options_.iterate_lower_bound, &lower_);
    keep(&options_.iterate_upper_bound, &upper_);
    keep(&options_.prefix, &prefix_);
    options_.snapshot = nullptr;
    db_->users_.fetch_add(1, std::memory_order_relaxed);
  }
  ~LiveIterator() override {
    base_.reset();
    db_->users_.fetch_sub(1, std::memory_order_release);
  }

  bool Valid() const override { return status_.ok() && base_->Valid(); }
  void SeekToFirst() override {
    Move([this](bool) { base_->SeekToFirst(); });
  }
  void SeekToLast() override {
    Move([this](bool) { base_->SeekToLast(); });
  }
  void Seek(Slice target) override {
    const std::string kept(target);
    Move([this, &kept](bool) { base_->Seek(kept); });
  }
  void SeekForPrev(Slice target) override {
    const std::string kept(target);
    Move([this, &kept](bool) { base_->SeekForPrev(kept); });
  }
  void Next() override {
    key_.assign(base_->key());
    Move([this](bool again) {
      if (again) GoBackTo([this] { base_->Seek(key_); });
      if (!again || (base_->Valid() && base_->key() == Slice(key_))) base_->Next();
    });
  }
  void Prev() override {
    key_.assign(base_->key());
    Move([this](bool again) {
      if (again) GoBackTo([this] { base_->SeekForPrev(key_); });
      if (!again || (base_->Valid() && base_->key() == Slice(key_))) base_->Prev();
    });
  }
  Slice key() const override { return base_->key(); }
  Slice value() const override { return base_->value(); }
  Status status() const override { return status_.ok() ? base_->status() : status_; }

 private:
  template <class Seek>
  void GoBackTo(const Seek& seek) {
    seek();
    base_->SetPrefixLimit(limit_);
  }
  // `move`: makes the movement; its argument is true if the movement is repeated, with another base_.
  template <class Movement>
  void Move(const Movement& move) try {
    if (__builtin_expect(db_->core_->fork_mark_.is_in_child(), 0)) {
      status_ = db_->core_->FollowOwner();  // which refuses
      return;
    }
    const uint64_t growths = db_->core_->followed_growths_.load(std::memory_order_acquire);
    move(false);
    BRAIDDB_SYNC_POINT("LiveIterator::Move:Moved");
    const bool is_valid = db_->core_->IsInPlace(growths) && !base_->status().IsCorruption();
    if (__builtin_expect(!is_valid, 0)) return Repeat(growths, move);
    if (__builtin_expect(!status_.ok(), 0)) status_ = Status::OK();
  } catch (const LiveFailure& failure) {
    status_ = failure.status;
  } catch (const std::bad_alloc&) {  // base_ may be where an unfinished movement has left it
    status_ = NoMemory();
    throw;
  }
  // `growths`: followed before the first movement.
  template <class Movement>
  void Repeat(uint64_t growths, const Movement& move) {
    for (bool is_last = false;;) {
      bool grown = false;
      status_ = db_->Validate(growths, &grown);
      if (!status_.ok() || (!grown && (is_last || !base_->status().IsCorruption()))) return;
      db_->core_->regions_->ClearDamage();
      is_last = !grown;
      status_ = db_->core_->FollowOwner();
      if (!status_.ok()) return;
      growths = db_->core_->followed_growths_.load(std::memory_order_acquire);
      limit_ = base_->prefix_limit();
      base_ = base_->Again(options_);
      move(true);
      BRAIDDB_SYNC_POINT("LiveIterator::Move:Moved");
    }
  }

  LiveDB* const db_;
  ReadOptions options_;  // for base_->Again
  std::string lower_, upper_, prefix_;
  std::unique_ptr<DBIterator> base_;
  std::string key_;
  std::optional<std::string> limit_;  // of the iterator before
  Status status_;
};

std::unique_ptr<Iterator> LiveDB::NewIterator(const ReadOptions& options) { return NewIterator(options, DefaultColumnFamily()); }

std::unique_ptr<Iterator> LiveDB::NewIterator(const ReadOptions& options, ColumnFamilyHandle* handle) {
  if (options.verify_checksums) return std::make_unique<ErrorIterator>(NoChecksums());
  std::unique_ptr<Iterator> base;
  bool out_of_memory = false;
  const Status status = ReadValidly([&] {
    Status found;
    const Family* const family = core_->FamilyOf(handle, &found);
    if (family == nullptr) return found;
    try {
      base = core_->MakeIterator(options, *family);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    return IfThere(handle, Status::OK());
  });
  if (out_of_memory) throw std::bad_alloc();
  if (!status.ok()) return std::make_unique<ErrorIterator>(status);
  auto* const found = dynamic_cast<DBIterator*>(base.get());
  if (found == nullptr) return base;  // an error
  (void)base.release();
  return std::make_unique<LiveIterator>(this, options, std::unique_ptr<DBIterator>(found));
}

// ---- Others

Status LiveDB::GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) try {
  if (Status status = core_->FollowOwner(); !status.ok()) return status;
  return core_->GetColumnFamilies(handles);
} catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// Null: the process that writes the database does not answer, or this reader has expired.
const Snapshot* LiveDB::GetSnapshot() try {
  if (!core_->FollowOwner().ok()) return nullptr;
  const Snapshot* const snapshot = core_->GetSnapshot();
  users_.fetch_add(snapshot != nullptr, std::memory_order_relaxed);
  return snapshot;
} catch (const LiveFailure&) {
  return nullptr;
}

void LiveDB::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  core_->ReleaseSnapshot(snapshot);
  users_.fetch_sub(1, std::memory_order_release);
}

Status LiveDB::Follow() try { return core_->FollowOwner(); } catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status LiveDB::GetLatestSequenceForKey(Slice key, uint64_t* sequence) {
  return ReadValidly([&] { return core_->GetLatestSequenceForKey(key, sequence); });
}

Status LiveDB::GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) {
  return ReadValidly([&] { return core_->GetLatestSequenceForKey(family, key, sequence); });
}

Status LiveDB::GetUpdatesSince(uint64_t, std::unique_ptr<TransactionLogIterator>* iterator) {
  iterator->reset();
  return Status::NotSupported("the process that writes the database has its history; braiddb log --follow prints it");
}

bool LiveDB::GetIntProperty(std::string_view property, uint64_t* value) {
  return GetIntProperty(DefaultColumnFamily(), property, value);
}

// The properties that this process can answer from the view.
bool LiveDB::GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) try {
  if (!core_->FollowOwner().ok()) return false;
  for (const std::string_view name : {"estimate-num-keys", "num-immutable-mem-table", "num-l0-tables", "num-files-at-level0",
                                      "num-entries-l0", "num-entries-l1", "num-snapshots", "oldest-snapshot-sequence",
                                      "last-sequence-number", "num-range-tombstones", "pm-bytes-reserved"}) {
    if (property.ends_with(name)) return core_->GetIntProperty(family, property, value);
  }
  return false;
} catch (const LiveFailure&) {
  return false;
}

bool LiveDB::GetProperty(std::string_view property, std::string* value) {
  return GetProperty(DefaultColumnFamily(), property, value);
}

bool LiveDB::GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) {
  uint64_t number = 0;
  if (!GetIntProperty(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

}  // namespace braiddb
