// Asymmetric fences: a pair of fences in which the rare side pays for both.
//
//   frequent:  x.store(relaxed)  AsymmetricFenceLight()  y.load(relaxed)
//   rare:      y.store(relaxed)  AsymmetricFenceHeavy()  x.load(relaxed)
//
// At least one of the two loads sees the other side's store. The light fence only stops the compiler. The heavy fence makes the
// system run a full fence on every CPU that runs a thread of the process, and returns when all are done (some microseconds).
// WHY  A locked instruction on the frequent side would keep the CPU from starting the loads of the next lookup while the last one
//      waits for memory.
//
// From: membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED (Linux 4.14); the names are those of C++ proposal P1202.
#pragma once

#include <atomic>

namespace braiddb {

// Returns true if the fences work: the system may be too old or forbid the call, and ThreadSanitizer does not know them. Constant
// within a process. The first call may take milliseconds if the process has threads.
bool HasAsymmetricFences();

// REQUIRES, for both: HasAsymmetricFences().
[[gnu::always_inline]] inline void AsymmetricFenceLight() { std::atomic_signal_fence(std::memory_order_seq_cst); }
void AsymmetricFenceHeavy();

}  // namespace braiddb
