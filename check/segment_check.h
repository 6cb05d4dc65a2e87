// SegmentCheck: reads the log of all segments, entry by entry.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "check/findings.h"
#include "check/media.h"

namespace braiddb {

// A set of entries as two numbers: sets that differ have different ones, but for one case in 2^64.
struct EntrySet {
  uint64_t count = 0;
  uint64_t sum = 0;

  void Add(PmPtr entry) {
    uint64_t x = entry.raw() * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    ++count;
    sum += x ^ x >> 32;
  }
  friend bool operator==(const EntrySet&, const EntrySet&) = default;
};

// What the log of one segment holds.
struct SegmentContents {
  EntrySet live;           // below the log boundary and not marked: these have to be in a list
  uint64_t dead = 0;       // below the log boundary, marked dead or moved; and all of families that were dropped
  uint64_t to_replay = 0;  // behind the log boundary
};

// GOAL   All entries are valid; sealed segments hold what their descriptors say; what an open segment holds ends where a crash
//        may have ended it, and not where something was damaged. Of column families that the MANIFEST does not list there are
//        only entries that are marked dead, below the log boundary.
// The result has an element for each of media.segments().
std::vector<SegmentContents> CheckSegments(const Media& media, const std::function<void(uint64_t bytes)>& progress,
                                           Findings* findings);

}  // namespace braiddb
