// BraidedMedia: a braided skiplist of a database that is not open.
#pragma once

#include <vector>

#include "check/level_media.h"
#include "skiplist/braided_skiplist.h"

namespace braiddb {

class BraidedMedia final : public LevelMedia {
 public:
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override;
  LevelCounts Check(const LevelCheck& check) const override;
  // Null if the head is damaged.
  const SkipListHead* head(uint32_t region) const { return heads_[region]; }

 private:
  std::vector<const SkipListHead*> heads_;  // by region; null if damaged
};

}  // namespace braiddb
