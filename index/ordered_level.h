// OrderedLevel: what readers see of the last level, whichever structure implements it.
#pragma once

#include <cstdint>
#include <memory>

#include "index/cursor.h"
#include "index/key_order.h"

namespace braiddb {

// Nodes of persistent structures that one operation looked at; summed into Statistics.
struct VisitCounts {
  uint64_t local = 0;
  uint64_t remote = 0;
};

// A level is read through this interface, which has no mutators: only a compaction job holds what changes it.
// Thread safety: any number of readers, concurrent with one merge. Callers hold an epoch guard or pin.
class OrderedLevel {
 public:
  virtual ~OrderedLevel() = default;

  // The newest entry of target.key with a sequence number <= target.sequence; null if there is none.
  virtual const LogEntry* Find(const SearchKey& target, VisitCounts* visits) const = 0;
  virtual std::unique_ptr<EntryCursor> NewCursor() const = 0;
};

}  // namespace braiddb
