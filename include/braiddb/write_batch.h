// WriteBatch: updates that become durable and visible together, or not at all.
//
// Reads and writes are linearizable, over several keys too, and a batch is one operation. Each read and each write takes effect
// at one instant between its call and its return, and all results agree with one order of these instants. So once a write is
// acknowledged or a read has shown it, every later read in any thread shows the complete write and all writes before it.
//
// COST   A write waits until batches with smaller sequence numbers are visible. Beside a large or a synced batch, other writes
//        take as long as that batch. Writes of one update do not wait for each other.
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

// Updates are applied in the order in which they were added: the last update of a key wins. A key or value of 4 GiB or more is
// not copied into the batch; Iterate, and so every write of the batch, is InvalidArgument until the batch is cleared or rolled
// back.
// Thread safety: const methods may be called concurrently.
class WriteBatch {
 public:
  void Put(Slice key, Slice value);
  void Delete(Slice key);
  // Adds an operand for the family's merge operator. If there is no merge operator, the write of the batch is InvalidArgument.
  void Merge(Slice key, Slice operand);
  // Deletes the keys in [begin, end) that exist when the batch is written, and earlier updates of the batch to such keys. If
  // `end` is before `begin`, the write of the batch is InvalidArgument. Equal bounds have no effect.
  void DeleteRange(Slice begin, Slice end);
  // In a column family; null is the default family. The batch keeps the family's id, not the handle.
  void Put(const ColumnFamilyHandle* family, Slice key, Slice value);
  void Delete(const ColumnFamilyHandle* family, Slice key);
  void Merge(const ColumnFamilyHandle* family, Slice key, Slice operand);
  void DeleteRange(const ColumnFamilyHandle* family, Slice begin, Slice end);
  void PutCF(uint32_t family, Slice key, Slice value);
  void DeleteCF(uint32_t family, Slice key);
  void MergeCF(uint32_t family, Slice key, Slice operand);
  void DeleteRangeCF(uint32_t family, Slice begin, Slice end);
  // Updates at a timestamp, for families whose comparator has timestamps (DB::PutAt). Null is the default family.
  void PutAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value);
  void DeleteAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp);
  void SingleDeleteAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp);
  void DeleteRangeAt(const ColumnFamilyHandle* family, Slice begin, Slice end, Slice timestamp);
  void PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value);
  void DeleteAtCF(uint32_t family, Slice key, Slice timestamp);
  void SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp);
  void DeleteRangeAtCF(uint32_t family, Slice begin, Slice end, Slice timestamp);
  // Removes all updates and save points.
  void Clear();

  // Marks the current end of the batch. Save points are a stack.
  void SetSavePoint();
  // Removes the newest save point and the updates added since. NotFound if there is no save point.
  Status RollbackToSavePoint();
  // Removes the newest save point and keeps the updates. NotFound if there is no save point.
  Status PopSavePoint();

  // Number of updates.
  uint32_t Count() const { return count_; }
  // Reads every update.
  bool HasDeleteRange() const;
  // DRAM of the updates; bytes.
  size_t ApproximateSize() const { return rep_.size(); }

  // Receives each update once, in order.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(Slice key, Slice value) = 0;
    virtual void Delete(Slice key) = 0;
    virtual void Merge(Slice key, Slice operand) = 0;
    // For any family, by its id. The default implementations call the methods above for the default family and return
    // NotSupported for others.
    virtual Status PutCF(uint32_t family, Slice key, Slice value);
    virtual Status DeleteCF(uint32_t family, Slice key);
    virtual Status MergeCF(uint32_t family, Slice key, Slice operand);
    // For any family. The default implementation returns InvalidArgument.
    virtual Status DeleteRangeCF(uint32_t family, Slice begin, Slice end);
    // Updates at a timestamp. The bytes of `timestamp` follow those of `key`, or of `begin`, in memory. The default
    // implementations return InvalidArgument.
    virtual Status PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value);
    virtual Status DeleteAtCF(uint32_t family, Slice key, Slice timestamp);
    virtual Status SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp);
    virtual Status DeleteRangeAtCF(uint32_t family, Slice begin, Slice end, Slice timestamp);
  };
  // Calls the handler for each update and stops at its first error. Corruption if the representation is malformed;
  // InvalidArgument if a key or value was too large to be added.
  Status Iterate(Handler* handler) const;

  // The serialized form, one record per update. Integers are little-endian.
  //
  //   bytes   field
  //   1       type: 1 put, 0 delete, 2 merge, 3 delete range, 4 single delete (with bit 5 only); bit 4 is set for a family other
  //           than the default one, bit 5 for an update at a timestamp
  //   4       key length, or length of begin; with bit 5, the timestamp included that follows the key
  //   4       value length, or length of end
  //   4       family id, only with bit 4
  //   4       length of the timestamp, only with bit 5
  //   …       key, value; of a range, begin and end
  const std::string& Data() const { return rep_; }
  // As Iterate, for a part of Data() that begins and ends between records.
  static Status IterateData(Slice data, Handler* handler);
  // Replaces *batch by the updates in `data`. The batch has no save points then.
  static Status FromData(Slice data, WriteBatch* batch);

 private:
  friend class WriteBatchWithIndex;
  static bool Fits(Slice key, Slice value);
  // Appends an update, or records that it is too large.
  void Add(uint8_t type, uint32_t family, Slice key, Slice value);
  void AddAt(uint8_t type, uint32_t family, Slice key, Slice timestamp, Slice value);
  // InvalidArgument if an update was too large.
  Status CheckComplete() const;
  struct SavePoint {
    size_t size;
    uint32_t count;
    bool is_incomplete;
  };
  std::string rep_;
  uint32_t count_ = 0;
  bool is_incomplete_ = false;  // an update was too large and is not in rep_
  std::vector<SavePoint> save_points_;
};

}  // namespace braiddb
#pragma GCC visibility pop
