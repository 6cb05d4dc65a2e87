#include "txn/transaction_base.h"

#include <algorithm>
#include <utility>

#include "db/no_memory.h"

namespace braiddb {

TransactionBase::TransactionBase(DB* base, const WriteOptions& write_options, size_t max_write_batch_size)
    : base_(base),
      write_options_(write_options),
      max_write_batch_size_(max_write_batch_size),
      batch_(base->GetOptions().comparator) {}

TransactionBase::~TransactionBase() = default;

Status TransactionBase::CheckActive() const {
  return over_ ? Status::InvalidArgument("the transaction is over; begin another one") : Status::OK();
}

Status TransactionBase::CheckRoom(Slice key, Slice value) const {
  if (key.size() > kMaxKeySize) return Status::InvalidArgument("a key of more than 65536 bytes");
  if (value.size() > kMaxValueSize) return Status::InvalidArgument("a value of more than 1 GiB");
  const size_t size = batch_.GetWriteBatch().ApproximateSize() + key.size() + value.size();
  if (max_write_batch_size_ == 0 || size <= max_write_batch_size_) return Status::OK();
  return Status::MemoryLimit("the transaction's updates exceed TransactionOptions::max_write_batch_size");
}

Status TransactionBase::ProtectKey(Slice key, bool exclusive, const Snapshot* seen_at) {
  auto place = protected_.find(key);
  const bool is_new = place == protected_.end();
  if (is_new) {
    if (order_.size() == order_.capacity()) order_.reserve(std::max<size_t>(16, 2 * order_.size()));
    place = protected_.emplace(std::string(key), Seen()).first;
  }
  Status status;
  try {
    status = ProtectAt(key, exclusive, is_new, seen_at, &place->second);
  } catch (...) {
    if (is_new) Unprotect(key);  // it may have been protected before there was no memory
    if (is_new) protected_.erase(place);
    throw;
  }
  if (is_new && status.ok()) order_.push_back(&place->first);
  if (is_new && !status.ok()) protected_.erase(place);
  return status;
}

Status TransactionBase::ProtectAt(Slice key, bool exclusive, bool is_new, const Snapshot* seen_at, Seen* seen) {
  Status status = Protect(key, exclusive, is_new, seen);
  if (!status.ok() || seen_at == nullptr) return status;
  uint64_t sequence = 0;
  status = base_->GetLatestSequenceForKey(key, &sequence);
  if (status.IsNotFound()) return Status::OK();
  if (status.ok() && sequence > seen_at->GetSequenceNumber()) {
    status = Status::Busy("the key was written since the snapshot that it is read through; roll back and try again");
  }
  if (!status.ok() && is_new) Unprotect(key);
  return status;
}

Status TransactionBase::Put(Slice key, Slice value) try {
  Status status = CheckActive();
  if (status.ok()) status = CheckRoom(key, value);
  if (status.ok()) status = ProtectKey(key, true);
  if (status.ok()) batch_.Put(key, value);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::Delete(Slice key) try {
  Status status = CheckActive();
  if (status.ok()) status = CheckRoom(key, Slice());
  if (status.ok()) status = ProtectKey(key, true);
  if (status.ok()) batch_.Delete(key);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::GetForUpdate(const ReadOptions& options, Slice key, std::string* value, bool exclusive) try {
  Status status = CheckActive();
  if (status.ok() && key.size() > kMaxKeySize) status = Status::InvalidArgument("a key of more than 65536 bytes");
  // ORDER: protected before it is read, so that no write comes between.
  if (status.ok()) status = ProtectKey(key, exclusive, options.snapshot);
  if (!status.ok() || value == nullptr) return status;
  return Get(options, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::Get(const ReadOptions& options, Slice key, std::string* value) {
  return batch_.GetFromBatchAndDB(base_, options, key, value);
}

std::vector<Status> TransactionBase::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                              std::vector<std::string>* values) {
  std::vector<Status> statuses = base_->MultiGet(options, keys, values);
  for (size_t i = 0; i < keys.size(); ++i) {
    Slice own;
    switch (batch_.Find(keys[i], &own)) {
      case WriteBatchWithIndex::Found::kNothing:
        break;
      case WriteBatchWithIndex::Found::kDeletion:
        statuses[i] = Status::NotFound();
        break;
      case WriteBatchWithIndex::Found::kValue:
        (*values)[i].assign(own);
        statuses[i] = Status::OK();
        break;
    }
  }
  return statuses;
}

std::unique_ptr<Iterator> TransactionBase::NewIterator(const ReadOptions& options) {
  ReadOptions whole = options;
  whole.prefix_same_as_start = false;  // the prefix is that of a key of both
  auto iterator = batch_.NewIteratorWithBase(base_->NewIterator(whole), whole);
  const auto& extractor = base_->GetOptions().prefix_extractor;
  if (!options.prefix_same_as_start || extractor == nullptr) return iterator;
  return NewPrefixIterator(std::move(iterator), extractor);
}

void TransactionBase::SetSnapshot() {
  snapshot_ = std::shared_ptr<const Snapshot>(base_->GetSnapshot(), [db = base_](const Snapshot* s) { db->ReleaseSnapshot(s); });
}

void TransactionBase::ClearSnapshot() { snapshot_.reset(); }

void TransactionBase::SetSavePoint() {
  save_points_.push_back({order_.size(), snapshot_});
  try {
    batch_.SetSavePoint();
  } catch (...) {
    save_points_.pop_back();
    throw;
  }
}

Status TransactionBase::RollbackToSavePoint() {
  Status status = CheckActive();
  if (status.ok()) status = batch_.RollbackToSavePoint();
  if (!status.ok()) return status;
  UnprotectFrom(save_points_.back().position);
  snapshot_ = std::move(save_points_.back().snapshot);
  save_points_.pop_back();
  return Status::OK();
}

Status TransactionBase::PopSavePoint() {
  Status status = CheckActive();
  if (status.ok()) status = batch_.PopSavePoint();
  if (status.ok()) save_points_.pop_back();
  return status;
}

Status TransactionBase::Rollback() {
  Status status = CheckActive();
  if (status.ok()) BeginAnew();
  return status;
}

Status TransactionBase::RebuildFromWriteBatch(const WriteBatch& batch) try {
  struct Adder : WriteBatch::Handler {
    void Put(Slice key, Slice value) override {
      if (status.ok()) status = to->Put(key, value);
    }
    void Delete(Slice key) override {
      if (status.ok()) status = to->Delete(key);
    }
    TransactionBase* to;
    Status status;
  } adder;
  adder.to = this;
  Status status = CheckActive();
  if (!status.ok()) return status;
  const WriteBatch updates = batch;  // it may be the transaction's own
  SetSavePoint();
  status = updates.Iterate(&adder);
  if (status.ok()) status = adder.status;
  if (status.ok()) return PopSavePoint();
  const Status undone = RollbackToSavePoint();
  return undone.ok() ? status : undone;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

void TransactionBase::UnprotectFrom(size_t position) noexcept {
  for (; order_.size() > position; order_.pop_back()) {
    Unprotect(*order_.back());
    protected_.erase(protected_.find(*order_.back()));
  }
}

void TransactionBase::BeginAnew() noexcept {
  UnprotectFrom(0);
  batch_.Clear();
  save_points_.clear();
}

void TransactionBase::End() noexcept {
  BeginAnew();
  ClearSnapshot();
  over_ = true;
}

}  // namespace braiddb
