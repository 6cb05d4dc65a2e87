// NvTreeLevel: the last level as an NV-Tree.
#pragma once

#include "index/level_kind.h"

namespace braiddb {

struct NvTreeLevel {
  static const LevelKind kKind;
};

}  // namespace braiddb
