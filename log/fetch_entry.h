// FetchEntry: gets the start of a log entry into the caches, its header, and the key if that is short; FetchEntryEnd: the end.
#pragma once

#include "log/log_entry.h"
#include "util/prefetch.h"

namespace braiddb {

// An entry may begin in the middle of a line, and its key is in the next one then.
[[gnu::always_inline]] inline void FetchEntry(const LogEntry* entry) {
  Prefetch(entry);
  Prefetch(reinterpret_cast<const char*>(entry) + kCacheLine - kLastStart);
}

// Of a value that does not end where the entry was fetched. Looks at the entry.
[[gnu::always_inline]] inline void FetchEntryEnd(const LogEntry* entry) {
  Prefetch(reinterpret_cast<const char*>(entry) + LogEntrySize(*entry) - 1);
}

}  // namespace braiddb
