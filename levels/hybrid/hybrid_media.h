// HybridMedia: the hash index of a hybrid level in a database that is not open.
#pragma once

#include "check/level_media.h"
#include "hash_index/hash_index.h"

namespace braiddb {

class HybridMedia final : public LevelMedia {
 public:
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override;
  // GOAL   Finds every violation of these rules. The headers of the index's segments are valid. The pages that count cover all
  //        signatures of their partitions; each link leads to an overflow page of its page. Each used slot names a valid entry of
  //        the family, with the slot's signature; and check/level_entries.h for the entries.
  // STEPS  One pass over the pages, then one over the entries in key order.
  // COST   One visit of each page and of each entry; 32 bytes of DRAM for each entry.
  LevelCounts Check(const LevelCheck& check) const override;

 private:
  const HashRoot* root_ = nullptr;
};

}  // namespace braiddb
