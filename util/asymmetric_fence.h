// Asymmetric fences: a pair of fences of which one side, the rare one, pays for both.
//
//   frequent:  x.store(relaxed)  AsymmetricFenceLight()  y.load(relaxed)
//   rare:      y.store(relaxed)  AsymmetricFenceHeavy()  x.load(relaxed)
//
// At least one of the two loads sees the other side's store. The light fence is one for the compiler only; the heavy one has the
// system run a full fence on every CPU that runs a thread of the process at that time, and returns when all have (some
// microseconds). What that is good for: a CPU begins the loads of one lookup while those of the last one still wait for memory,
// which it does not across a locked instruction.
// From: membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED (Linux 4.14); the names are those of C++ proposal P1202.
#pragma once

#include <atomic>

namespace braiddb {

// Whether there are such fences: the system may be too old or forbid the call, and ThreadSanitizer does not know them. Always the
// same in one process. The first call may take milliseconds in a process that has threads.
bool HasAsymmetricFences();

// REQUIRES, of both: HasAsymmetricFences().
[[gnu::always_inline]] inline void AsymmetricFenceLight() { std::atomic_signal_fence(std::memory_order_seq_cst); }
void AsymmetricFenceHeavy();

}  // namespace braiddb
