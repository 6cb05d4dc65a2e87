// NewEntryCursor: a cursor over the log entries of a LeafTree.
#pragma once

#include <memory>

#include "index/cursor.h"
#include "leaf_tree/entry_keys.h"
#include "leaf_tree/leaf_tree.h"

namespace braiddb {

// A LeafCursor that prefetches the elements' entries. `tree`, `keys`: must outlive the cursor. REQUIRES: the thread holds no
// epoch guard when it uses the cursor.
std::unique_ptr<EntryCursor> NewEntryCursor(const LeafTree* tree, const EntryKeys* keys);

}  // namespace braiddb
