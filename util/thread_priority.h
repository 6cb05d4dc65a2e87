// Scheduling priority of background threads.
#pragma once

namespace braiddb {

// Lowers the calling thread's priority to nice 5: about a third of the share of other threads on contended CPUs. Has no effect on
// idle CPUs. Ignores a refusal of the system.
void LowerThreadPriority();

}  // namespace braiddb
