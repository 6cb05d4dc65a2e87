// PoolRepair: what a pool must not have when PMDK makes or opens it.
//
// SHUTDOWN STATE  PMDK stores in the header of a pool the sum of the unsafe-shutdown counts and identities of the devices
//   behind all parts. PMDK refuses a pool that was not closed if the sum is another one at the next open. Parts that are added to
//   an open pool are not in the sum. So pools are made without this state, and an open drops the state from a pool that has it.
// RUN ID  A number that PMDK increases by 2 at each open. PMDK opens no pool in which it is odd, and BraidDB uses nothing that
//   depends on it. So an open makes an odd number even.
//
// PERSIST ORDER  None is needed. PreparePool stores three things: the feature bit (4 bytes), the shutdown state (64 bytes that
//   have no meaning without the bit), the checksum of the header (8 bytes). Whatever a crash leaves of the three, the checksum
//   is right for one value of the bit. PoolView::HeaderIsSound accepts both values, and PreparePool then stores all three again.
//   The run id is one word of 8 bytes, which changes at once.
// RECOVERY       PreparePool runs before each pmemobj_open, so PMDK sees a finished header only.
#pragma once

#include <mutex>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

// While it lives, pmemobj_create makes pools without a shutdown state. PMDK has one setting for the process: if another thread of
// the program makes a pool of its own meanwhile, that pool has no shutdown state either. Scopes exclude each other.
class NoShutdownStateScope {
 public:
  NoShutdownStateScope();
  ~NoShutdownStateScope();
  NoShutdownStateScope(const NoShutdownStateScope&) = delete;
  NoShutdownStateScope& operator=(const NoShutdownStateScope&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
  int before_ = 0;  // the program's own choice
};

// Makes the file ready for pmemobj_open, durably. `what` says what was changed, "" for nothing. A damaged header stays as it is:
// PMDK refuses it. A device (dax_device.h) stays as it is, too: its pool is made without a shutdown state and never grows.
// REQUIRES: the pool is closed, and `first_part` is the only part with a header (SINGLEHDR).
Status PreparePool(const std::string& first_part, std::string* what);

}  // namespace braiddb
