#include "skiplist/list_cursor.h"

#include "skiplist/braided_cursor.h"
#include "skiplist/indexed_cursor.h"

namespace braiddb {

// With several regions, an index over the bottom layer does not exist (TallIndex::LowestLayer), so the cursor is a
// BraidedCursor.
std::unique_ptr<EntryCursor> NewListCursor(const BraidedList* list, const TallIndex* index) {
  const uint32_t reader = list->Home().reader;
  if (index->HasEveryNode(reader)) {
    return NewIndexedCursor(&index->OrderedNodesOf(reader), &index->order());
  }
  return std::make_unique<BraidedCursor>(list, index);
}

}  // namespace braiddb
