// What copies of a database have in common.
#pragma once

#include <functional>
#include <string>

#include "braiddb/db.h"

namespace braiddb {

// Bytes of updates that a copy writes at a time.
inline constexpr uint64_t kCopiedAtOnce = 256ull << 10;

// Creates a database at `path`.tmp, lets `fill` write to it, closes it, and gives it its name; with `replaces` in place of one
// that is there, which is `path`.old for a moment. On error what was in `path` stays, and of the new one nothing, unless that
// cannot be removed.
Status MakeDatabase(Options options, const std::string& path, bool replaces, const std::function<Status(DB*)>& fill);

// What is written to a copy need not be durable before it is closed.
inline WriteOptions CopyWrites() {
  WriteOptions options;
  options.sync = false;
  return options;
}

}  // namespace braiddb
