// HistoryFilter: the compaction filter of families with timestamps. Removes versions that no read at full_history_ts_low or later
// sees.
//
// WHAT GOES   A version with a newer version of its key at or below the limit. A deletion below the limit without an older
//             version.
// WHY         A read at or above the limit sees the newer version, or finds no key either way. Reads below it are refused.
// SNAPSHOTS   A removal is a deletion of the engine, with a sequence number of its own. So a snapshot sees all that it saw
//             before.
// LATE WRITES If a user writes a version below the limit, an older deletion may be gone, and the version is visible then.
#pragma once

#include <memory>

#include "braiddb/compaction_filter.h"
#include "txn/timestamped_family.h"

namespace braiddb {

// The user's filter and factory may be null. The user's filter is called for puts that stay, with key and timestamp. A key that
// it removes is deleted at that timestamp.
std::shared_ptr<CompactionFilterFactory> MakeHistoryFilterFactory(std::shared_ptr<TimestampedFamily> family,
                                                                  const CompactionFilter* users_filter,
                                                                  std::shared_ptr<CompactionFilterFactory> users_factory);

}  // namespace braiddb
