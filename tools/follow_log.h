// FollowLog: prints the updates that a program writes to a database, as they are written.
#pragma once

#include <cstdint>
#include <string>

#include "tools/output.h"

namespace braiddb::tools {

// Prints updates as rows: sequence number, id of the family, kind, key, value.
RowPrinter UpdateRows(const Style& style);

// Prints updates from sequence number `since` on until SIGINT, SIGTERM or SIGHUP. 0: from the oldest that the log is known to
// have. Reads beside a program that has the database open, without a lock. Returns an ExitCode: kDamaged if updates may be
// missing.
int FollowLog(const std::string& path, uint64_t since, const Style& style);

}  // namespace braiddb::tools
