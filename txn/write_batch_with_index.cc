#include "braiddb/write_batch_with_index.h"

#include <utility>

#include "db/merge_context.h"
#include "db/no_memory.h"
#include "txn/base_delta_iterator.h"

namespace braiddb {

namespace {

uint32_t IdOf(const ColumnFamilyHandle* family) { return family == nullptr ? 0 : family->GetID(); }

// Takes the updates that the class has. Others, such as those at timestamps, are errors.
struct Checker final : WriteBatch::Handler {
  void Put(Slice, Slice) override {}
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t, Slice, Slice) override { return Status::OK(); }
  Status DeleteCF(uint32_t, Slice) override { return Status::OK(); }
  Status MergeCF(uint32_t, Slice, Slice) override { return Status::OK(); }
};

}  // namespace

WriteBatchWithIndex::WriteBatchWithIndex(const Comparator* comparator) : index_(Before{comparator}) {}

void WriteBatchWithIndex::Put(Slice key, Slice value) { Put(nullptr, key, value); }

void WriteBatchWithIndex::Delete(Slice key) { Delete(nullptr, key); }

void WriteBatchWithIndex::Merge(Slice key, Slice operand) { Merge(nullptr, key, operand); }

void WriteBatchWithIndex::Put(const ColumnFamilyHandle* family, Slice key, Slice value) {
  Add(family, key, value, Found::kValue);
}

void WriteBatchWithIndex::Delete(const ColumnFamilyHandle* family, Slice key) { Add(family, key, Slice(), Found::kDeletion); }

void WriteBatchWithIndex::Merge(const ColumnFamilyHandle* family, Slice key, Slice operand) {
  Add(family, key, operand, Found::kOperands);
}

Status WriteBatchWithIndex::DeleteRange(const ColumnFamilyHandle*, Slice, Slice) {
  return Status::NotSupported("DeleteRange unsupported in WriteBatchWithIndex");  // same text as RocksDB
}

// Changes the index entry of a key. Allocates nothing if the operand vector has spare capacity.
void WriteBatchWithIndex::Enter(Update* update, Found kind, const Place& value) {
  if (kind == Found::kOperands) {
    update->operands.push_back(value);
  } else {
    update->base = kind;
    update->value = value;
    update->operands.clear();
  }
}

// If memory runs out, neither the batch nor the index has the update.
void WriteBatchWithIndex::Add(const ColumnFamilyHandle* family, Slice key, Slice value, Found kind) {
  if (!WriteBatch::Fits(key, value)) {
    batch_.is_incomplete_ = true;
    return;
  }
  const uint32_t id = IdOf(family);
  Index* const index = id == 0 ? &index_ : &others_.try_emplace(id, Before{family->GetOptions().comparator}).first->second;
  auto place = index->lower_bound(key);
  const bool is_new = place == index->end() || index->key_comp().comparator->Compare(place->first, key) != 0;
  if (is_new) place = index->emplace_hint(place, std::string(key), Update());
  try {
    std::vector<Place>& operands = place->second.operands;
    if (kind == Found::kOperands) {
      if (operands.size() == operands.capacity()) operands.reserve(2 * operands.size() + 1);
      batch_.MergeCF(id, key, value);
    } else {
      kind == Found::kDeletion ? batch_.DeleteCF(id, key) : batch_.PutCF(id, key, value);
    }
  } catch (...) {
    if (is_new) index->erase(place);
    throw;
  }
  // the value is the last part of the update in the batch
  Enter(&place->second, kind, {batch_.Data().size() - value.size(), value.size()});
}

const WriteBatchWithIndex::Index* WriteBatchWithIndex::FindIndex(uint32_t family) const {
  if (family == 0) return &index_;
  const auto place = others_.find(family);
  return place == others_.end() ? nullptr : &place->second;
}

const Comparator* WriteBatchWithIndex::OrderOf(uint32_t family) const {
  const Index* const index = FindIndex(family);
  return index == nullptr ? nullptr : index->key_comp().comparator;
}

WriteBatchWithIndex::Indexes WriteBatchWithIndex::EmptyIndexes() const {
  Indexes empty;
  empty.try_emplace(0, index_.key_comp());
  for (const auto& [family, index] : others_) empty.try_emplace(family, index.key_comp());
  return empty;
}

// REQUIRES: the updates are well-formed, as made by the methods above or checked by FromData.
WriteBatchWithIndex::Indexes WriteBatchWithIndex::IndexesOf(Slice data, Indexes empty) {
  struct Indexer : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override { return Add(family, key, Found::kValue, value); }
    Status DeleteCF(uint32_t family, Slice key) override { return Add(family, key, Found::kDeletion, data); }
    Status MergeCF(uint32_t family, Slice key, Slice operand) override { return Add(family, key, Found::kOperands, operand); }
    Status Add(uint32_t family, Slice key, Found kind, Slice value) {
      Index& index = indexes.try_emplace(family, Before{BytewiseComparator()}).first->second;
      Enter(&index[std::string(key)], kind, {static_cast<size_t>(value.data() - data.data()), value.size()});
      return Status::OK();
    }
    Indexes indexes;
    Slice data;
  } indexer;
  indexer.indexes = std::move(empty);
  indexer.data = data;
  (void)WriteBatch::IterateData(data, &indexer);
  return std::move(indexer.indexes);
}

void WriteBatchWithIndex::Install(Indexes indexes) noexcept {
  index_.swap(indexes.begin()->second);  // the default family always has an index
  indexes.erase(indexes.begin());
  others_.swap(indexes);
}

// Rebuilds the index. Keys that were different in the old order may be equal in the new order. Then the last update of them
// counts.
void WriteBatchWithIndex::SetOrder(uint32_t family, const Comparator* comparator) {
  if (OrderOf(family) == comparator) return;
  Indexes empty = EmptyIndexes();
  empty.erase(family);
  empty.try_emplace(family, Before{comparator});
  Install(IndexesOf(batch_.Data(), std::move(empty)));
}

void WriteBatchWithIndex::Clear() {
  batch_.Clear();
  index_.clear();
  others_.clear();
}

void WriteBatchWithIndex::SetSavePoint() { batch_.SetSavePoint(); }

Status WriteBatchWithIndex::RollbackToSavePoint() try {
  const bool changes = !batch_.save_points_.empty() && batch_.save_points_.back().count != batch_.Count();
  if (changes) Install(IndexesOf(Slice(batch_.Data()).substr(0, batch_.save_points_.back().size), EmptyIndexes()));
  return batch_.RollbackToSavePoint();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status WriteBatchWithIndex::PopSavePoint() { return batch_.PopSavePoint(); }

Status WriteBatchWithIndex::Rebuild(const WriteBatch& batch) try {
  WriteBatch updates;
  Status status = batch.CheckComplete();
  if (status.ok()) status = WriteBatch::FromData(batch.Data(), &updates);
  if (!status.ok()) return status;
  if (updates.HasDeleteRange()) return DeleteRange({}, {});
  Checker checker;
  if (status = updates.Iterate(&checker); !status.ok()) return status;
  Install(IndexesOf(updates.Data(), EmptyIndexes()));
  batch_ = std::move(updates);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

const WriteBatchWithIndex::Update* WriteBatchWithIndex::FindUpdate(const ColumnFamilyHandle* family, Slice key) const {
  const Index* const index = FindIndex(IdOf(family));
  if (index == nullptr) return nullptr;
  const auto place = index->find(key);
  return place == index->end() ? nullptr : &place->second;
}

WriteBatchWithIndex::Found WriteBatchWithIndex::Find(const ColumnFamilyHandle* family, Slice key, Slice* value) const {
  const Update* const update = FindUpdate(family, key);
  if (update == nullptr) return Found::kNothing;
  if (!update->operands.empty()) return Found::kOperands;
  if (update->base == Found::kValue) *value = At(update->value);
  return update->base;
}

bool WriteBatchWithIndex::NeedsBase(const ColumnFamilyHandle* family, Slice key) const {
  return FindUpdate(family, key)->base == Found::kNothing;
}

Status WriteBatchWithIndex::Apply(const MergeOperator* merge, Slice key, const Update& update, const Slice* existing,
                                  std::string* value) const {
  if (merge == nullptr) return Status::InvalidArgument("merge_operator is not properly initialized.");
  std::vector<Slice> operands;
  operands.reserve(update.operands.size());
  for (const Place& operand : update.operands) operands.push_back(At(operand));
  const Slice own = At(update.value);
  if (update.base != Found::kNothing) existing = update.base == Found::kValue ? &own : nullptr;
  return FullMerge(*merge, key, existing, operands, value);
}

Status WriteBatchWithIndex::ApplyOperands(const MergeOperator* merge, const ColumnFamilyHandle* family, Slice key,
                                          const Slice* existing, std::string* value) const try {
  return Apply(merge, key, *FindUpdate(family, key), existing, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status WriteBatchWithIndex::GetFromBatch(const ColumnFamilyHandle* family, Slice key, std::string* value,
                                         const MergeOperator* merge) const try {
  Slice found;
  switch (Find(family, key, &found)) {
    case Found::kNothing:
    case Found::kDeletion:
      return Status::NotFound();
    case Found::kOperands:
      if (NeedsBase(family, key)) return Status::InvalidArgument("the batch has operands for what the database has; read both");
      if (merge == nullptr && family != nullptr) merge = family->GetOptions().merge_operator.get();
      return ApplyOperands(merge, family, key, nullptr, value);
    case Found::kValue:
      break;
  }
  value->assign(found);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, Slice key,
                                              std::string* value) const try {
  Slice found;
  switch (Find(family, key, &found)) {
    case Found::kNothing:
      return family == nullptr ? db->Get(options, key, value) : db->Get(options, family, key, value);
    case Found::kDeletion:
      return Status::NotFound();
    case Found::kOperands: {
      if (family == nullptr) family = db->DefaultColumnFamily();
      std::string base;
      const Status status = NeedsBase(family, key) ? db->Get(options, family, key, &base) : Status::NotFound();
      if (!status.ok() && !status.IsNotFound()) return status;
      const Slice existing = base;
      const MergeOperator* const merge = family->GetOptions().merge_operator.get();
      return ApplyOperands(merge, family, key, status.ok() ? &existing : nullptr, value);
    }
    case Found::kValue:
      break;
  }
  value->assign(found);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(std::unique_ptr<Iterator> base, const ReadOptions& options,
                                                                   std::shared_ptr<const MergeOperator> merge) const {
  return NewIteratorWithBase(nullptr, std::move(base), options, std::move(merge));
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(const ColumnFamilyHandle* family,
                                                                   std::unique_ptr<Iterator> base, const ReadOptions& options,
                                                                   std::shared_ptr<const MergeOperator> merge) const {
  const uint32_t id = IdOf(family);
  if (merge == nullptr && family != nullptr) merge = family->GetOptions().merge_operator;
  const Comparator* const comparator = id == 0 ? OrderOf(0) : family->GetOptions().comparator;
  return std::make_unique<BaseDeltaIterator>(this, id, comparator, std::move(base), options, std::move(merge));
}

}  // namespace braiddb
