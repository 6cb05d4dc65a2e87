// Scheduling of background threads.
#pragma once

namespace braiddb {

// Gives the calling thread a third of the share that others get where CPUs are contended (nice 5); no effect where they are idle.
// A refusal of the system is ignored.
void LowerThreadPriority();

}  // namespace braiddb
