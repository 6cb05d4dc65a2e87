// LiveView: the description of a database that its owner publishes for readers of other processes, in a block of the SharedHeap.
//
// LAYOUT  Words of 8 bytes. A string is its length and its bytes, padded to words. The block begins with its number of words.
// TRUST   A reader trusts the owner, as it trusts the files of the database. Decode still checks every count and offset against
//         the block, so a layout error is an error and no fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "index/alike_steps.h"
#include "util/shared_memory.h"

namespace braiddb {

struct LiveMemtable {
  uint64_t id = 0;
  uint64_t heap_offset = 0;  // of its arena
  uint64_t first_bytes = 0;  // of its arena
};

struct LiveTable {
  uint64_t id = 0;
  uint64_t boundary = 0;
  uint64_t begin = 0;
  uint64_t entries = 0;
  uint64_t index_offset = 0;  // of the buckets of its L0Index; 0: the list is searched
  uint64_t index_buckets = 0;
  uint64_t index_column = 0;
  std::vector<uint64_t> heads;
};

// A sorted array over neighbouring tables (TableOrder::Shared); offset 0: there is none that other processes can read.
struct LiveOrder {
  uint64_t id = 0;
  uint64_t offset = 0;
  uint64_t entries = 0;
  uint64_t fetch_bytes = 0;
  uint64_t tables = 0;
  AlikeSteps::Shared alike{};
};

struct LiveFamily {
  uint32_t id = 0;
  uint64_t number = 0;
  uint8_t l1_kind = 0;
  bool is_dropped = false;
  uint64_t l1_entries = 0;
  std::string name;
  std::string comparator;         // as the MANIFEST has it
  std::vector<LiveTable> tables;  // newest first
  std::vector<LiveOrder> orders;  // newest first, together over all tables
  std::vector<uint64_t> level;    // OrderedLevel::Shared
};

// Thread safety: none.
struct LiveView {
  uint8_t list_kind = 0;
  uint8_t memtable_kind = 0;
  uint32_t regions = 0;
  uint64_t database_id = 0;
  SharedRange lookup_cache;             // its table; offset 0: none
  std::vector<SharedRange> filter;      // KeyFilter::Shared
  std::vector<uint64_t> runs;           // WriterRuns of the owner
  std::vector<LiveMemtable> memtables;  // the active one first, then the immutable ones, newest first
  std::vector<LiveFamily> families;     // the default family first

  // The words of the block.
  std::vector<uint64_t> Encode() const;
  // `words`: readable words from `block` on. Corruption: the block has another layout.
  static Status Decode(const uint64_t* block, uint64_t words, LiveView* view);
};

struct LiveRange {
  uint64_t sequence = 0;
  uint64_t record = 0;
  std::string begin, end;
};

// The range tombstones of the families that have any.
struct LiveRanges {
  struct OfFamily {
    uint32_t family = 0;
    std::vector<LiveRange> ranges;
  };
  std::vector<OfFamily> families;

  std::vector<uint64_t> Encode() const;
  static Status Decode(const uint64_t* block, uint64_t words, LiveRanges* ranges);
};

}  // namespace braiddb
