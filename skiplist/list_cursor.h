// NewListCursor: the cursor over a braided list for what its index has.
#pragma once

#include <memory>

#include "index/cursor.h"
#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// The list and the index must outlive the cursor.
std::unique_ptr<EntryCursor> NewListCursor(const BraidedList* list, const TallIndex* index);

}  // namespace braiddb
