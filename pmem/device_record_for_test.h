// Another machine's devices.
#pragma once

#include <string>

namespace braiddb {

// Stands before /proc, /sys and /dev from now on where memory modules are looked for; "" for the system's own.
void SetDeviceRootForTest(const std::string& root);

}  // namespace braiddb
