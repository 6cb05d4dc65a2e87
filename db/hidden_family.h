// Hidden column families: where prepared transactions wait (txn/prepared_records.h), and range tombstones lie
// (log/range_record.h).
#pragma once

#include <string_view>

#include "log/range_record.h"

namespace braiddb {

// No list that users see has it, every open opens it by itself, and copies and repairs have it like all others.
inline constexpr const char* kPreparedFamilyName = "__braiddb_prepared_transactions";

// Ids that are kept free for them.
inline constexpr uint32_t kHiddenFamilies = 2;
inline bool IsHiddenFamily(std::string_view name) { return name == kPreparedFamilyName || name == kRangeTombstonesFamilyName; }

}  // namespace braiddb
