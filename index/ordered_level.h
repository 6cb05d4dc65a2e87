// OrderedLevel: the read interface of the last level, common to all kinds of last levels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "index/cursor.h"
#include "index/key_order.h"
#include "index/lookup_trace.h"

namespace braiddb {

// The interface has no mutators: only a compaction job holds the object that changes a level.
// Thread safety: any number of readers, concurrent with one merge. Callers hold an epoch guard or pin.
class OrderedLevel {
 public:
  virtual ~OrderedLevel() = default;

  // The newest entry of target.key that is not dead and has a sequence number <= target.sequence; null if there is none.
  virtual const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const = 0;
  virtual std::unique_ptr<EntryCursor> NewCursor() const = 0;
  // What another process needs to use the index of this object (LevelKind::attach_index): first a number that no other index of
  // this process has. Empty: there is no index that it can use. May throw std::bad_alloc.
  virtual std::vector<uint64_t> Shared() const { return {}; }
};

}  // namespace braiddb
