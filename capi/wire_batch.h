// Batches as RocksDB lays them out, for programs that store them, send them or look into them.
//
// LAYOUT (fixed numbers little endian)
//   sequence number (8) of the first update, count of updates (4), records
//   a record: tag (1), column family (varint) if the tag says that there is one, one or two strings
//   a string: its length (varint), bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "braiddb/write_batch.h"

namespace braiddb::capi {

// What is kept with a braiddb::WriteBatch: above all what RocksDB's form has beside the updates.
struct WireNotes {
  enum class Kind : uint8_t {
    kLogData,       // a record of its own
    kSingleDelete,  // of the update that follows, a deletion
    kNoop,          // a record of its own
  };
  struct Note {
    uint32_t before;  // as many updates come before it
    Kind kind;
    std::string data;  // log data
  };
  std::vector<Note> notes;  // in order
  uint64_t sequence = 0;

  void Clear() {
    notes.clear();
    sequence = 0;
  }
};

// RocksDB's form of one batch. Update encodes only what was added since the Update before, so the cost of many calls is that of
// one: linear in the batch.
// Thread safety: Update, while nobody changes the batch. The other methods: none.
class WireForm {
 public:
  WireForm() = default;
  WireForm(const WireForm&) = delete;
  WireForm& operator=(const WireForm&) = delete;

  // The form, which stays where it is until the batch has changed and Update is called again. Throws std::bad_alloc.
  Slice Update(const WriteBatch& batch, const WireNotes& notes);

  // To be called with the batch's methods of these names. Throws std::bad_alloc.
  void SetSavePoint(const WriteBatch& batch, const WireNotes& notes);
  // REQUIRES: there is a save point.
  void PopSavePoint() { save_points_.pop_back(); }
  void RollbackToSavePoint();
  // To be called when updates were taken out of the batch in another way. Save points go, too.
  void Restart() noexcept;

 private:
  // Between two records.
  struct Position {
    size_t batch_bytes = 0;
    uint32_t updates = 0;
    size_t notes = 0;
    size_t form_bytes = 0;  // of a save point 0: the form does not reach the save point yet
  };

  void EncodeUpTo(const WriteBatch& batch, const WireNotes& notes, const Position& end);

  std::mutex mutex_;
  std::string form_;  // up to end_, and perhaps a part that is not complete
  Position end_;
  std::vector<Position> save_points_;
};

// Adds what is in `data` to a batch with nothing in it. Corruption, or InvalidArgument for a column family that cannot be or
// for what a batch cannot hold: what comes before it is in the batch.
Status DecodeBatch(Slice data, WriteBatch* batch, WireNotes* notes);

// What the header says; 0 without one.
uint32_t CountOf(Slice data);

}  // namespace braiddb::capi
