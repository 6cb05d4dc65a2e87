// PerfCounters: the counters that a store's library keeps for the operations of one thread, for --perf_level.
#pragma once

#include <string_view>
#include <vector>

#include "db_bench/figure.h"

namespace braiddb::bench {

// Sums by name, in the order in which the names came.
class PerfCounters {
 public:
  // Adds a report in RocksDB's form: "name = value, " for each counter. Counters that are 0 are left out.
  void Add(std::string_view report);
  void Merge(const PerfCounters& other);
  // Prints a line for each counter: its value per operation, and its sum.
  void Print(uint64_t operations) const;
  const std::vector<Figure>& figures() const { return figures_; }
  std::vector<Figure>* mutable_figures() { return &figures_; }

 private:
  void Add(const std::string& name, uint64_t value);

  std::vector<Figure> figures_;
};

}  // namespace braiddb::bench
