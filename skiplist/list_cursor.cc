#include "skiplist/list_cursor.h"

#include "skiplist/braided_cursor.h"
#include "skiplist/indexed_cursor.h"

namespace braiddb {

std::unique_ptr<EntryCursor> NewListCursor(const BraidedList* list, const TallIndex* index) {
  const uint32_t reader = list->Home().reader;
  if (index->HasEveryNode(reader)) return std::make_unique<IndexedCursor>(index, reader, &list->regions());
  return std::make_unique<BraidedCursor>(list, index);
}

}  // namespace braiddb
