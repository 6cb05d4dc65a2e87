// Kinds of writes, as policies of DBImpl::AppendAndPublish: whose write it is, whether it may be made, and what measures it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "db/range_update.h"
#include "util/perf.h"

namespace braiddb {

// Notes of the phases of a write; these do nothing.
struct Unobserved {
  static void NoteLogging() {}
  static void NoteDurable() {}
  static void NotePublished() {}
};

// The policy of a user's write: it is always made.
struct AdmitsAll : Unobserved {
  static constexpr bool kIsUsers = true;  // counted in the statistics, and throttled
  static constexpr bool kHasRanges = false;
  static constexpr bool kIsShown = true;  // GetUpdatesSince shows the write
  static constexpr bool Admits(uint64_t) { return true; }
  static constexpr void BeforeVisible() {}
  static constexpr size_t CountShown(size_t count) { return count; }
};

// The policy of a batch whose last updates are for a hidden family: GetUpdatesSince shows only the first `shown` updates.
struct AdmitsRecords : AdmitsAll {
  size_t CountShown(size_t) const { return shown; }
  size_t shown = 0;
};

// The policy of deletions by the compaction thread. It must not be throttled, because no other thread would free space or merge.
// GetUpdatesSince does not show it, because it deletes the database's own records.
struct AdmitsAllAtOnce : AdmitsAll {
  static constexpr bool kIsUsers = false;
  static constexpr bool kIsShown = false;
};

// The policy of a batch with range deletions; see RangeUpdate.
struct AdmitsRanges : Unobserved {
  static constexpr bool kIsUsers = true;
  static constexpr bool kHasRanges = true;
  static constexpr bool kIsShown = true;
  bool Admits(uint64_t first) const { return update->Prepare(first); }
  void BeforeVisible() const { update->Install(); }
  static constexpr size_t CountShown(size_t count) { return count; }
  RangeUpdate* update = nullptr;
};

// The policy of a write that is made only if `is_admitted(sequence)` is true for its sequence number.
template <class IsAdmitted>
struct AdmitsIf : Unobserved {
  static constexpr bool kIsUsers = false;
  static constexpr bool kHasRanges = false;
  static constexpr bool kIsShown = true;
  bool Admits(uint64_t sequence) const { return is_admitted(sequence); }
  static constexpr void BeforeVisible() {}
  static constexpr size_t CountShown(size_t count) { return count; }
  const IsAdmitted& is_admitted;
};

// Adds the times of the phases to the thread's PerfContext.
template <class Admission>
struct Observed : Admission {
  explicit Observed(const Admission& admission) : Admission(admission) {}
  void NoteLogging() const { begin_ns = perf::Times() ? perf::NowNs() : 0; }
  void NoteDurable() const { EndPhase(&PerfContext::write_wal_time); }
  void NotePublished() const { EndPhase(&PerfContext::write_memtable_time); }
  void EndPhase(perf::Counter counter) const {
    if (begin_ns == 0) return;
    const uint64_t now_ns = perf::NowNs();
    perf::t_context.*counter += now_ns - std::exchange(begin_ns, now_ns);
  }
  mutable uint64_t begin_ns = 0;  // the begin of the phase
};

}  // namespace braiddb
