// NewListCursor: makes the cursor for a braided list: an IndexedCursor if the index has every node, else a BraidedCursor.
#pragma once

#include <memory>

#include "index/cursor.h"
#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// The reader is the home region of the calling thread. The list and the index must outlive the cursor. Throws std::bad_alloc.
std::unique_ptr<EntryCursor> NewListCursor(const BraidedList* list, const TallIndex* index);

}  // namespace braiddb
