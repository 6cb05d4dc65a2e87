// What a power cut at one instant could leave: the guaranteed bytes, and the stores that may be on media or not.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash_test/crash_oracle.h"

namespace braiddb::test {

inline constexpr uint64_t kLine = 64;

// A store to an aligned 8-byte word, or the part of a larger one that is in this word.
struct TracedStore {
  uint64_t order;  // over all threads
  uint64_t group;  // stores of one group come in no order that the code could rely on (memcpy, PMDK's own)
  uint32_t word;   // 0 to 7 in its line
  uint64_t value;  // of the whole word afterwards
};

// A line with stores that are not guaranteed to be on media, in the order in which they were made.
struct DirtyLine {
  uint32_t region;
  uint64_t offset;  // of the line
  std::vector<TracedStore> stores;
};

// A line that became guaranteed.
struct MediaLine {
  uint32_t region;
  uint64_t offset;
  uint64_t words[8];
};

// The files of a database besides the bytes of its pools.
struct CrashFiles {
  struct Part {
    std::string path;  // relative to the database
    uint64_t bytes;
  };
  std::vector<std::pair<std::string, std::string>> small_files;  // path and content
  std::vector<std::vector<Part>> parts;                          // of each region, in the order in which they are mapped

  // The database is not there yet; an open creates it anew.
  bool creating() const {
    return std::any_of(small_files.begin(), small_files.end(), [](const auto& file) { return file.first == "CREATING"; });
  }
};

enum class PointKind : uint8_t { kBeforeFence, kAfterFence, kAcknowledged, kAtStore, kAtEnd, kCount };

inline const char* NameOf(PointKind kind) {
  static constexpr const char* kNames[] = {"before a fence", "after a fence", "at an acknowledgement", "at a store",
                                           "at the end"};
  return kNames[static_cast<int>(kind)];
}

// Where a fence stands in the code: the addresses to which its innermost callers return.
using FenceSite = std::array<uintptr_t, 2>;

struct CrashPoint {
  PointKind kind;
  FenceSite site;  // of the fence
  // Other places that were passed with nothing changed since: what is looked at here is looked at for them, too.
  std::vector<std::pair<PointKind, FenceSite>> also;
  uint64_t media_lines;  // so many of the life's MediaLines were guaranteed
  std::vector<DirtyLine> dirty;
  std::shared_ptr<const CrashFiles> files;
  std::shared_ptr<const CrashOracle::Allowed> allowed;
};

// The bytes of a pool, but for the pages that hold nothing but zeros.
struct PoolBytes {
  static constexpr uint64_t kPage = 4096;
  uint64_t bytes = 0;
  std::vector<uint64_t> offsets;  // of the pages, ascending
  std::vector<uint8_t> content;   // of the pages, one after the other
};

// All crash points of one life of a database, from its open to its close.
struct CrashRecord {
  std::vector<PoolBytes> initial;  // of each region: what was guaranteed when the life began
  std::vector<MediaLine> media;    // in the order in which they became guaranteed
  std::vector<CrashPoint> points;  // in order
  bool eadr = false;
};

}  // namespace braiddb::test
