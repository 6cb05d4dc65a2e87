// WriteBatch: updates that become durable and visible together, or not at all.
//
// Reads and writes are linearizable, over several keys too, and a batch is one operation. Each write and each read takes effect
// at one instant between its call and its return, and what it shows agrees with one order of these instants. So if a write
// was acknowledged, or a read has shown it, then every later read in any thread shows it, whole, and all that came before it.
// For that, a write waits until batches that drew their sequence numbers earlier are visible: beside a large or a synced
// batch other writes take as long as that batch. Writes of one update do not wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

class ColumnFamilyHandle;

// Updates are applied in the order in which they were added: the last one to a key wins. A key or a value of 4 GiB or more is not
// copied into the batch: Iterate, and so every write of the batch, is InvalidArgument until the batch is cleared or rolled back.
// Thread safety: const methods may be called concurrently.
class WriteBatch {
 public:
  void Put(Slice key, Slice value);
  void Delete(Slice key);
  // An operand for the merge operator of the column family. If the family has none, the write of the batch is InvalidArgument.
  void Merge(Slice key, Slice operand);
  // The keys in [begin, end), whatever they are when the batch is written, and what the batch has done to them before. A batch
  // whose `end` comes before its `begin` is InvalidArgument when it is written; equal ones mean nothing.
  void DeleteRange(Slice begin, Slice end);
  // In a column family; null is the default one. The batch keeps the family's id only, and not the handle.
  void Put(const ColumnFamilyHandle* family, Slice key, Slice value);
  void Delete(const ColumnFamilyHandle* family, Slice key);
  void Merge(const ColumnFamilyHandle* family, Slice key, Slice operand);
  void DeleteRange(const ColumnFamilyHandle* family, Slice begin, Slice end);
  void PutCF(uint32_t family, Slice key, Slice value);
  void DeleteCF(uint32_t family, Slice key);
  void MergeCF(uint32_t family, Slice key, Slice operand);
  void DeleteRangeCF(uint32_t family, Slice begin, Slice end);
  // Save points go, too.
  void Clear();

  // Remembers what the batch has. Save points are a stack.
  void SetSavePoint();
  // Takes back what was added since the newest save point, and the save point. NotFound if there is none.
  Status RollbackToSavePoint();
  // Forgets the newest save point only. NotFound if there is none.
  Status PopSavePoint();

  // Number of updates.
  uint32_t Count() const { return count_; }
  // Looks at each update.
  bool HasDeleteRange() const;
  // Bytes of DRAM the updates take.
  size_t ApproximateSize() const { return rep_.size(); }

  // Called once per update, in order.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(Slice key, Slice value) = 0;
    virtual void Delete(Slice key) = 0;
    virtual void Merge(Slice key, Slice operand) = 0;
    // Of any family, by its id. Who knows only the default family gets NotSupported from Iterate when there is another one.
    virtual Status PutCF(uint32_t family, Slice key, Slice value);
    virtual Status DeleteCF(uint32_t family, Slice key);
    virtual Status MergeCF(uint32_t family, Slice key, Slice operand);
    // Of any family. Who does not know ranges gets InvalidArgument from Iterate when there is one.
    virtual Status DeleteRangeCF(uint32_t family, Slice begin, Slice end);
  };
  // Corruption if the representation is not well formed; InvalidArgument if a key or a value was too large to be added. An error
  // of the handler ends it.
  Status Iterate(Handler* handler) const;

  // The serialized form: per update a type byte (1 put, 0 delete, 2 merge, 3 range), key length (u32 LE), value length (u32 LE),
  // key, value; of a range begin and end are these. Of a family that is not the default one, the type has bit 4 set, and its id
  // (u32 LE) is before the key.
  const std::string& Data() const { return rep_; }
  // As Iterate, for a part of Data() that begins and ends between updates.
  static Status IterateData(Slice data, Handler* handler);
  // The batch has no save points then.
  static Status FromData(Slice data, WriteBatch* batch);

 private:
  friend class WriteBatchWithIndex;
  static bool Fits(Slice key, Slice value);
  // Appends an update, or notes that it is too large.
  void Add(uint8_t type, uint32_t family, Slice key, Slice value);
  // InvalidArgument if an update was too large.
  Status CheckComplete() const;
  struct SavePoint {
    size_t size;
    uint32_t count;
    bool is_incomplete;
  };
  std::string rep_;
  uint32_t count_ = 0;
  bool is_incomplete_ = false;  // an update was too large, and is not in rep_
  std::vector<SavePoint> save_points_;
};

}  // namespace braiddb
#pragma GCC visibility pop
