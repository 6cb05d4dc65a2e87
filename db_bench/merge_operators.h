// Merge operators by RocksDB's names.
#pragma once

#include <memory>
#include <string>

#include "braiddb/merge_operator.h"
#include "braiddb/status.h"

namespace braiddb::bench {

// An empty name yields null. For an unknown name returns InvalidArgument with the known names.
Status FindMergeOperator(const std::string& name, std::shared_ptr<const MergeOperator>* merge_operator);

}  // namespace braiddb::bench
