// WriteBatchWithIndex: a batch that can be read before it is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "braiddb/iterator.h"
#include "braiddb/merge_operator.h"
#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "braiddb/write_batch.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The updates are those of a WriteBatch, in order; beside them is, for each column family, an ordered index of the last one to
// each key, and of the operands behind that.
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
  void Merge(Slice key, Slice operand);
  // In a column family; null is the default one. The batch keeps the family's id and its comparator, and not the handle.
  void Put(const ColumnFamilyHandle* family, Slice key, Slice value);
  void Delete(const ColumnFamilyHandle* family, Slice key);
  void Merge(const ColumnFamilyHandle* family, Slice key, Slice operand);
  // NotSupported, as in RocksDB: the index is of keys.
  Status DeleteRange(Slice begin, Slice end) { return DeleteRange(nullptr, begin, end); }
  Status DeleteRange(const ColumnFamilyHandle* family, Slice begin, Slice end);
  // The batch has met no other family than the default one then.
  void Clear();
  // As WriteBatch's. A rollback takes time in proportion to what stays.
  void SetSavePoint();
  Status RollbackToSavePoint();
  Status PopSavePoint();

  // The updates so far, to be written with DB::Write.
  const WriteBatch& GetWriteBatch() const { return batch_; }
  // Takes the updates of another batch in place of these. Corruption, and no change, if they are not well formed;
  // InvalidArgument if one was too large to be added; NotSupported if they delete ranges. Families that this one has not met are
  // in the order of bytes, unless SetOrder says otherwise.
  Status Rebuild(const WriteBatch& batch);
  // Sorts what the batch has of a family. There must be no iterator over that family.
  void SetOrder(uint32_t family, const Comparator* comparator);
  // Null: the batch has not met the family.
  const Comparator* OrderOf(uint32_t family) const;

  // kOperands: the key has some, and perhaps a put or a deletion below them.
  enum class Found : uint8_t { kNothing, kValue, kDeletion, kOperands };
  // What the batch says of the key; *value points into the batch until the next update.
  Found Find(Slice key, Slice* value) const { return Find(nullptr, key, value); }
  Found Find(const ColumnFamilyHandle* family, Slice key, Slice* value) const;
  // Whether a key's operands are applied to what the database has. REQUIRES: Find says kOperands.
  bool NeedsBase(const ColumnFamilyHandle* family, Slice key) const;
  // Applies them: to `existing`, which is null if the database does not have the key, unless the batch has put or deleted it
  // before. InvalidArgument if `merge` is null; Corruption if they cannot be applied. REQUIRES: Find says kOperands.
  Status ApplyOperands(const MergeOperator* merge, const ColumnFamilyHandle* family, Slice key, const Slice* existing,
                       std::string* value) const;
  // NotFound if the batch says nothing of the key, or deletes it. With operands as ApplyOperands, and InvalidArgument if these
  // are for what the database has. Without `merge` the family's operator applies them.
  Status GetFromBatch(Slice key, std::string* value, const MergeOperator* merge = nullptr) const {
    return GetFromBatch(nullptr, key, value, merge);
  }
  Status GetFromBatch(const ColumnFamilyHandle* family, Slice key, std::string* value,
                      const MergeOperator* merge = nullptr) const;
  // As if the batch had been written. NotFound if the key would not be there.
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) const;

  // Goes through `base` as if the batch had been written. The batch must outlive it. It may be updated meanwhile, which is seen
  // from the next step on. `options`: the bounds that `base` has. key() and value() stay valid until the iterator moves. With a
  // family, `base` is an iterator of that, and its order is the handle's, which is the batch's (SetOrder). `merge`: applies
  // operands; without it the family's does.
  std::unique_ptr<Iterator> NewIteratorWithBase(std::unique_ptr<Iterator> base, const ReadOptions& options = {},
                                                std::shared_ptr<const MergeOperator> merge = nullptr) const;
  std::unique_ptr<Iterator> NewIteratorWithBase(const ColumnFamilyHandle* family, std::unique_ptr<Iterator> base,
                                                const ReadOptions& options = {},
                                                std::shared_ptr<const MergeOperator> merge = nullptr) const;

 private:
  friend class BaseDeltaIterator;
  struct Before {
    using is_transparent = void;
    const Comparator* comparator;
    bool operator()(Slice a, Slice b) const { return comparator->Compare(a, b) < 0; }
  };
  struct Place {
    size_t at = 0;  // in the batch's data
    size_t size = 0;
  };
  // The last put or deletion of a key, and the operands behind it.
  struct Update {
    Found base = Found::kNothing;
    Place value;
    std::vector<Place> operands;
  };
  using Index = std::map<std::string, Update, Before>;
  using Indexes = std::map<uint32_t, Index>;

  Slice At(const Place& place) const { return Slice(batch_.Data()).substr(place.at, place.size); }
  // Null: the batch has not met the family.
  const Index* FindIndex(uint32_t family) const;
  void Add(const ColumnFamilyHandle* family, Slice key, Slice value, Found kind);
  static void Enter(Update* update, Found kind, const Place& value);
  // Null: the batch says nothing of the key.
  const Update* FindUpdate(const ColumnFamilyHandle* family, Slice key) const;
  Status Apply(const MergeOperator* merge, Slice key, const Update& update, const Slice* existing, std::string* value) const;
  // Of the families that the batch has met, with their orders.
  Indexes EmptyIndexes() const;
  static Indexes IndexesOf(Slice data, Indexes empty);
  void Install(Indexes indexes) noexcept;

  WriteBatch batch_;
  Index index_;  // of the default family
  Indexes others_;
};

}  // namespace braiddb
#pragma GCC visibility pop
