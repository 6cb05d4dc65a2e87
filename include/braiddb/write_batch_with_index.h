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

namespace braiddb {
class BaseDeltaIterator;  // is not exported, so its first declaration is here
}
#pragma GCC visibility push(default)
namespace braiddb {

// A WriteBatch with an ordered index for each column family. The index has, for each key, the last put or deletion and the
// operands after it. Cost: a node of about 80 bytes and a copy of the key for each key, beyond the batch.
// Thread safety: const methods may be called concurrently.
class WriteBatchWithIndex {
 public:
  // `comparator`: that of the default family of the database. Another family has the comparator of the handle in its first
  // update.
  explicit WriteBatchWithIndex(const Comparator* comparator = BytewiseComparator());
  WriteBatchWithIndex(const WriteBatchWithIndex&) = delete;
  WriteBatchWithIndex& operator=(const WriteBatchWithIndex&) = delete;

  void Put(Slice key, Slice value);
  void Delete(Slice key);
  void Merge(Slice key, Slice operand);
  // In a column family; null is the default family. The batch keeps the family's id and comparator, not the handle.
  void Put(const ColumnFamilyHandle* family, Slice key, Slice value);
  void Delete(const ColumnFamilyHandle* family, Slice key);
  void Merge(const ColumnFamilyHandle* family, Slice key, Slice operand);
  // NotSupported, as in RocksDB: the index has single keys only.
  Status DeleteRange(Slice begin, Slice end) { return DeleteRange(nullptr, begin, end); }
  Status DeleteRange(const ColumnFamilyHandle* family, Slice begin, Slice end);
  // Removes all updates, save points, and the comparators of other families.
  void Clear();
  // As WriteBatch's. A rollback takes time in proportion to the remaining updates.
  void SetSavePoint();
  Status RollbackToSavePoint();
  Status PopSavePoint();

  // The updates, for DB::Write.
  const WriteBatch& GetWriteBatch() const { return batch_; }
  // Replaces all updates by those of `batch`. Families without an earlier update here have bytewise order until SetOrder. On an
  // error nothing changes.
  //   Corruption       `batch` is malformed
  //   InvalidArgument  an update was too large to be added to it
  //   NotSupported     it deletes ranges
  Status Rebuild(const WriteBatch& batch);
  // Sorts the index of a family by `comparator`. There must be no iterator over that family.
  void SetOrder(uint32_t family, const Comparator* comparator);
  // The comparator of a family; null if the batch has no index for the family.
  const Comparator* OrderOf(uint32_t family) const;

  // kOperands: the key has operands, and perhaps a put or a deletion below them.
  enum class Found : uint8_t { kNothing, kValue, kDeletion, kOperands };
  // Looks the key up in the batch. *value points into the batch and is valid until the next update.
  Found Find(Slice key, Slice* value) const { return Find(nullptr, key, value); }
  Found Find(const ColumnFamilyHandle* family, Slice key, Slice* value) const;
  // Whether the key's operands apply to the value in the database. REQUIRES: Find returns kOperands.
  bool NeedsBase(const ColumnFamilyHandle* family, Slice key) const;
  // Applies the key's operands to the batch's own put or deletion below them, or else to `existing`: the value in the database,
  // null if there is none. InvalidArgument if `merge` is null; Corruption if they cannot be applied. REQUIRES: Find returns
  // kOperands.
  Status ApplyOperands(const MergeOperator* merge, const ColumnFamilyHandle* family, Slice key, const Slice* existing,
                       std::string* value) const;
  // NotFound if the batch has no update of the key or deletes it. For operands as ApplyOperands; InvalidArgument if they apply to
  // the value in the database. A null `merge` is the family's operator.
  Status GetFromBatch(Slice key, std::string* value, const MergeOperator* merge = nullptr) const {
    return GetFromBatch(nullptr, key, value, merge);
  }
  Status GetFromBatch(const ColumnFamilyHandle* family, Slice key, std::string* value,
                      const MergeOperator* merge = nullptr) const;
  // Reads the key as if the batch had been written. NotFound if the key would not exist.
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) const;

  // An iterator over `base` as if the batch had been written. The batch must outlive it. Updates made to the batch later are
  // visible from the next step on. key() and value() are valid until the iterator moves. `options` must have the bounds of
  // `base`. With a family, `base` iterates over that family, with the comparator of the handle and of the batch (SetOrder). A
  // null `merge` is the family's operator.
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
    size_t at = 0;  // offset in the batch's data
    size_t size = 0;
  };
  // The last put or deletion of a key, and the operands after it.
  struct Update {
    Found base = Found::kNothing;
    Place value;
    std::vector<Place> operands;
  };
  using Index = std::map<std::string, Update, Before>;
  using Indexes = std::map<uint32_t, Index>;

  Slice At(const Place& place) const { return Slice(batch_.Data()).substr(place.at, place.size); }
  // Null if the batch has no index for the family.
  const Index* FindIndex(uint32_t family) const;
  void Add(const ColumnFamilyHandle* family, Slice key, Slice value, Found kind);
  static void Enter(Update* update, Found kind, const Place& value);
  // Null if the batch has no update of the key.
  const Update* FindUpdate(const ColumnFamilyHandle* family, Slice key) const;
  Status Apply(const MergeOperator* merge, Slice key, const Update& update, const Slice* existing, std::string* value) const;
  // Empty indexes of the known families, with their comparators.
  Indexes EmptyIndexes() const;
  static Indexes IndexesOf(Slice data, Indexes empty);
  void Install(Indexes indexes) noexcept;

  WriteBatch batch_;
  Index index_;  // of the default family
  Indexes others_;
};

}  // namespace braiddb
#pragma GCC visibility pop
