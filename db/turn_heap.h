// TurnHeap: whose turn it is of cursors that go forward side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/cursor.h"
#include "log/log_entry.h"
#include "lsm/pm_table.h"

namespace braiddb {

// A cursor over one level, or a part of one, of an iterator's view.
struct LevelCursor {
  std::unique_ptr<EntryCursor> cursor;
  const LogEntry* entry = nullptr;  // where it stands; null at its end
  uint64_t prefix = 0;              // of the entry's key
  bool is_list = false;             // the cursor follows a table's list
  const PmTable* table = nullptr;   // of L0, if the cursor is over one alone
  // Numbers of memtables' parts, and of tables and last levels, that a seek of the cursor searches.
  size_t memtable_parts = 0;
  size_t level_parts = 1;
};

// Those that are not at their end, a heap in entry order, the first one on top; of those that stand on one entry, the first of
// the cursors: that of the newer level, but that arrays of L0 come behind its lists. A step moves the first one, and where there
// are few levels with anything in them it mostly stays that.
// Thread safety: one thread at a time.
class TurnHeap {
 public:
  explicit TurnHeap(const KeyOrder* order) : order_(*order) {}

  // Before the first Take: of so many cursors. May throw std::bad_alloc; nothing else does.
  void Reserve(size_t cursors) { turns_.reserve(cursors); }

  // Puts the cursors in order, wherever they stand; they outlive this. They are in the order of their levels, the newest first;
  // one that is of several is where the first of these would be, but behind L0's lists.
  void Take(std::vector<LevelCursor>* cursors);
  void Clear() { turns_.clear(); }
  bool empty() const { return turns_.empty(); }

  // REQUIRES: not empty.
  LevelCursor* first() const { return turns_.front().cursor; }
  uint64_t first_prefix() const { return turns_.front().prefix; }
  // The first one has moved on, or is at its end, and the others have not.
  void FirstMoved() {
    LevelCursor* const cursor = first();
    if (cursor->entry == nullptr) return Remove(0);
    if (!FirstMovedTo(cursor->prefix)) ReplaceFirst({cursor->prefix, cursor});
  }
  // The first one has moved to an entry with this prefix. Returns true if it stays the first one; else call FirstMoved.
  bool FirstMovedTo(uint64_t prefix) {
    if (prefix >= second_ && !PrecedesOthers(prefix)) return false;
    turns_.front().prefix = prefix;
    return true;
  }
  // Of the lists that have come to the entry of the first one, that one alone goes on: the others end here. Whether there were
  // any.
  bool EndTwins();

 private:
  struct Turn {
    uint64_t prefix;
    LevelCursor* cursor;
  };
  bool Precedes(const Turn& a, const Turn& b) const;
  // The first one has moved to an entry with this prefix, and precedes all others. Equal prefixes are decided by the keys.
  bool PrecedesOthers(uint64_t prefix) const;
  // Puts the turn in the place of turns_[of], whose children, and what is below these, are in order.
  void Find(size_t of, Turn turn);
  void ReplaceFirst(Turn turn);
  // Whenever others than the first one have moved.
  void NoteSecond();
  // Takes turns_[of] out, which is the first one or a child of it.
  void Remove(size_t of);

  const KeyOrder& order_;
  std::vector<Turn> turns_;
  uint64_t second_ = UINT64_MAX;  // the least prefix of all but the first one; UINT64_MAX if there are no others
};

}  // namespace braiddb
