// Merge operators by the names that RocksDB has for them.
#pragma once

#include <memory>
#include <string>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"

namespace braiddb::bench {

// An empty name gives null. InvalidArgument, with those that there are, for an unknown one.
Status FindMergeOperator(const std::string& name, std::shared_ptr<const MergeOperator>* merge_operator);

}  // namespace braiddb::bench
