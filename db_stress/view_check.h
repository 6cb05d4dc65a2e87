// ViewCheck: checks one view of the database (a snapshot, an iterator, or a single get). Each key must have a value that is
// possible at the view's time, and the same value in each read of the view.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/content.h"
#include "db_stress/expected_state.h"
#include "db_stress/key_table.h"

namespace braiddb::stress {

// Common objects of all checks.
struct Oracle {
  const KeyTable* keys;
  const Content* content;
  ExpectedState* expected;
};

// Usage: create the check, create the view, call ViewMade, then report what the view returns.
class ViewCheck {
 public:
  // `ids`: the keys that will be read. If `thread` is given, reads of shared keys are recorded in its history.
  ViewCheck(const Oracle& oracle, std::vector<uint32_t> ids, std::optional<uint32_t> thread);

  void ViewMade();
  size_t size() const { return slots_.size(); }
  uint32_t id(size_t slot) const { return slots_[slot].id; }

  Violation Saw(size_t slot, Slice value);
  Violation SawNothing(size_t slot);
  // Reports the answer of a Get. Any other error is a violation.
  Violation SawGet(size_t slot, const Status& status, Slice value);

  // All reported values must be of one generation. REQUIRES: the keys are one group.
  Violation OneGeneration() const;

 private:
  struct Slot {
    explicit Slot(uint32_t key) : id(key) {}
    uint32_t id;
    bool looked_at = false;
    bool found = false;
    uint64_t number = 0;  // generation or tag of the value; kAmbiguous if several have the value
    Bounds bounds;
  };
  static constexpr uint64_t kAmbiguous = UINT64_MAX;

  Violation Note(Slot* slot, bool found, uint64_t number);
  Violation SawShared(Slot* slot, std::optional<Slice> value);
  std::optional<uint64_t> GenerationOfShort(const Slot& slot, Slice value) const;
  Violation Wrong(const Slot& slot, const std::string& what) const;

  const Oracle oracle_;
  const std::optional<uint32_t> thread_;
  std::vector<Slot> slots_;
  uint64_t start_ = 0, end_ = 0;
};

// Walks a view's iterator over the slots of a check, which are neighbours in one family. Reports all found and all missing keys.
class CheckedIterator {
 public:
  // `limited`: the iterator's bounds exclude all keys outside of the slots.
  CheckedIterator(const Oracle& oracle, Iterator* iterator, ViewCheck* check, bool limited)
      : oracle_(oracle), iterator_(iterator), check_(check), limited_(limited) {}

  // Each method begins or ends at a slot. `slot()` is the iterator's slot afterwards. Outside of the slots the iterator is not
  // valid.
  Violation Seek(size_t slot);
  Violation SeekForPrev(size_t slot);
  Violation SeekToFirst();  // REQUIRES: limited
  Violation SeekToLast();   // REQUIRES: limited
  Violation Next();
  Violation Prev();
  bool Valid() const { return valid_; }

  // Seek, and walk over all slots.
  Violation Forward();
  Violation Backward();

 private:
  // Checks the iterator's position at the end of a walk up that starts at `slot`, or down that starts at `slot` - 1.
  Violation ArriveUp(size_t slot);
  Violation ArriveDown(size_t slot);
  Violation Left(bool upwards);

  const Oracle oracle_;
  Iterator* const iterator_;
  ViewCheck* const check_;
  const bool limited_;
  size_t slot_ = 0;
  bool valid_ = false;
};

}  // namespace braiddb::stress
