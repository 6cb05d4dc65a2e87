// ReadView: the levels of a database at one moment.
#pragma once

#include <memory>
#include <vector>

#include "index/ordered_level.h"
#include "lsm/memtable.h"
#include "lsm/pm_table.h"

namespace braiddb {

// Immutable. Readers load the current one inside an epoch guard; long-lived readers keep a shared_ptr.
// Order of reading: active, immutables, l0 (each newest first), l1. A key found in one level need not be looked for below.
struct ReadView : std::enable_shared_from_this<ReadView> {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;
  std::vector<std::shared_ptr<PmTable>> l0;
  std::shared_ptr<const OrderedLevel> l1;
};

}  // namespace braiddb
