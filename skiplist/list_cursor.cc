#include "skiplist/list_cursor.h"

#include "skiplist/braided_cursor.h"
#include "skiplist/indexed_cursor.h"

namespace braiddb {

std::unique_ptr<EntryCursor> NewListCursor(const BraidedList* list, const TallIndex* index) {
  if (index->HasEveryNode(list->Home().reader)) return std::make_unique<IndexedCursor>(list, index);
  return std::make_unique<BraidedCursor>(list, index);
}

}  // namespace braiddb
