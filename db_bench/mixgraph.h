// The queries of mixgraph, RocksDB's model of a social graph's workload: the same numbers from the same draw as its db_bench.
// From: Cao, Dong, Vemuri, Du, "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook", FAST '20.
#pragma once

#include <cstdint>
#include <vector>

namespace braiddb::bench {

// The flags that RocksDB's db_bench has for it, by their names and with its defaults.
struct MixParameters {
  // Which key of a range: by a·x^b. If one is 0, any key alike.
  double key_dist_a = 0, key_dist_b = 0;
  // Which range: the i-th of keyrange_num by a·e^(b·i) + c·e^(d·i). All 0: there are no ranges.
  double keyrange_dist_a = 0, keyrange_dist_b = 0, keyrange_dist_c = 0, keyrange_dist_d = 0;
  int64_t keyrange_num = 1;
  // Generalized Pareto distributions of value sizes and of the steps after a seek.
  double value_theta = 0, value_k = 0.2615, value_sigma = 25.45;
  double iter_theta = 0, iter_k = 2.517, iter_sigma = 14.236;
  double get_ratio = 1, put_ratio = 0, seek_ratio = 0;
  int64_t max_scan_len = 10000;
  int64_t max_value_size = 1024;

  bool has_ranges() const { return keyrange_dist_a != 0 || keyrange_dist_b != 0 || keyrange_dist_c != 0 || keyrange_dist_d != 0; }
};

enum class MixOperation : uint8_t { kGet, kPut, kSeek };

struct MixQuery {
  uint64_t key;     // its number; without ranges half of them are, as RocksDB's, those of negative numbers
  uint32_t length;  // of the value, bytes, or of the scan, steps
  MixOperation operation;
};

// A part of the key space and how often it is asked for: the draws in [start, start + weight) of every total().
struct KeyRange {
  uint64_t start;
  uint64_t weight;
};

// Immutable. REQUIRES: 0 < num; keyrange_num <= num; ratios not negative, and one of them positive; maxima positive.
class MixGenerator {
 public:
  MixGenerator(const MixParameters& parameters, uint64_t num);

  // Everything about a query follows from one number, which should be uniform in [0, num).
  MixQuery Make(uint64_t draw) const;

  // In the order of their keys; empty without ranges.
  const std::vector<KeyRange>& ranges() const { return ranges_; }
  uint64_t total() const { return total_; }

 private:
  void MakeRanges();
  uint64_t Key(uint64_t draw) const;
  MixOperation Operation(uint64_t draw) const;
  uint32_t ValueSize(double share) const;
  uint32_t ScanLength(double share) const;

  const MixParameters parameters_;
  const uint64_t num_;
  std::vector<KeyRange> ranges_;
  uint64_t total_ = 0;
  uint64_t gets_below_ = 0;  // of the draw modulo seeks_below_
  uint64_t puts_below_ = 0;
  uint64_t seeks_below_ = 0;
};

// The first number that std::mt19937_64 gives for the seed. A key is found by one of these; making the whole generator for it
// takes six times as long.
uint64_t FirstMersenneNumber(uint64_t seed);

}  // namespace braiddb::bench
