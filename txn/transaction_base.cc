#include "txn/transaction_base.h"

#include <algorithm>
#include <utility>

#include "db/no_memory.h"
#include "util/mutant.h"

namespace braiddb {

TransactionBase::TransactionBase(DB* base, const FamilyTable* families, const WriteOptions& write_options,
                                 size_t max_write_batch_size)
    : base_(base),
      families_(families),
      default_family_(base->DefaultColumnFamily()),
      write_options_(write_options),
      max_write_batch_size_(max_write_batch_size),
      batch_(base->GetOptions().comparator) {}

TransactionBase::~TransactionBase() = default;

Status TransactionBase::WriteBatchToBase() {
  return BRAIDDB_MUTANT("commit-not-written") ? Status::OK() : base_->Write(write_options_, batch_.GetWriteBatch());
}

Status TransactionBase::CheckRoom(Slice key, Slice value) const {
  if (key.size() > kMaxKeySize) return Status::InvalidArgument("a key of more than 65536 bytes");
  if (value.size() > kMaxValueSize) return Status::InvalidArgument("a value of more than 1 GiB");
  const size_t size = batch_.GetWriteBatch().ApproximateSize() + key.size() + value.size();
  if (max_write_batch_size_ == 0 || size <= max_write_batch_size_) return Status::OK();
  return Status::MemoryLimit("the transaction's updates exceed TransactionOptions::max_write_batch_size");
}

Status TransactionBase::ProtectKey(const FamilySlice& key, bool exclusive, const Snapshot* seen_at) {
  auto place = protected_.find(key);
  const bool is_new = place == protected_.end();
  if (is_new) {
    if (order_.size() == order_.capacity()) order_.reserve(std::max<size_t>(16, 2 * order_.size()));
    place = protected_.emplace(key.Copy(), Seen()).first;
  }
  Status status;
  try {
    status = ProtectAt(key, exclusive, is_new, seen_at, &place->second);
  } catch (...) {
    if (is_new) Unprotect(key);  // it may have been protected before memory ran out
    if (is_new) protected_.erase(place);
    throw;
  }
  if (is_new && status.ok()) order_.push_back(&place->first);
  if (is_new && !status.ok()) protected_.erase(place);
  return status;
}

Status TransactionBase::ProtectAt(const FamilySlice& key, bool exclusive, bool is_new, const Snapshot* seen_at, Seen* seen) {
  Status status = Protect(key, exclusive, is_new, seen);
  if (!status.ok() || seen_at == nullptr) return status;
  uint64_t sequence = 0;
  status = LatestSequence(key, &sequence);
  if (status.IsNotFound()) return Status::OK();
  if (status.ok() && sequence > seen_at->GetSequenceNumber()) {
    status = Status::Busy("the key was written since the snapshot that it is read through; roll back and try again");
  }
  if (!status.ok() && is_new) Unprotect(key);
  return status;
}

Status TransactionBase::LatestSequence(const FamilySlice& key, uint64_t* sequence) const {
  return base_->GetLatestSequenceForKey(key.family == 0 ? default_family_ : used_.at(key.family).get(), key.key, sequence);
}

Status TransactionBase::Use(const ColumnFamilyHandle* family) {
  if (family == default_family_) return Status::OK();
  Status status = families_->Check(family);
  if (!status.ok()) return status;
  const uint32_t id = family->GetID();
  const bool is_dropped = FamilyTable::IsDropped(*family);
  if (id == 0 || (!is_dropped && used_.contains(id))) return Status::OK();
  auto held = is_dropped ? nullptr : families_->Find(id);
  if (held == nullptr) return Status::InvalidArgument("column family '" + family->GetName() + "' was dropped");
  used_order_.push_back(id);
  used_.emplace(id, std::move(held));
  return Status::OK();
}

Status TransactionBase::Add(Kind kind, ColumnFamilyHandle* family, Slice key, Slice value) {
  Status status = Use(family);
  if (status.ok()) status = ProtectKey({family->GetID(), key}, true);
  if (!status.ok()) return status;
  if (kind == Kind::kPut) batch_.Put(family, key, value);
  if (kind == Kind::kDelete) batch_.Delete(family, key);
  if (kind == Kind::kMerge) batch_.Merge(family, key, value);
  return status;
}

Status TransactionBase::Put(ColumnFamilyHandle* family, Slice key, Slice value) try {
  Status status = CheckActive();
  if (status.ok()) status = CheckRoom(key, value);
  return status.ok() ? Add(Kind::kPut, family, key, value) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::Delete(ColumnFamilyHandle* family, Slice key) try {
  Status status = CheckActive();
  if (status.ok()) status = CheckRoom(key, Slice());
  return status.ok() ? Add(Kind::kDelete, family, key, Slice()) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::Merge(ColumnFamilyHandle* family, Slice key, Slice operand) try {
  Status status = CheckActive();
  if (status.ok()) status = CheckRoom(key, operand);
  if (status.ok()) status = Use(family);
  if (status.ok() && family->GetOptions().merge_operator == nullptr)
    status = Status::NotSupported("Provide a merge_operator when opening DB");
  return status.ok() ? Add(Kind::kMerge, family, key, operand) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                                     bool exclusive) try {
  Status status = CheckActive();
  if (status.ok() && key.size() > kMaxKeySize) status = Status::InvalidArgument("a key of more than 65536 bytes");
  if (status.ok()) status = Use(family);
  // ORDER: the key is protected before it is read, so that no write comes between.
  if (status.ok()) status = ProtectKey({family->GetID(), key}, exclusive, options.snapshot);
  if (!status.ok() || value == nullptr) return status;
  status = Get(options, family, key, value);
  if (!status.ok()) return status;
  const FamilySlice read{family->GetID(), key};
  return NoteValue(read, &protected_.find(read)->second);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TransactionBase::Get(const ReadOptions& options, Slice key, std::string* value) {
  return batch_.GetFromBatchAndDB(base_, options, key, value);
}

Status TransactionBase::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) {
  const Status status = families_->Check(family);
  return status.ok() ? batch_.GetFromBatchAndDB(base_, options, family, key, value) : status;
}

namespace {

// Applies the batch's operands to the value below. `read` and *value: result of the read below the batch.
Status MergeOwn(const WriteBatchWithIndex& batch, const ColumnFamilyHandle* family, Slice key, const Status& read,
                std::string* value) {
  if (!read.ok() && !read.IsNotFound() && batch.NeedsBase(family, key)) return read;
  const std::string base = std::move(*value);
  const Slice existing = base;
  const MergeOperator* const merge = family->GetOptions().merge_operator.get();
  return batch.ApplyOperands(merge, family, key, read.ok() ? &existing : nullptr, value);
}

// Replaces the result of the read below by the batch's update of the key, if the batch has one.
void Overlay(const WriteBatchWithIndex& batch, const ColumnFamilyHandle* family, Slice key, Status* status, std::string* value) {
  Slice own;
  switch (batch.Find(family, key, &own)) {
    case WriteBatchWithIndex::Found::kNothing:
      break;
    case WriteBatchWithIndex::Found::kDeletion:
      *status = Status::NotFound();
      break;
    case WriteBatchWithIndex::Found::kValue:
      value->assign(own);
      *status = Status::OK();
      break;
    case WriteBatchWithIndex::Found::kOperands:
      *status = MergeOwn(batch, family, key, *status, value);
      break;
  }
}

}  // namespace

std::vector<Status> TransactionBase::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                              std::vector<std::string>* values) {
  std::vector<Status> statuses = base_->MultiGet(options, keys, values);
  for (size_t i = 0; i < keys.size(); ++i) Overlay(batch_, default_family_, keys[i], &statuses[i], &(*values)[i]);
  return statuses;
}

std::vector<Status> TransactionBase::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                              const std::vector<Slice>& keys, std::vector<std::string>* values) {
  std::vector<Status> statuses = base_->MultiGet(options, families, keys, values);
  for (size_t i = 0; i < keys.size() && i < families.size(); ++i) {
    if (families_->Check(families[i]).ok()) Overlay(batch_, families[i], keys[i], &statuses[i], &(*values)[i]);
  }
  return statuses;
}

std::unique_ptr<Iterator> TransactionBase::NewIterator(const ReadOptions& options) {
  return NewIterator(options, default_family_);
}

// Without a family handle the iterator of the database cannot be combined with the batch.
std::unique_ptr<Iterator> TransactionBase::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  ReadOptions whole = options;
  whole.prefix_same_as_start = false;  // the prefix comes from the merged keys, so the base must not apply it
  auto below = base_->NewIterator(whole, family);
  if (!families_->Check(family).ok()) return below;
  auto iterator = batch_.NewIteratorWithBase(family, std::move(below), whole);
  const auto& extractor = base_->GetOptions().prefix_extractor;
  if (!options.prefix_same_as_start || extractor == nullptr) return iterator;
  return NewPrefixIterator(std::move(iterator), extractor);
}

void TransactionBase::SetSnapshot() {
  snapshot_ = std::shared_ptr<const Snapshot>(base_->GetSnapshot(), [db = base_](const Snapshot* s) { db->ReleaseSnapshot(s); });
}

void TransactionBase::ClearSnapshot() { snapshot_.reset(); }

void TransactionBase::SetSavePoint() {
  save_points_.push_back({order_.size(), used_order_.size(), snapshot_});
  try {
    batch_.SetSavePoint();
  } catch (...) {
    save_points_.pop_back();
    throw;
  }
}

Status TransactionBase::RollbackToSavePoint() {
  Status status = CheckActive();
  if (status.ok()) status = BRAIDDB_MUTANT("rollback-keeps-updates") ? batch_.PopSavePoint() : batch_.RollbackToSavePoint();
  if (!status.ok()) return status;
  UnprotectFrom(save_points_.back().position);
  for (; used_order_.size() > save_points_.back().families; used_order_.pop_back()) used_.erase(used_order_.back());
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
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override {
      const auto handle = to->families_->Find(family);
      return handle == nullptr ? Missing(family) : to->Put(handle.get(), key, value);
    }
    Status DeleteCF(uint32_t family, Slice key) override {
      const auto handle = to->families_->Find(family);
      return handle == nullptr ? Missing(family) : to->Delete(handle.get(), key);
    }
    Status MergeCF(uint32_t family, Slice key, Slice operand) override {
      const auto handle = to->families_->Find(family);
      return handle == nullptr ? Missing(family) : to->Merge(handle.get(), key, operand);
    }
    static Status Missing(uint32_t family) {
      return Status::InvalidArgument("Invalid column family specified in write batch: there is none with id " +
                                     std::to_string(family));
    }
    TransactionBase* to;
  } adder;
  adder.to = this;
  Status status = CheckActive();
  if (!status.ok()) return status;
  const WriteBatch updates = batch;  // a copy, because `batch` may be the transaction's own batch
  SetSavePoint();
  status = updates.Iterate(&adder);
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
  used_.clear();
  used_order_.clear();
}

}  // namespace braiddb
