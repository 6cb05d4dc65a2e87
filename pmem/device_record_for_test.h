// For tests: memory modules of a simulated machine.
#pragma once

#include <string>

namespace braiddb {

// Sets the prefix of /proc, /sys and /dev for later searches of memory modules; "" restores the system's own. Call while no
// other thread opens a region.
void SetDeviceRootForTest(const std::string& root);

}  // namespace braiddb
