// WireForm: batches in RocksDB's format, for programs that store, send, or parse them.
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

// The parts of RocksDB's format that a braiddb::WriteBatch lacks.
struct WireNotes {
  enum class Kind : uint8_t {
    kLogData,       // a separate record
    kSingleDelete,  // the next update is a single deletion
    kNoop,          // a separate record
  };
  struct Note {
    uint32_t before;  // number of updates before the note
    Kind kind;
    std::string data;  // the log data
  };
  std::vector<Note> notes;  // in order
  uint64_t sequence = 0;

  void Clear() {
    notes.clear();
    sequence = 0;
  }
};

// RocksDB's form of one batch. Update encodes only the updates since the previous Update, so many calls cost no more than one:
// linear in the size of the batch.
// Thread safety: Update may be called concurrently while the batch does not change. Other methods are not thread-safe.
class WireForm {
 public:
  WireForm() = default;
  WireForm(const WireForm&) = delete;
  WireForm& operator=(const WireForm&) = delete;

  // Returns the form. It stays valid until the batch has changed and Update is called again. May throw std::bad_alloc.
  Slice Update(const WriteBatch& batch, const WireNotes& notes);

  // Call together with the methods of the same names of the batch. May throw std::bad_alloc.
  void SetSavePoint(const WriteBatch& batch, const WireNotes& notes);
  // REQUIRES: a save point exists.
  void PopSavePoint() { save_points_.pop_back(); }
  void RollbackToSavePoint();
  // Call after updates were removed from the batch in another way. Drops the save points, too.
  void Restart() noexcept;

 private:
  // A position between two records.
  struct Position {
    size_t batch_bytes = 0;
    uint32_t updates = 0;
    size_t notes = 0;
    size_t form_bytes = 0;  // for a save point, 0 means that it is not encoded yet
  };

  void EncodeUpTo(const WriteBatch& batch, const WireNotes& notes, const Position& end);

  std::mutex mutex_;
  std::string form_;  // encoded up to end_; incomplete bytes may follow
  Position end_;
  std::vector<Position> save_points_;
};

// Adds the updates of `data` to an empty batch. Returns Corruption, or InvalidArgument for an invalid column family or an update
// that a batch cannot hold. The updates before the error are then in the batch.
Status DecodeBatch(Slice data, WriteBatch* batch, WireNotes* notes);

// The number of updates in the header. 0 if the header is missing.
uint32_t CountOf(Slice data);

}  // namespace braiddb::capi
