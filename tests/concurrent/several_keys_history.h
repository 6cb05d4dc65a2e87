// Is a history of reads and writes of several keys linearizable? Exact, for histories of up to 64 operations.
//
// From: J. M. Wing, C. Gong, "Testing and verifying concurrent objects", J. Parallel Distrib. Comput. 17 (1993): search for an
// order of the operations that keeps the order of those that follow each other in time, and that a sequential program could show.
// States that were tried before are left out, after G. Lowe, "Testing for linearizability", Concurrency Computat. 29 (2017).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace braiddb::test {

class SeveralKeysHistory {
 public:
  static constexpr uint32_t kKeys = 3;
  using Values = std::array<uint32_t, kKeys>;  // 0: the key is not there

  struct Operation {
    bool is_write = false;
    uint32_t keys = 0;  // bit i: it reads or writes key i, all of them at one time
    Values values{};
    uint64_t start = 0, end = 0;

    void Start() { start = Now(); }
    // Whoever sees `end`, in a process that was killed, sees the values.
    void End() {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      end = Now();
    }
  };

  void Add(const Operation& operation) { operations_.push_back(operation); }
  void Merge(const SeveralKeysHistory& other) {
    operations_.insert(operations_.end(), other.operations_.begin(), other.operations_.end());
  }

  // `before`: what was there. An operation whose end is UINT64_MAX was not acknowledged: it may take effect, or not.
  // REQUIRES: at most 64 operations.
  bool IsLinearizable(const Values& before) const {
    std::set<std::pair<uint64_t, Values>> tried;
    return Search(0, before, &tried);
  }

  std::string ToString() const {
    std::vector<Operation> sorted = operations_;
    std::sort(sorted.begin(), sorted.end(), [](const Operation& a, const Operation& b) { return a.start < b.start; });
    std::string text;
    for (const Operation& operation : sorted) {
      text += std::to_string(operation.start) + " to " + std::to_string(operation.end);
      text += operation.is_write ? " write" : " read";
      for (uint32_t key = 0; key < kKeys; ++key) {
        if ((operation.keys >> key & 1) != 0) text += " " + std::to_string(key) + "=" + std::to_string(operation.values[key]);
      }
      text += "\n";
    }
    return text;
  }

 private:
  static uint64_t Now() {
    static std::atomic<uint64_t> clock{1};
    return clock.fetch_add(1, std::memory_order_relaxed);
  }

  // Whether what is not in `done` can follow in some order.
  bool Search(uint64_t done, const Values& state, std::set<std::pair<uint64_t, Values>>* tried) const {
    if (!tried->insert({done, state}).second) return false;
    uint64_t first_end = UINT64_MAX;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if ((done >> i & 1) == 0) first_end = std::min(first_end, operations_[i].end);
    }
    if (first_end == UINT64_MAX) return true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& next = operations_[i];
      if ((done >> i & 1) != 0 || next.start > first_end) continue;
      Values values = state;
      bool fits = true;
      for (uint32_t key = 0; key < kKeys; ++key) {
        if ((next.keys >> key & 1) == 0) continue;
        fits = fits && (next.is_write || state[key] == next.values[key]);
        values[key] = next.values[key];
      }
      if (fits && Search(done | uint64_t{1} << i, values, tried)) return true;
    }
    return false;
  }

  std::vector<Operation> operations_;
};

}  // namespace braiddb::test
