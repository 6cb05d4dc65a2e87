// Both ways of appending on any CPU.
#pragma once

#include <optional>

namespace braiddb {

// What StreamingIsFaster says from now on, where there is CLWB; none: what was measured. Of each Persistence that is made then.
void ForceStreamingForTest(std::optional<bool> streams);

}  // namespace braiddb
