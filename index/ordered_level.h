// OrderedLevel: what readers see of the last level, whichever structure implements it.
#pragma once

#include <cstdint>
#include <memory>

#include "index/cursor.h"
#include "index/key_order.h"

namespace braiddb {

// What one point lookup came upon.
struct LookupTrace {
  uint64_t local = 0;     // nodes of persistent structures visited in the reader's own region; summed into Statistics
  uint64_t remote = 0;    // … in another region
  bool met_dead = false;  // a version of the key that is marked dead was passed over
};

// A level is read through this interface, which has no mutators: only a compaction job holds what changes it.
// Thread safety: any number of readers, concurrent with one merge. Callers hold an epoch guard or pin.
class OrderedLevel {
 public:
  virtual ~OrderedLevel() = default;

  // The newest entry of target.key that is not dead and has a sequence number <= target.sequence; null if there is none.
  virtual const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const = 0;
  virtual std::unique_ptr<EntryCursor> NewCursor() const = 0;
};

}  // namespace braiddb
