// The pace of writers: how they wait for flushes and merges that cannot follow.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "db/db_impl.h"

namespace braiddb {
namespace {

// What writers owe where memtables wait for their flush: nanoseconds per entry, doubled with each memtable over the limit.
constexpr uint64_t kDelayNs = 100;
constexpr uint32_t kMostDoublings = 14;
// Where the size of the last level decides, L0 has no more tables before writers are slowed down: 579 MB of DRAM, if they are
// full.
constexpr double kMostTables = 256;
// Longer sleeps would go on when there is no reason any more: a larger debt is paid in several, as long as there is one.
constexpr uint64_t kShortestSleepNs = 200'000;
constexpr uint64_t kLongestSleepNs = 20'000'000;
// Of one thread, whatever the size of its batches.
constexpr uint64_t kMostOwedNs = 1'000'000'000;
// A batch of so many parts of a memtable does not begin while more memtables wait than max_immutable_memtables; any other write
// while more than twice as many wait, and two.
constexpr uint64_t kLargeBatch = 8;

}  // namespace

// The longer the queue of flushes, the slower. Flushes and writers meet where both are as fast; where writers are faster by large
// batches, or by many threads, the length of the queue has a bound. With a budget that bound is what matters: there each write
// waits.
void DBImpl::DelayWrite(ThreadState* thread, uint64_t entries) {
  if (stopping_.load(std::memory_order_acquire)) return;  // of a callback beside a close: the flush thread has ended, or will
  const auto over = [this] {
    const uint32_t waiting = immutable_count_.load(std::memory_order_relaxed);
    return waiting - std::min(waiting, changing_.max_immutable_memtables.load(std::memory_order_relaxed));
  };
  if (dram_.is_set()) {
    SleepForWrites(thread, 1000 * std::min<uint64_t>(1000, 20ull << std::min(over(), 6u)));
  } else {
    thread->owed_ns = std::min(kMostOwedNs, thread->owed_ns + entries * (kDelayNs << std::min(over(), kMostDoublings)));
    PayOwed(thread, [&] { return over() > 0; });
  }
  const bool is_large = entries * kLargeBatch >= options_.memtable_max_entries;
  const uint32_t most = is_large ? 0 : changing_.max_immutable_memtables.load(std::memory_order_relaxed) + 2;
  const auto is_open = [this] {
    return !write_failed_.load(std::memory_order_acquire) && !stopping_.load(std::memory_order_acquire);
  };
  while (over() > most && is_open()) SleepForWrites(thread, kShortestSleepNs);
}

// Shorter sleeps cost more than they last. What is owed when there is no reason any more is forgiven, but for less than a sleep.
template <class IsLate>
void DBImpl::PayOwed(ThreadState* thread, const IsLate& is_late) const {
  while (thread->owed_ns >= kShortestSleepNs) {
    thread->owed_ns -= std::min(thread->owed_ns, SleepForWrites(thread, std::min(kLongestSleepNs, thread->owed_ns)));
    if (!is_late()) thread->owed_ns = std::min(thread->owed_ns, kShortestSleepNs - 1);
  }
}

// Options::l0_slowdown_writes_trigger, or what takes its place. With a last level of many entries a merge takes longer for each,
// while what L0 takes is little beside that. In tables as full as they can be, so that large values do not make more of them.
double DBImpl::SlowdownTables() const {
  const double least = changing_.SlowdownTrigger();
  if (changing_.l0_slowdown_writes_trigger.load(std::memory_order_relaxed) != 0) return least;
  const auto entries = static_cast<double>(counters_.l1_entries.load(std::memory_order_relaxed));
  return std::max(least, std::min(kMostTables, entries / static_cast<double>(options_.memtable_max_entries)));
}

// Tables of the fullest family, or more where many families have some: `slowdown` is reached when there are twice as many as
// l0_compaction_trigger of each family, and those of one that is as full as may be. Beyond that the sum counts twice, as a merge
// takes longer for an entry of a small table: writers and merges meet at fewer tables than with one family.
double DBImpl::L0Pressure(double slowdown) const {
  const double most = l0_count_.load(std::memory_order_relaxed);
  const double sum = l0_sum_.load(std::memory_order_relaxed);
  const double others = std::max<double>(1, l0_families_.load(std::memory_order_relaxed)) - 1;
  const double allowed = slowdown + others * 2 * changing_.l0_compaction_trigger.load(std::memory_order_relaxed);
  const double by_sum = sum * slowdown / allowed;
  return std::max(most, by_sum + std::max(0.0, by_sum - slowdown) * (others > 0 ? 1 : 0));
}

// For an entry. What is left of L0 to merge sets it, without jumps: a running merge counts down as it proceeds. At full load
// writers and merges meet where both are as fast.
double DBImpl::PaceNs() {
  const std::unique_lock lock(pace_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return pace_ns_.load(std::memory_order_relaxed);
  const double slowdown = SlowdownTables();
  const double tables = L0Pressure(slowdown);
  const auto all = static_cast<double>(l0_entries_.load(std::memory_order_relaxed));
  const auto settled = static_cast<double>(settled_entries_.load(std::memory_order_relaxed));
  // What a merge has settled takes its memory until the merge ends.
  const double waiting = dram_.is_set() ? tables : tables * (1 - std::min(1.0, settled / std::max(1.0, all)));
  const double ns = pace_.Next(dram_.pace, waiting - slowdown, WritePace::Clock::now());
  pace_ns_.store(ns, std::memory_order_relaxed);
  return ns;
}

void DBImpl::PaceWrites(ThreadState* thread) {
  const auto entries = static_cast<double>(std::exchange(thread->unpaced_entries, 0));
  if (stopping_.load(std::memory_order_acquire)) return;  // as in DelayWrite
  if (BoundsSpace()) HoldForSpace(thread);
  const auto is_late = [this] {
    const double slowdown = changing_.SlowdownTrigger();
    return changing_.MergesByItself() && L0Pressure(slowdown) > slowdown;
  };
  if (!is_late()) return;
  thread->owed_ns = std::min(kMostOwedNs, thread->owed_ns + static_cast<uint64_t>(entries * PaceNs()));
  PayOwed(thread, is_late);
}

// Returns how long it was, in nanoseconds.
uint64_t DBImpl::SleepForWrites(ThreadState* thread, uint64_t ns) const {
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  const auto lost = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  thread->write_delays.Add(1);
  thread->write_delay_us.Add(static_cast<uint64_t>(lost) / 1000);
  if (perf::Times()) perf::t_context.write_delay_time += static_cast<uint64_t>(lost);
  Measure(HistogramKind::kWriteStallMicros, static_cast<uint64_t>(lost));
  return static_cast<uint64_t>(lost);
}

}  // namespace braiddb
