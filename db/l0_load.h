// L0Load: what L0 holds, in numbers. Writers are throttled by it, and the compaction thread decides by it whether to merge.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace braiddb {

// Thread safety: Set by one thread at a time; everything else by any thread. A reader may see numbers of two views.
class alignas(64) L0Load {
 public:
  struct Tables {
    uint32_t most = 0;      // of the family that has the most
    uint32_t sum = 0;       // of all families
    uint32_t families = 0;  // that have tables
    uint64_t entries = 0;
    uint64_t oldest_id = UINT64_MAX;  // UINT64_MAX: there is no table
  };

  // Called when a view is installed, before readers can find the view.
  void Set(const Tables& tables) {
    entries_.store(tables.entries, std::memory_order_relaxed);
    most_.store(tables.most, std::memory_order_release);
    sum_.store(tables.sum, std::memory_order_relaxed);
    families_.store(tables.families, std::memory_order_relaxed);
    oldest_id_.store(tables.oldest_id, std::memory_order_release);
  }
  uint32_t most() const { return most_.load(std::memory_order_acquire); }
  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  uint64_t oldest_id() const { return oldest_id_.load(std::memory_order_acquire); }

  // The number of entries that the running merge has merged. The merge adds to the counter.
  uint64_t settled() const { return settled_.load(std::memory_order_relaxed); }
  std::atomic<uint64_t>* settled_counter() { return &settled_; }
  uint64_t NotSettled() const {
    const uint64_t all = entries();
    return all - std::min(all, settled());
  }
  // The same as a share of all entries, from 0 to 1.
  double NotSettledShare() const {
    return 1 - std::min(1.0, static_cast<double>(settled()) / std::max(1.0, static_cast<double>(entries())));
  }

  // The number of tables in L0, as one family would have them. With one family it is the family's number. With several families,
  // `slowdown` is reached when the sum of tables reaches `slowdown` plus twice `trigger` for each other family. Beyond that point
  // the sum counts twice, because merges of small tables take longer per entry.
  double Pressure(double slowdown, uint32_t trigger) const {
    const double most = most_.load(std::memory_order_relaxed);
    const double sum = sum_.load(std::memory_order_relaxed);
    const double others = std::max<double>(1, families_.load(std::memory_order_relaxed)) - 1;
    const double by_sum = sum * slowdown / (slowdown + others * 2 * trigger);
    return std::max(most, by_sum + std::max(0.0, by_sum - slowdown) * (others > 0 ? 1 : 0));
  }

 private:
  std::atomic<uint32_t> most_{0};
  std::atomic<uint32_t> sum_{0};
  std::atomic<uint32_t> families_{0};
  std::atomic<uint64_t> entries_{0};
  std::atomic<uint64_t> oldest_id_{UINT64_MAX};
  // In a line of its own: a merge writes it often.
  alignas(64) std::atomic<uint64_t> settled_{0};
};

}  // namespace braiddb
