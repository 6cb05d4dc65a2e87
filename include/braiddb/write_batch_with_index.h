// WriteBatchWithIndex: a batch that can be read before it is written.
#pragma once

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

// The updates are those of a WriteBatch, in order; beside them is an ordered index of the last one to each key.
// Costs, beyond the batch, a node of some 80 bytes and a copy of the key for each key.
// Thread safety: const methods may be called concurrently.
class WriteBatchWithIndex {
 public:
  // The order of keys: the one of the database that it is read together with.
  explicit WriteBatchWithIndex(const Comparator* comparator = BytewiseComparator());
  WriteBatchWithIndex(const WriteBatchWithIndex&) = delete;
  WriteBatchWithIndex& operator=(const WriteBatchWithIndex&) = delete;

  void Put(Slice key, Slice value);
  void Delete(Slice key);
  void Clear();
  // As WriteBatch's. A rollback takes time in proportion to what stays.
  void SetSavePoint();
  Status RollbackToSavePoint();
  Status PopSavePoint();

  // The updates so far, to be written with DB::Write.
  const WriteBatch& GetWriteBatch() const { return batch_; }
  // Takes the updates of another batch in place of these. Corruption, and no change, if they are not well formed.
  Status Rebuild(const WriteBatch& batch);

  enum class Found : uint8_t { kNothing, kValue, kDeletion };
  // What the batch says of the key; *value points into the batch until the next update.
  Found Find(Slice key, Slice* value) const;
  // NotFound if the batch says nothing of the key, or deletes it.
  Status GetFromBatch(Slice key, std::string* value) const;
  // As if the batch had been written. NotFound if the key would not be there.
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, Slice key, std::string* value) const;

  // Goes through `base` as if the batch had been written. The batch must outlive it. It may be updated meanwhile, which is seen
  // from the next step on. `options`: the bounds that `base` has. key() and value() stay valid until the iterator moves.
  std::unique_ptr<Iterator> NewIteratorWithBase(std::unique_ptr<Iterator> base, const ReadOptions& options = {}) const;

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

  Slice ValueOf(const Update& update) const { return Slice(batch_.Data()).substr(update.value_at, update.value_size); }
  void Add(Slice key, Slice value, bool is_deletion);
  Index IndexOf(Slice data) const;

  const Comparator* const comparator_;
  WriteBatch batch_;
  Index index_;
};

}  // namespace braiddb
