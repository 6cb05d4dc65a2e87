// A failed allocation of DRAM becomes a status where a call of the database ends.
//
// Inside the library, std::bad_alloc is passed on: functions leave their state as it was, or in a form that the next open
// repairs. A write that is durable is never reported as failed. Background threads turn the exception into the background error:
// reads continue, and writes end.
#pragma once

#include <new>

#include "braiddb/status.h"

namespace braiddb {

// Works without memory, too: the status has then no text.
inline Status NoMemory() noexcept {
  try {
    return Status::MemoryLimit("no DRAM is left for this call; free some and try again");
  } catch (const std::bad_alloc&) {
    return Status::MemoryLimit({});
  }
}

}  // namespace braiddb
