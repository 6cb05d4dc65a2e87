#include "braiddb/write_batch_with_index.h"

#include <utility>

#include "db/no_memory.h"
#include "txn/base_delta_iterator.h"

namespace braiddb {

namespace {

uint32_t IdOf(const ColumnFamilyHandle* family) { return family == nullptr ? 0 : family->GetID(); }

}  // namespace

WriteBatchWithIndex::WriteBatchWithIndex(const Comparator* comparator) : index_(Before{comparator}) {}

void WriteBatchWithIndex::Put(Slice key, Slice value) { Add(nullptr, key, value, false); }

void WriteBatchWithIndex::Delete(Slice key) { Add(nullptr, key, Slice(), true); }

void WriteBatchWithIndex::Put(const ColumnFamilyHandle* family, Slice key, Slice value) { Add(family, key, value, false); }

void WriteBatchWithIndex::Delete(const ColumnFamilyHandle* family, Slice key) { Add(family, key, Slice(), true); }

// Out of memory: neither the batch nor the index has the update.
void WriteBatchWithIndex::Add(const ColumnFamilyHandle* family, Slice key, Slice value, bool is_deletion) {
  const uint32_t id = IdOf(family);
  Index* const index = id == 0 ? &index_ : &others_.try_emplace(id, Before{family->GetOptions().comparator}).first->second;
  auto place = index->lower_bound(key);
  const bool is_new = place == index->end() || index->key_comp().comparator->Compare(place->first, key) != 0;
  if (is_new) place = index->emplace_hint(place, std::string(key), Update());
  try {
    is_deletion ? batch_.DeleteCF(id, key) : batch_.PutCF(id, key, value);
  } catch (...) {
    if (is_new) index->erase(place);
    throw;
  }
  place->second = {is_deletion, batch_.Data().size() - value.size(), value.size()};  // the value is the end of the update
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

// Of well-formed updates: made by Put and Delete, or checked by FromData.
WriteBatchWithIndex::Indexes WriteBatchWithIndex::IndexesOf(Slice data, Indexes empty) {
  struct Indexer : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override {
      At(family)[std::string(key)] = {false, static_cast<size_t>(value.data() - data.data()), value.size()};
      return Status::OK();
    }
    Status DeleteCF(uint32_t family, Slice key) override {
      At(family)[std::string(key)] = {true, 0, 0};
      return Status::OK();
    }
    Index& At(uint32_t family) { return indexes.try_emplace(family, Before{BytewiseComparator()}).first->second; }
    Indexes indexes;
    Slice data;
  } indexer;
  indexer.indexes = std::move(empty);
  indexer.data = data;
  (void)WriteBatch::IterateData(data, &indexer);
  return std::move(indexer.indexes);
}

void WriteBatchWithIndex::Install(Indexes indexes) noexcept {
  index_.swap(indexes.begin()->second);  // that of the default family is always there
  indexes.erase(indexes.begin());
  others_.swap(indexes);
}

// Anew, since keys that are equal in the new order may not have been in the old one: the last update of them counts.
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
  Status status = WriteBatch::FromData(batch.Data(), &updates);
  if (!status.ok()) return status;
  Install(IndexesOf(updates.Data(), EmptyIndexes()));
  batch_ = std::move(updates);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

WriteBatchWithIndex::Found WriteBatchWithIndex::Find(const ColumnFamilyHandle* family, Slice key, Slice* value) const {
  const Index* const index = FindIndex(IdOf(family));
  if (index == nullptr) return Found::kNothing;
  const auto place = index->find(key);
  if (place == index->end()) return Found::kNothing;
  if (place->second.is_deletion) return Found::kDeletion;
  *value = ValueOf(place->second);
  return Found::kValue;
}

Status WriteBatchWithIndex::GetFromBatch(const ColumnFamilyHandle* family, Slice key, std::string* value) const try {
  Slice found;
  if (Find(family, key, &found) != Found::kValue) return Status::NotFound();
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
    case Found::kValue:
      break;
  }
  value->assign(found);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(std::unique_ptr<Iterator> base,
                                                                   const ReadOptions& options) const {
  return NewIteratorWithBase(nullptr, std::move(base), options);
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(const ColumnFamilyHandle* family,
                                                                   std::unique_ptr<Iterator> base,
                                                                   const ReadOptions& options) const {
  const uint32_t id = IdOf(family);
  const Comparator* const comparator = id == 0 ? OrderOf(0) : family->GetOptions().comparator;
  return std::make_unique<BaseDeltaIterator>(this, id, comparator, std::move(base), options);
}

}  // namespace braiddb
