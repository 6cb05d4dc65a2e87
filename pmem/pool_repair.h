// PoolRepair: removes two things from a pool for which PMDK would refuse to open it: the shutdown state, and an odd run id.
//
// SHUTDOWN STATE  PMDK stores in the pool header the sum of the unsafe-shutdown counts and identities of the devices behind all
//   parts. If a pool was not closed, and the sum differs at the next open, PMDK refuses the pool. Parts that are added to an
//   open pool are missing in the sum. So pools are created without this state, and an open removes the state from a pool that
//   has it. device_record.h detects unsafe shutdowns in its place.
// RUN ID  PMDK increases this number by 2 at each open, and refuses a pool with an odd number. BraidDB uses nothing that
//   depends on the number. So an open makes an odd number even.
//
// PERSIST ORDER  None is needed. PreparePool stores three things: the feature bit (4 bytes), the shutdown state (64 bytes,
//   which have no meaning without the bit), and the checksum of the header (8 bytes). After any crash the checksum matches one
//   value of the bit. PoolView::HeaderIsSound accepts both values, and PreparePool then stores all three again. The run id is
//   one word of
//   8 bytes. [CC-38]
// RECOVERY  PreparePool runs before each pmemobj_open, and syncs before it returns. So PMDK sees a finished header only.
#pragma once

#include <mutex>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

// While a scope lives, pmemobj_create makes pools without a shutdown state. PMDK has one setting for the process. If another
// thread of the program creates a pool of its own meanwhile, that pool has no shutdown state either. Scopes exclude each other
// by a mutex.
class NoShutdownStateScope {
 public:
  NoShutdownStateScope();
  ~NoShutdownStateScope();
  NoShutdownStateScope(const NoShutdownStateScope&) = delete;
  NoShutdownStateScope& operator=(const NoShutdownStateScope&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
  int before_ = 0;  // the program's own setting, which the destructor restores
};

// Makes the file ready for pmemobj_open, durably. *what describes the changes; "" if there are none. A damaged header stays as
// it is, since PMDK refuses it. A device (dax_device.h) stays as it is: its pool has no shutdown state. IOError: the file
// cannot be read or written. REQUIRES: the pool is closed, and `first_part` is the only part with a header (SINGLEHDR).
Status PreparePool(const std::string& first_part, std::string* what);

}  // namespace braiddb
