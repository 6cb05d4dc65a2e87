// The pace of writers: how they wait for flushes and merges that cannot follow.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "db/db_impl.h"

namespace braiddb {
namespace {

// Pace of writers when L0 is long: nanoseconds per entry at l0_slowdown_writes_trigger, doubled with every so many tables more
// (DramBudget::pace_doubling).
constexpr double kPaceNs = 20;
constexpr double kMaxPaceNs = 1e6;
// The same where memtables wait for their flush: nanoseconds per entry, doubled with each memtable over the limit.
constexpr uint64_t kDelayNs = 100;
constexpr uint32_t kMostDoublings = 14;
// Longer sleeps would go on when there is no reason any more.
constexpr uint64_t kShortestSleepNs = 200'000;
constexpr uint64_t kLongestSleepNs = 20'000'000;

}  // namespace

// The longer the queue of flushes, the slower; never a stop. Flushes and writers meet where both are as fast. With a budget the
// bound on memory is what matters: there each write waits.
void DBImpl::DelayWrite(ThreadState* thread, uint64_t entries) {
  const uint32_t waiting = immutable_count_.load(std::memory_order_relaxed);
  const uint32_t over = waiting - std::min(waiting, changing_.max_immutable_memtables.load(std::memory_order_relaxed));
  if (dram_.is_set()) {
    SleepForWrites(thread, 1000 * std::min<uint64_t>(1000, 20ull << std::min(over, 6u)));
    return;
  }
  thread->owed_ns = std::min(kLongestSleepNs, thread->owed_ns + entries * (kDelayNs << std::min(over, kMostDoublings)));
  PayOwed(thread);
}

// Shorter sleeps cost more than they last.
void DBImpl::PayOwed(ThreadState* thread) const {
  if (thread->owed_ns >= kShortestSleepNs) thread->owed_ns -= std::min(thread->owed_ns, SleepForWrites(thread, thread->owed_ns));
}

// What is left of L0 to merge sets the pace, without jumps: a running merge counts down as it proceeds. At full load writers and
// merges meet where both are as fast.
void DBImpl::PaceWrites(ThreadState* thread) {
  const auto entries = static_cast<double>(std::exchange(thread->unpaced_entries, 0));
  if (BoundsSpace()) HoldForSpace(thread);
  const double tables = l0_count_.load(std::memory_order_relaxed);
  const double trigger = changing_.SlowdownTrigger();
  if (tables <= trigger || !changing_.MergesByItself()) return;
  const auto all = static_cast<double>(l0_entries_.load(std::memory_order_relaxed));
  const auto settled = static_cast<double>(settled_entries_.load(std::memory_order_relaxed));
  // What a merge has settled takes its memory until the merge ends.
  const double waiting = dram_.is_set() ? tables : tables * (1 - std::min(1.0, settled / std::max(1.0, all)));
  if (waiting <= trigger) return;
  const double pace_ns = std::min(kMaxPaceNs, kPaceNs * std::exp2((waiting - trigger) / dram_.pace_doubling));
  thread->owed_ns = std::min(kLongestSleepNs, thread->owed_ns + static_cast<uint64_t>(entries * pace_ns));
  PayOwed(thread);
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
