// LookupTrace: what one point lookup came upon.
#pragma once

#include <cstdint>

#include "pmem/persistence.h"
#include "util/spin.h"

namespace braiddb {

struct LookupTrace {
  uint64_t local = 0;     // nodes of persistent structures visited on the reader's own NUMA node; summed into Statistics
  uint64_t remote = 0;    // … on another one
  bool met_dead = false;  // a version of the key that is marked dead was passed over
  bool filtered = false;  // a filter said that the key is not there

  // Counts visits and pays the latencies that are injected for them.
  void Account(const Persistence& persistence, uint64_t local_visits, uint64_t remote_visits) {
    local += local_visits;
    remote += remote_visits;
    const uint64_t delay_ns =
        (local_visits + remote_visits) * persistence.read_latency_ns() + remote_visits * persistence.remote_latency_ns();
    if (__builtin_expect(delay_ns != 0, 0)) SpinFor(delay_ns);
  }
};

}  // namespace braiddb
