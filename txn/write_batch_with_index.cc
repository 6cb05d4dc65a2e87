#include "braiddb/write_batch_with_index.h"

#include <utility>

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

void WriteBatchWithIndex::IndexAll() {
  struct Indexer : WriteBatch::Handler {
    void Put(Slice key, Slice value) override { to->index_[std::string(key)] = {false, At(value), value.size()}; }
    void Delete(Slice key) override { to->index_[std::string(key)] = {true, 0, 0}; }
    size_t At(Slice value) const { return static_cast<size_t>(value.data() - to->batch_.Data().data()); }
    WriteBatchWithIndex* to;
  } indexer;
  indexer.to = this;
  index_.clear();
  (void)batch_.Iterate(&indexer);  // it was made by Put and Delete, or checked by FromData
}

void WriteBatchWithIndex::Clear() {
  batch_.Clear();
  index_.clear();
}

void WriteBatchWithIndex::SetSavePoint() { batch_.SetSavePoint(); }

Status WriteBatchWithIndex::RollbackToSavePoint() {
  const uint32_t count = batch_.Count();
  Status status = batch_.RollbackToSavePoint();
  if (status.ok() && batch_.Count() != count) IndexAll();
  return status;
}

Status WriteBatchWithIndex::PopSavePoint() { return batch_.PopSavePoint(); }

Status WriteBatchWithIndex::Rebuild(const WriteBatch& batch) {
  Status status = WriteBatch::FromData(batch.Data(), &batch_);
  if (status.ok()) IndexAll();
  return status;
}

WriteBatchWithIndex::Found WriteBatchWithIndex::Find(Slice key, Slice* value) const {
  const auto place = index_.find(key);
  if (place == index_.end()) return Found::kNothing;
  if (place->second.is_deletion) return Found::kDeletion;
  *value = ValueOf(place->second);
  return Found::kValue;
}

Status WriteBatchWithIndex::GetFromBatch(Slice key, std::string* value) const {
  Slice found;
  if (Find(key, &found) != Found::kValue) return Status::NotFound();
  value->assign(found);
  return Status::OK();
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const {
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
}

std::unique_ptr<Iterator> WriteBatchWithIndex::NewIteratorWithBase(std::unique_ptr<Iterator> base,
                                                                   const ReadOptions& options) const {
  return std::make_unique<BaseDeltaIterator>(this, std::move(base), options);
}

}  // namespace braiddb
