#include "util/thread_priority.h"

#include <sys/resource.h>
#include <unistd.h>

namespace braiddb {

// On Linux the nice value belongs to the thread.
void LowerThreadPriority() { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5); }

}  // namespace braiddb
