// LbTreeMedia: an LB+-Tree of a database that is not open.
#pragma once

#include "check/level_media.h"
#include "leaf_tree/leaf_tree.h"

namespace braiddb {

class LbTreeMedia final : public LevelMedia {
 public:
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override;
  LevelCounts Check(const LevelCheck& check) const override;

 private:
  const LeafTreeRoot* root_ = nullptr;
};

}  // namespace braiddb
