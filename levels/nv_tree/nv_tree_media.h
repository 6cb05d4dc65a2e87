// NvTreeMedia: an NV-Tree of a database that is not open.
#pragma once

#include "check/level_media.h"
#include "nvtree/nv_tree.h"

namespace braiddb {

class NvTreeMedia final : public LevelMedia {
 public:
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override;
  LevelCounts Check(const LevelCheck& check) const override;
  // Null if the root is damaged.
  const LeafTreeRoot* root() const { return root_; }

 private:
  const LeafTreeRoot* root_ = nullptr;
};

}  // namespace braiddb
