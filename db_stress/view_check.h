// Checks what one view of the database (a snapshot, an iterator, a single get) shows of some keys: that each holds what it may
// hold at that time, and the same whenever it is looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braiddb/db.h"
#include "db_stress/content.h"
#include "db_stress/expected_state.h"
#include "db_stress/key_table.h"

namespace braiddb::stress {

// All that checks have in common.
struct Oracle {
  const KeyTable* keys;
  const Content* content;
  ExpectedState* expected;
};

// Make it, then the view, then call ViewMade; then show it what the view returns.
class ViewCheck {
 public:
  // `ids`: the keys that will be looked at. With a thread, reads of shared keys go into its part of the history.
  ViewCheck(const Oracle& oracle, std::vector<uint32_t> ids, std::optional<uint32_t> thread);

  void ViewMade();
  size_t size() const { return slots_.size(); }
  uint32_t id(size_t slot) const { return slots_[slot].id; }

  Violation Saw(size_t slot, Slice value);
  Violation SawNothing(size_t slot);
  // As a Get answered; any other error is a violation.
  Violation SawGet(size_t slot, const Status& status, Slice value);

  // All that was seen is one generation of them. REQUIRES: the keys are one group.
  Violation OneGeneration() const;

 private:
  struct Slot {
    explicit Slot(uint32_t key) : id(key) {}
    uint32_t id;
    bool looked_at = false;
    bool found = false;
    uint64_t number = 0;  // generation or tag of what was found; kAmbiguous if several have that value
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

// Walks a view's iterator over the slots of a check, which are neighbours in the order of one family, and shows it all that comes
// and all that does not.
class CheckedIterator {
 public:
  // `limited`: outside of the slots there is nothing that the iterator could show.
  CheckedIterator(const Oracle& oracle, Iterator* iterator, ViewCheck* check, bool limited)
      : oracle_(oracle), iterator_(iterator), check_(check), limited_(limited) {}

  // Each to or from a slot; `slot()` is where the iterator is then. Outside of the slots it is not valid.
  Violation Seek(size_t slot);
  Violation SeekForPrev(size_t slot);
  Violation SeekToFirst();  // REQUIRES: limited
  Violation SeekToLast();   // REQUIRES: limited
  Violation Next();
  Violation Prev();
  bool Valid() const { return valid_; }

  // Seeks and walks over all slots.
  Violation Forward();
  Violation Backward();

 private:
  // The iterator stands where a walk up from `slot` (down from `slot` - 1) must end.
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
