// SharedStatistics: sums of the counters of all databases that were opened with the same options, as RocksDB's tickers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/db.h"

namespace braiddb::capi {

// Each database has its own per-thread counters and the histograms of Options::histograms. This object reads them on demand.
// Thread safety: all methods may be called concurrently.
class SharedStatistics {
 public:
  // Includes the database until Remove is called. Remove must precede its close. May throw std::bad_alloc.
  void Add(const DB* db);
  // Adds the database's counters to the sums and forgets the database.
  void Remove(const DB* db);
  // One line for each ticker and each histogram, as in RocksDB.
  std::string ToString() const;

 private:
  static constexpr size_t kCounted = 10;
  using Sums = std::array<uint64_t, kCounted>;  // sums of the tickers that have a counter, in their order

  static void AddTo(const Statistics& statistics, Sums* sums);

  mutable std::mutex mutex_;
  std::vector<const DB*> open_;
  Sums closed_{};
  Histograms closed_histograms_;
};

}  // namespace braiddb::capi
