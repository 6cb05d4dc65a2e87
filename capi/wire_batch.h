// Batches as RocksDB lays them out, for programs that store them, send them or look into them.
//
// LAYOUT (fixed numbers little endian)
//   sequence number (8) of the first update, count of updates (4), records
//   a record: tag (1), column family (varint) if the tag says that there is one, one or two strings
//   a string: its length (varint), bytes
#pragma once

#include <cstddef>
#include <cstdint>
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
  bool merges = false;  // there may be operands

  void Clear() {
    notes.clear();
    sequence = 0;
    merges = false;
  }
};

// Throws std::bad_alloc.
std::string EncodeBatch(const WriteBatch& batch, const WireNotes& notes);

// Adds what is in `data` to a batch with nothing in it. Corruption, or InvalidArgument for a column family that cannot be or
// for what a batch cannot hold: what comes before it is in the batch.
Status DecodeBatch(Slice data, WriteBatch* batch, WireNotes* notes);

// What the header says; 0 without one.
uint32_t CountOf(Slice data);

}  // namespace braiddb::capi
