#include "braiddb/write_batch_with_index.h"

#include <utility>

#include "db/no_memory.h"
#include "txn/base_delta_iterator.h"

namespace braiddb {

WriteBatchWithIndex::WriteBatchWithIndex(const Comparator* comparator) : comparator_(comparator), index_(Before{comparator}) {}

void WriteBatchWithIndex::Put(Slice key, Slice value) { Add(key, value, false); }

void WriteBatchWithIndex::Delete(Slice key) { Add(key, Slice(), true); }

// Out of memory: neither the batch nor the index has the update.
void WriteBatchWithIndex::Add(Slice key, Slice value, bool is_deletion) {
  auto place = index_.lower_bound(key);
  const bool is_new = place == index_.end() || comparator_->Compare(place->first, key) != 0;
  if (is_new) place = index_.emplace_hint(place, std::string(key), Update());
  try {
    is_deletion ? batch_.Delete(key) : batch_.Put(key, value);
  } catch (...) {
    if (is_new) index_.erase(place);
    throw;
  }
  place->second = {is_deletion, batch_.Data().size() - value.size(), value.size()};  // the value is the end of the update
}

// Of well-formed updates: made by Put and Delete, or checked by FromData.
WriteBatchWithIndex::Index WriteBatchWithIndex::IndexOf(Slice data) const {
  struct Indexer : WriteBatch::Handler {
    Indexer(const Before& before, Slice updates) : index(before), data(updates) {}
    void Put(Slice key, Slice value) override {
      index[std::string(key)] = {false, static_cast<size_t>(value.data() - data.data()), value.size()};
    }
    void Delete(Slice key) override { index[std::string(key)] = {true, 0, 0}; }
    Index index;
    const Slice data;
  } indexer(Before{comparator_}, data);
  (void)WriteBatch::IterateData(data, &indexer);
  return std::move(indexer.index);
}

void WriteBatchWithIndex::Clear() {
  batch_.Clear();
  index_.clear();
}

void WriteBatchWithIndex::SetSavePoint() { batch_.SetSavePoint(); }

Status WriteBatchWithIndex::RollbackToSavePoint() try {
  const bool changes = !batch_.save_points_.empty() && batch_.save_points_.back().count != batch_.Count();
  if (changes) index_ = IndexOf(Slice(batch_.Data()).substr(0, batch_.save_points_.back().size));
  return batch_.RollbackToSavePoint();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status WriteBatchWithIndex::PopSavePoint() { return batch_.PopSavePoint(); }

Status WriteBatchWithIndex::Rebuild(const WriteBatch& batch) try {
  WriteBatch updates;
  Status status = WriteBatch::FromData(batch.Data(), &updates);
  if (!status.ok()) return status;
  index_ = IndexOf(updates.Data());
  batch_ = std::move(updates);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

WriteBatchWithIndex::Found WriteBatchWithIndex::Find(Slice key, Slice* value) const {
  const auto place = index_.find(key);
  if (place == index_.end()) return Found::kNothing;
  if (place->second.is_deletion) return Found::kDeletion;
  *value = ValueOf(place->second);
  return Found::kValue;
}

Status WriteBatchWithIndex::GetFromBatch(Slice key, std::string* value) const try {
  Slice found;
  if (Find(key, &found) != Found::kValue) return Status::NotFound();
  value->assign(found);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const try {
  Slice found;
  switch (Find(key, &found)) {
    case Found::kNothing:
      return db->Get(options, key, value);
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
  return std::make_unique<BaseDeltaIterator>(this, std::move(base), options);
}

}  // namespace braiddb
