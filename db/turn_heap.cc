#include "db/turn_heap.h"

#include <algorithm>
#include <span>

namespace braiddb {

bool TurnHeap::Precedes(const Turn& a, const Turn& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const LogEntry& x = *a.cursor->entry;
  const LogEntry& y = *b.cursor->entry;
  const int order = order_.Compare(x.key(), y.key());
  if (order != 0) return order < 0;
  return x.sequence() != y.sequence() ? x.sequence() > y.sequence() : a.cursor < b.cursor;
}

void TurnHeap::Take(std::vector<LevelCursor>* cursors) {
  turns_.clear();  // has room for all
  for (LevelCursor& cursor : *cursors) {
    if (cursor.entry != nullptr) turns_.push_back({cursor.prefix, &cursor});
  }
  for (size_t i = turns_.size() / 2; i-- > 0;) Find(i, turns_[i]);
  NoteSecond();
}

void TurnHeap::NoteSecond() {
  second_ = UINT64_MAX;
  for (size_t i = 1; i < std::min<size_t>(turns_.size(), 3); ++i) second_ = std::min(second_, turns_[i].prefix);
}

bool TurnHeap::PrecedesOthers(uint64_t prefix) const {
  if (prefix > second_) return false;
  const Turn moved{prefix, first()};
  const auto others = std::span(turns_).subspan(1, std::min<size_t>(turns_.size(), 3) - 1);
  return std::ranges::all_of(others, [&](const Turn& other) { return Precedes(moved, other); });
}

void TurnHeap::ReplaceFirst(Turn turn) {
  Find(0, turn);
  NoteSecond();
}

// First down to a leaf, along the lesser children, and then up to where the turn belongs: among many cursors one that has been
// taken mostly comes last but a few, and which of two is less is no branch.
void TurnHeap::Find(size_t of, Turn turn) {
  Turn* const turns = turns_.data();
  const size_t size = turns_.size();
  size_t hole = of;
  size_t least = 2 * hole + 1;
  for (; least + 1 < size; least = 2 * hole + 1) {
    const Turn& left = turns[least];
    const Turn& right = turns[least + 1];
    least += __builtin_expect(left.prefix == right.prefix, 0) ? Precedes(right, left) : right.prefix < left.prefix;
    turns[hole] = turns[least];
    hole = least;
  }
  if (least < size) {
    turns[hole] = turns[least];
    hole = least;
  }
  while (hole > of) {
    const size_t above = (hole - 1) / 2;
    if (!Precedes(turn, turns[above])) break;
    turns[hole] = turns[above];
    hole = above;
  }
  turns[hole] = turn;
}

void TurnHeap::Remove(size_t of) {
  const Turn last = turns_.back();
  turns_.pop_back();
  if (of < turns_.size()) Find(of, last);
  NoteSecond();
}

// Who stands on the first one's entry comes right behind it.
bool TurnHeap::EndTwins() {
  const LogEntry* const entry = first()->entry;
  bool ended = false;
  for (size_t i = 1; i < std::min<size_t>(turns_.size(), 3);) {
    LevelCursor* const twin = turns_[i].cursor;
    if (twin->entry != entry || !twin->is_list) {
      ++i;
      continue;
    }
    twin->entry = nullptr;
    ended = true;
    Remove(i);
    i = 1;
  }
  return ended;
}

}  // namespace braiddb
