// LbTreeLevel: the last level as an LB+-Tree.
#pragma once

#include "index/level_kind.h"

namespace braiddb {

struct LbTreeLevel {
  static const LevelKind kKind;
};

}  // namespace braiddb
