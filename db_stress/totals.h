// Totals: the counts of a run of db_stress, for progress lines and the summary.
#pragma once

#include <cstdint>
#include <string>

#include "db_stress/expected_state.h"

namespace braiddb::stress {

struct Totals {
  // Counted by the supervisor.
  uint64_t databases = 0, cycles = 0, kills = 0, kills_opening = 0, kills_creating = 0, kills_closing = 0, closes = 0;
  uint64_t epochs = 0;  // checked histories of shared keys
  uint64_t checks = 0, pool_checks = 0, space_checks = 0;
  uint64_t violations = 0;
  // Counted by the children.
  uint64_t operations = 0, reads = 0, writes = 0, batches = 0, views = 0, shared_events = 0;
  uint64_t opens = 0, replayed = 0, verified_keys = 0, rotations = 0, checkpoints = 0, compactions = 0;
  uint64_t transactions = 0, conflicts = 0, rollbacks = 0, prepared = 0, recovered = 0, audits = 0, families = 0, catch_ups = 0;

  // Adds the counts since the last call.
  void Take(Counters* counters);

  std::string Line(double seconds) const;
  std::string Summary(double seconds) const;
};

}  // namespace braiddb::stress
