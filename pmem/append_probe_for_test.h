// For tests: chooses the method of appending without a measurement, so that both methods are tested on every CPU.
#pragma once

#include <optional>

namespace braiddb {

// Sets the result of later calls of StreamingIsFaster. A CPU without CLWB still gets false. nullopt: later calls return the
// measured result. A Persistence asks once, when it is constructed, so the setting applies to objects that are constructed
// later.
void ForceStreamingForTest(std::optional<bool> streams);

}  // namespace braiddb
