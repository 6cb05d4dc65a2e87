// LookupTrace: counters and flags of one point lookup.
#pragma once

#include <cstdint>

#include "pmem/persistence.h"
#include "util/spin.h"

namespace braiddb {

struct LookupTrace {
  uint64_t local = 0;     // visited nodes of persistent structures on the reader's NUMA node; summed into Statistics
  uint64_t remote = 0;    // … on other NUMA nodes
  bool met_dead = false;  // the lookup skipped a version of the key that is marked dead
  bool filtered = false;  // a filter excluded the key

  // Counts visits, and spins for the read latencies that are injected for them.
  void Account(const Persistence& persistence, uint64_t local_visits, uint64_t remote_visits) {
    local += local_visits;
    remote += remote_visits;
    const uint64_t delay_ns =
        (local_visits + remote_visits) * persistence.read_latency_ns() + remote_visits * persistence.remote_latency_ns();
    if (__builtin_expect(delay_ns != 0, 0)) SpinFor(delay_ns);
  }
};

}  // namespace braiddb
