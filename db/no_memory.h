// What becomes of an allocation of DRAM that fails: a status, where a call of the database ends.
//
// Inside, std::bad_alloc is passed on: what it meets is left as it was, or is such that the next open makes up for it. A write
// that is durable is never reported as failed. Background threads turn it into the background error: reads go on, writes do not.
#pragma once

#include <new>

#include "braiddb/status.h"

namespace braiddb {

// Needs no memory itself if there is none.
inline Status NoMemory() noexcept {
  try {
    return Status::MemoryLimit("no DRAM for what the call needs; free some and try again");
  } catch (const std::bad_alloc&) {
    return Status::MemoryLimit({});
  }
}

}  // namespace braiddb
