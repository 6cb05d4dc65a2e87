// The texts of RocksDB's and LevelDB's properties, in the form that scripts parse. Numbers of blocks, compression, and blobs are
// empty. "braiddb.stats" has the engine's own statistics.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "braiddb/db.h"
#include "braiddb/statistics.h"

namespace braiddb::capi {

// The periods of a statistics text: since the open, and since the previous text.
class StatsPeriods {
 public:
  using Clock = std::chrono::steady_clock;
  struct Period {
    double seconds = 0;
    double seconds_of_interval = 0;
    Statistics all;
    Statistics before;  // at the begin of the interval
  };
  // Begins a new interval.
  Period Next(const Statistics& now);

 private:
  std::mutex mutex_;
  const Clock::time_point opened_ = Clock::now();
  Clock::time_point interval_ = opened_;
  Statistics before_;
};

inline constexpr int kLevels = 7;  // as in RocksDB: L0, the last level as level 1, all others empty

struct LevelNumbers {
  uint64_t files = 0;
  uint64_t bytes = 0;  // live log bytes, in proportion to the entries
  uint64_t entries = 0;
};
using Levels = std::array<LevelNumbers, kLevels>;

LevelNumbers SumOf(const Levels& levels);
Levels NumbersOfLevels(DB* db, ColumnFamilyHandle* family);

std::string CompactionStatsText(DB* db, ColumnFamilyHandle* family, StatsPeriods* periods);  // cfstats-no-file-histogram
std::string FileHistogramText(ColumnFamilyHandle* family);                                   // cf-file-histogram
std::string DatabaseStatsText(DB* db, StatsPeriods* periods);                                // dbstats
std::string BlockCacheText(DB* db);                                                          // block-cache-entry-stats
std::string LevelStatsText(const Levels& levels);                                            // levelstats
std::string TablesText(const Levels& levels);                                                // sstables
std::string TablePropertiesText(const LevelNumbers& numbers);                                // aggregated-table-properties
std::string LevelDBStatsText(DB* db, const Levels& levels);                                  // leveldb.stats

}  // namespace braiddb::capi
