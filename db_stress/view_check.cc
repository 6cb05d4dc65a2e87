#include "db_stress/view_check.h"

#include <utility>

namespace braiddb::stress {

ViewCheck::ViewCheck(const Oracle& oracle, std::vector<uint32_t> ids, std::optional<uint32_t> thread)
    : oracle_(oracle), thread_(thread) {
  slots_.reserve(ids.size());
  for (const uint32_t id : ids) {
    slots_.emplace_back(id);
    oracle_.expected->Before(id, &slots_.back().bounds);
  }
  if (thread_) start_ = oracle_.expected->Now();
}

void ViewCheck::ViewMade() {
  if (thread_) end_ = oracle_.expected->Now();
  for (Slot& slot : slots_) oracle_.expected->After(slot.id, &slot.bounds);
}

Violation ViewCheck::Wrong(const Slot& slot, const std::string& what) const {
  return "key " + std::to_string(slot.id) + " " + Printable(oracle_.keys->key(slot.id)) + " " + what + " (" +
         (KeyTable::IsShared(slot.id) ? "shared" : slot.bounds.ToString()) + ")";
}

Violation ViewCheck::Note(Slot* slot, bool found, uint64_t number) {
  if (slot->looked_at && (slot->found != found || slot->number != number)) {
    return Wrong(*slot, "changed in one view: first " + (slot->found ? std::to_string(slot->number) : "nothing") + ", then " +
                            (found ? std::to_string(number) : "nothing"));
  }
  slot->looked_at = true;
  slot->found = found;
  slot->number = number;
  return std::nullopt;
}

Violation ViewCheck::SawGet(size_t slot, const Status& status, Slice value) {
  if (status.ok()) return Saw(slot, value);
  if (status.IsNotFound()) return SawNothing(slot);
  return Wrong(slots_[slot], "cannot be read: " + status.ToString());
}

Violation ViewCheck::Saw(size_t index, Slice value) {
  Slot& slot = slots_[index];
  if (KeyTable::IsShared(slot.id)) return SawShared(&slot, value);
  if (value.size() < sizeof(uint64_t)) {
    const auto number = GenerationOfShort(slot, value);
    if (!number) return Wrong(slot, "has the wrong value " + Printable(value));
    return Note(&slot, true, *number);
  }
  const uint64_t head = HeadOf(value);
  if (KeyOf(head) != slot.id) {
    return Wrong(slot, "has a value of key " + std::to_string(KeyOf(head)) + " or garbage: " + Printable(value));
  }
  const uint32_t generation = GenerationOf(head);
  if (!slot.bounds.Allow(generation)) return Wrong(slot, "has the value of generation " + std::to_string(generation));
  if (!oracle_.content->Matches(slot.id, generation, value)) {
    return Wrong(slot, "has a damaged value of generation " + std::to_string(generation) + ": " + Printable(value));
  }
  return Note(&slot, true, generation);
}

Violation ViewCheck::SawNothing(size_t index) {
  Slot& slot = slots_[index];
  if (KeyTable::IsShared(slot.id)) return SawShared(&slot, std::nullopt);
  bool allowed = false;
  const Bounds& bounds = slot.bounds;
  for (uint32_t generation = bounds.acknowledged; generation <= bounds.intended && !allowed; ++generation) {
    allowed = bounds.Allow(generation) && oracle_.content->IsDeleted(slot.id, generation);
  }
  if (!allowed) return Wrong(slot, "is not there");
  return Note(&slot, false, 0);
}

Violation ViewCheck::SawShared(Slot* slot, std::optional<Slice> value) {
  uint64_t tag = 0;
  if (value) {
    const auto found = oracle_.content->TagOf(*value);
    if (!found) return Wrong(*slot, "has a value that was never written: " + Printable(*value));
    tag = *found;
  }
  const bool first = !slot->looked_at;
  if (auto wrong = Note(slot, value.has_value(), tag)) return wrong;
  if (!thread_) return oracle_.expected->SettleShared(slot->id, tag);
  if (first) oracle_.expected->AddRead(*thread_, slot->id, tag, start_, end_);
  return std::nullopt;
}

// For values that are too short to contain their generation.
std::optional<uint64_t> ViewCheck::GenerationOfShort(const Slot& slot, Slice value) const {
  std::optional<uint64_t> number;
  for (uint32_t generation = slot.bounds.acknowledged; generation <= slot.bounds.intended; ++generation) {
    if (!slot.bounds.Allow(generation) || !oracle_.content->Matches(slot.id, generation, value)) continue;
    if (number) return kAmbiguous;
    number = generation;
  }
  return number;
}

Violation ViewCheck::OneGeneration() const {
  for (const Slot& known : slots_) {
    if (!known.found || known.number == kAmbiguous) continue;
    const auto generation = static_cast<uint32_t>(known.number);
    for (const Slot& slot : slots_) {
      const bool fits =
          slot.found ? slot.number == generation || slot.number == kAmbiguous : oracle_.content->IsDeleted(slot.id, generation);
      if (!fits) {
        return Wrong(slot, "shows a part of a batch: " + (slot.found ? "generation " + std::to_string(slot.number) : "nothing") +
                               ", while key " + std::to_string(known.id) + " has generation " + std::to_string(generation));
      }
    }
    return std::nullopt;
  }
  return std::nullopt;
}

// ---- CheckedIterator

// The iterator has passed all slots: it must be at its end, or at a key beyond the slots.
Violation CheckedIterator::Left(bool upwards) {
  valid_ = false;
  if (!iterator_->Valid()) {
    if (iterator_->status().ok()) return std::nullopt;
    return "iterator: " + iterator_->status().ToString();
  }
  const uint32_t last = check_->id(upwards ? check_->size() - 1 : 0);
  const int order = oracle_.keys->comparator(oracle_.keys->family_of(last))->Compare(iterator_->key(), oracle_.keys->key(last));
  if (!limited_ && (upwards ? order > 0 : order < 0)) return std::nullopt;
  return "an iterator that goes " + std::string(upwards ? "forward" : "backward") + " comes to " + Printable(iterator_->key()) +
         ", which is not there, or is behind it";
}

Violation CheckedIterator::ArriveUp(size_t slot) {
  for (; slot < check_->size(); ++slot) {
    if (iterator_->Valid() && iterator_->key() == oracle_.keys->key(check_->id(slot))) {
      valid_ = true;
      slot_ = slot;
      return check_->Saw(slot, iterator_->value());
    }
    if (!iterator_->Valid() && !iterator_->status().ok()) break;
    if (auto wrong = check_->SawNothing(slot)) return wrong;
  }
  return Left(true);
}

Violation CheckedIterator::ArriveDown(size_t slot) {
  for (; slot > 0; --slot) {
    if (iterator_->Valid() && iterator_->key() == oracle_.keys->key(check_->id(slot - 1))) {
      valid_ = true;
      slot_ = slot - 1;
      return check_->Saw(slot_, iterator_->value());
    }
    if (!iterator_->Valid() && !iterator_->status().ok()) break;
    if (auto wrong = check_->SawNothing(slot - 1)) return wrong;
  }
  return Left(false);
}

Violation CheckedIterator::Seek(size_t slot) {
  iterator_->Seek(oracle_.keys->key(check_->id(slot)));
  return ArriveUp(slot);
}

Violation CheckedIterator::SeekForPrev(size_t slot) {
  iterator_->SeekForPrev(oracle_.keys->key(check_->id(slot)));
  return ArriveDown(slot + 1);
}

Violation CheckedIterator::SeekToFirst() {
  iterator_->SeekToFirst();
  return ArriveUp(0);
}

Violation CheckedIterator::SeekToLast() {
  iterator_->SeekToLast();
  return ArriveDown(check_->size());
}

Violation CheckedIterator::Next() {
  iterator_->Next();
  return ArriveUp(slot_ + 1);
}

Violation CheckedIterator::Prev() {
  iterator_->Prev();
  return ArriveDown(slot_);
}

Violation CheckedIterator::Forward() {
  Violation wrong = limited_ ? SeekToFirst() : Seek(0);
  while (!wrong && Valid()) wrong = Next();
  return wrong;
}

Violation CheckedIterator::Backward() {
  Violation wrong = limited_ ? SeekToLast() : SeekForPrev(check_->size() - 1);
  while (!wrong && Valid()) wrong = Prev();
  return wrong;
}

}  // namespace braiddb::stress
