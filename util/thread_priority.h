// Scheduling of background threads.
#pragma once

namespace braiddb {

// Gives the calling thread a tenth of the share that others get where CPUs are contended (nice 10); no effect where they are idle.
// A refusal of the system is ignored.
void LowerThreadPriority();

}  // namespace braiddb
