// WriteBatch: updates that become durable and visible together, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/slice.h"
#include "braiddb/status.h"

namespace braiddb {

// Updates are applied in the order in which they were added: the last one to a key wins.
// Thread safety: const methods may be called concurrently.
class WriteBatch {
 public:
  void Put(Slice key, Slice value);
  void Delete(Slice key);
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
  // Bytes of DRAM the updates take.
  size_t ApproximateSize() const { return rep_.size(); }

  // Called once per update, in order.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(Slice key, Slice value) = 0;
    virtual void Delete(Slice key) = 0;
  };
  // Corruption if the representation is not well formed.
  Status Iterate(Handler* handler) const;

  // The serialized form: per update a type byte (1 put, 0 delete), key length (u32 LE), value length (u32 LE), key, value.
  const std::string& Data() const { return rep_; }
  // The batch has no save points then.
  static Status FromData(Slice data, WriteBatch* batch);

 private:
  friend class WriteBatchWithIndex;
  static Status IterateData(Slice data, Handler* handler);
  struct SavePoint {
    size_t size;
    uint32_t count;
  };
  std::string rep_;
  uint32_t count_ = 0;
  std::vector<SavePoint> save_points_;
};

}  // namespace braiddb
