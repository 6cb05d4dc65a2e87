// WriteBatchWithIndex: a batch that can be read before it is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "braiddb/write_batch.h"

namespace braiddb {

// The updates are those of a WriteBatch, in order; beside them is, for each column family, an ordered index of the last one to
// each key.
// Costs, beyond the batch, a node of some 80 bytes and a copy of the key for each key.
// Thread safety: const methods may be called concurrently.
class WriteBatchWithIndex {
 public:
  // The order of the default family's keys: the one of the database that it is read together with. Of another family it is that
  // of the handle with which the batch first meets it.
  explicit WriteBatchWithIndex(const Comparator* comparator = BytewiseComparator());
  WriteBatchWithIndex(const WriteBatchWithIndex&) = delete;
  WriteBatchWithIndex& operator=(const WriteBatchWithIndex&) = delete;

  void Put(Slice key, Slice value);
  void Delete(Slice key);
  // In a column family; null is the default one. The batch keeps the family's id and its comparator, and not the handle.
  void Put(const ColumnFamilyHandle* family, Slice key, Slice value);
  void Delete(const ColumnFamilyHandle* family, Slice key);
  // The batch has met no other family than the default one then.
  void Clear();
  // As WriteBatch's. A rollback takes time in proportion to what stays.
  void SetSavePoint();
  Status RollbackToSavePoint();
  Status PopSavePoint();

  // The updates so far, to be written with DB::Write.
  const WriteBatch& GetWriteBatch() const { return batch_; }
  // Takes the updates of another batch in place of these. Corruption, and no change, if they are not well formed. Families that
  // this one has not met are in the order of bytes, unless SetOrder says otherwise.
  Status Rebuild(const WriteBatch& batch);
  // Sorts what the batch has of a family. There must be no iterator over that family.
  void SetOrder(uint32_t family, const Comparator* comparator);
  // Null: the batch has not met the family.
  const Comparator* OrderOf(uint32_t family) const;

  enum class Found : uint8_t { kNothing, kValue, kDeletion };
  // What the batch says of the key; *value points into the batch until the next update.
  Found Find(Slice key, Slice* value) const { return Find(nullptr, key, value); }
  Found Find(const ColumnFamilyHandle* family, Slice key, Slice* value) const;
  // NotFound if the batch says nothing of the key, or deletes it.
  Status GetFromBatch(Slice key, std::string* value) const { return GetFromBatch(nullptr, key, value); }
  Status GetFromBatch(const ColumnFamilyHandle* family, Slice key, std::string* value) const;
  // As if the batch had been written. NotFound if the key would not be there.
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) const;

  // Goes through `base` as if the batch had been written. The batch must outlive it. It may be updated meanwhile, which is seen
  // from the next step on. `options`: the bounds that `base` has. key() and value() stay valid until the iterator moves. With a
  // family, `base` is an iterator of that, and its order is the handle's, which is the batch's (SetOrder).
  std::unique_ptr<Iterator> NewIteratorWithBase(std::unique_ptr<Iterator> base, const ReadOptions& options = {}) const;
  std::unique_ptr<Iterator> NewIteratorWithBase(const ColumnFamilyHandle* family, std::unique_ptr<Iterator> base,
                                                const ReadOptions& options = {}) const;

 private:
  friend class BaseDeltaIterator;
  struct Before {
    using is_transparent = void;
    const Comparator* comparator;
    bool operator()(Slice a, Slice b) const { return comparator->Compare(a, b) < 0; }
  };
  struct Update {
    bool is_deletion = false;
    size_t value_at = 0;  // in the batch's data
    size_t value_size = 0;
  };
  using Index = std::map<std::string, Update, Before>;
  using Indexes = std::map<uint32_t, Index>;

  Slice ValueOf(const Update& update) const { return Slice(batch_.Data()).substr(update.value_at, update.value_size); }
  // Null: the batch has not met the family.
  const Index* FindIndex(uint32_t family) const;
  void Add(const ColumnFamilyHandle* family, Slice key, Slice value, bool is_deletion);
  // Of the families that the batch has met, with their orders.
  Indexes EmptyIndexes() const;
  static Indexes IndexesOf(Slice data, Indexes empty);
  void Install(Indexes indexes) noexcept;

  WriteBatch batch_;
  Index index_;  // of the default family
  Indexes others_;
};

}  // namespace braiddb
