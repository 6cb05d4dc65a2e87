// Write throttling: writers sleep while flushes and merges are behind.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "db/db_impl.h"

namespace braiddb {
namespace {

// The delay of writers while too many memtables wait for their flush: nanoseconds per entry, doubled with each memtable over the
// limit.
constexpr uint64_t kDelayNs = 100;
constexpr uint32_t kMaxDoublings = 14;
// If the size of the last level sets the number of tables at which writers are throttled, the number is at most this: 579 MB of
// DRAM, if the tables are full.
constexpr double kMaxTables = 256;
// A sleep of the maximum length is short enough to notice that the reason has ended. A longer delay is divided into several
// sleeps.
constexpr uint64_t kMinSleepNs = 200'000;
constexpr uint64_t kMaxSleepNs = 20'000'000;
// The largest delay of one thread, whatever the size of its batches.
constexpr uint64_t kMaxDelayNs = 1'000'000'000;
// A batch of at least 1/kLargeBatch of a memtable waits while more than max_immutable_memtables memtables wait. Any other write
// waits while more than twice that number and two wait.
constexpr uint64_t kLargeBatch = 8;

}  // namespace

// Delays a write while too many memtables wait for their flush. The delay grows with the queue, so writers and flushes settle at
// the same speed. The last loop bounds the queue, which large batches or many threads could otherwise outrun. With a DRAM budget
// the bound is what counts, so each write sleeps.
void DBImpl::DelayWrite(ThreadState* thread, uint64_t entries) {
  // A callback during a close: the flush thread ends, and no longer shortens the queue.
  if (stopping_.load(std::memory_order_acquire)) return;
  const auto over = [this] {
    const uint32_t waiting = immutable_count_.load(std::memory_order_relaxed);
    return waiting - std::min(waiting, changing_.max_immutable_memtables.load(std::memory_order_relaxed));
  };
  if (dram_.is_set()) {
    SleepForWrites(thread, 1000 * std::min<uint64_t>(1000, 20ull << std::min(over(), 6u)));
  } else {
    thread->owed_ns = std::min(kMaxDelayNs, thread->owed_ns + entries * (kDelayNs << std::min(over(), kMaxDoublings)));
    PayOwed(thread, [&] { return over() > 0; });
  }
  const bool is_large = entries * kLargeBatch >= options_.memtable_max_entries;
  const uint32_t most = is_large ? 0 : changing_.max_immutable_memtables.load(std::memory_order_relaxed) + 2;
  const auto is_open = [this] {
    return !write_failed_.load(std::memory_order_acquire) && !stopping_.load(std::memory_order_acquire);
  };
  while (over() > most && is_open()) SleepForWrites(thread, kMinSleepNs);
}

// Sleeps for the delay that the thread has accumulated. Delays below kMinSleepNs are kept for later, since a shorter sleep
// takes longer than asked. When the reason has ended, the rest is forgiven, except for less than one sleep.
template <class IsLate>
void DBImpl::PayOwed(ThreadState* thread, const IsLate& is_late) const {
  while (thread->owed_ns >= kMinSleepNs) {
    thread->owed_ns -= std::min(thread->owed_ns, SleepForWrites(thread, std::min(kMaxSleepNs, thread->owed_ns)));
    if (!is_late()) thread->owed_ns = std::min(thread->owed_ns, kMinSleepNs - 1);
  }
}

// The number of tables at which writers are throttled: Options::l0_slowdown_writes_trigger. If that is 0, the number grows with
// the last level: a merge into a large level takes longer per entry, and L0 is small beside it. The unit is a full table, so that
// large values do not change the number of entries.
double DBImpl::SlowdownTables() const {
  const double least = changing_.SlowdownTrigger();
  if (changing_.l0_slowdown_writes_trigger.load(std::memory_order_relaxed) != 0) return least;
  const auto entries = static_cast<double>(counters_.l1_entries.load(std::memory_order_relaxed));
  return std::max(least, std::min(kMaxTables, entries / static_cast<double>(options_.memtable_max_entries)));
}

double DBImpl::L0Pressure(double slowdown) const {
  return l0_load_.Pressure(slowdown, changing_.l0_compaction_trigger.load(std::memory_order_relaxed));
}

// The delay per entry, in nanoseconds, computed from the part of L0 that is not merged. A running merge lowers the delay steadily
// as it proceeds. At full load writers and merges settle at the same speed.
double DBImpl::PaceNs() {
  return pace_.Next(dram_.pace, [this] {
    const double slowdown = SlowdownTables();
    const double tables = L0Pressure(slowdown);
    // With a DRAM budget all tables count: a merge frees their memory when it ends.
    return (dram_.is_set() ? tables : tables * l0_load_.NotSettledShare()) - slowdown;
  });
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
  thread->owed_ns = std::min(kMaxDelayNs, thread->owed_ns + static_cast<uint64_t>(entries * PaceNs()));
  PayOwed(thread, is_late);
}

// Returns the duration of the sleep in nanoseconds.
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
