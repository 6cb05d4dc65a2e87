// Hidden column families: the records of prepared transactions (txn/prepared_records.h), of range tombstones
// (log/range_record.h), and of the limits of history (txn/history_limits.h).
#pragma once

#include <string_view>

#include "log/range_record.h"

namespace braiddb {

// A hidden family is in no list that users see. Every open opens it without being asked. Copies and repairs treat it like any
// other family.
inline constexpr const char* kPreparedFamilyName = "__braiddb_prepared_transactions";
inline constexpr const char* kHistoryLimitsFamilyName = "__braiddb_full_history_ts_low";

// The number of ids that are kept free for hidden families.
inline constexpr uint32_t kHiddenFamilies = 3;
inline bool IsHiddenFamily(std::string_view name) {
  return name == kPreparedFamilyName || name == kRangeTombstonesFamilyName || name == kHistoryLimitsFamilyName;
}

}  // namespace braiddb
