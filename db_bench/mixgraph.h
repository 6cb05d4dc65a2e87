// The queries of mixgraph, RocksDB's model of a social graph workload. The same draw yields the same numbers as in RocksDB's
// db_bench.
// From: Cao, Dong, Vemuri, Du, "Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook", FAST '20.
#pragma once

#include <cstdint>
#include <vector>

namespace braiddb::bench {

// Flags of RocksDB's db_bench for mixgraph, with their names and defaults.
struct MixParameters {
  // Choice of a key in a range: by a·x^b. If a or b is 0, uniform.
  double key_dist_a = 0, key_dist_b = 0;
  // Choice of a range: the i-th of keyrange_num by a·e^(b·i) + c·e^(d·i). All 0: no ranges.
  double keyrange_dist_a = 0, keyrange_dist_b = 0, keyrange_dist_c = 0, keyrange_dist_d = 0;
  int64_t keyrange_num = 1;
  // Generalized Pareto distributions of the value sizes and of the steps after a seek.
  double value_theta = 0, value_k = 0.2615, value_sigma = 25.45;
  double iter_theta = 0, iter_k = 2.517, iter_sigma = 14.236;
  double get_ratio = 1, put_ratio = 0, seek_ratio = 0;
  int64_t max_scan_len = 10000;
  int64_t max_value_size = 1024;

  bool has_ranges() const { return keyrange_dist_a != 0 || keyrange_dist_b != 0 || keyrange_dist_c != 0 || keyrange_dist_d != 0; }
};

enum class MixOperation : uint8_t { kGet, kPut, kSeek };

struct MixQuery {
  uint64_t key;     // number of the key; without ranges half of the numbers are negative, as in RocksDB
  uint32_t length;  // of the value in bytes, or of the scan in steps
  MixOperation operation;
};

// A part of the key space with its popularity: the draws in [start, start + weight) of every total().
struct KeyRange {
  uint64_t start;
  uint64_t weight;
};

// Immutable. REQUIRES: 0 < num; keyrange_num <= num; no negative ratio, and at least one positive; positive maxima.
class MixGenerator {
 public:
  MixGenerator(const MixParameters& parameters, uint64_t num);

  // A query depends only on `draw`, which should be uniform in [0, num).
  MixQuery Make(uint64_t draw) const;

  // In key order. Empty without ranges.
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
  uint64_t gets_below_ = 0;  // compared with the draw modulo seeks_below_
  uint64_t puts_below_ = 0;
  uint64_t seeks_below_ = 0;
};

// The first number that std::mt19937_64 returns for the seed. A key needs only this number, so the full generator is not
// initialized.
uint64_t FirstMersenneNumber(uint64_t seed);

}  // namespace braiddb::bench
