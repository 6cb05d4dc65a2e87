// What databases that were opened with the same options have counted together, as RocksDB's tickers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/db.h"

namespace braiddb::capi {

// Databases have their counters, per thread, anyway, and the distributions of Options::histograms, and are asked when somebody
// wants to know.
// Thread safety: all methods may be called concurrently.
class SharedStatistics {
 public:
  // From now until Remove, which has to come before it is closed. Throws std::bad_alloc.
  void Add(const DB* db);
  // What it has counted stays.
  void Remove(const DB* db);
  // A line for each ticker, and for each histogram, as in RocksDB.
  std::string ToString() const;

 private:
  static constexpr size_t kCounted = 10;
  using Sums = std::array<uint64_t, kCounted>;  // of those tickers that mean something, in their order

  static void AddTo(const Statistics& statistics, Sums* sums);

  mutable std::mutex mutex_;
  std::vector<const DB*> open_;
  Sums closed_{};
  Histograms closed_histograms_;
};

}  // namespace braiddb::capi
