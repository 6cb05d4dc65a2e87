// RunsMedia: the sorted runs of a database that is not open.
#pragma once

#include <vector>

#include "check/level_media.h"
#include "skiplist/sorted_runs.h"

namespace braiddb {

class RunsMedia final : public LevelMedia {
 public:
  // Follows the links of the runs, and takes the segments of each run.
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override;
  // Each run must begin behind the last key of the run before.
  LevelCounts Check(const LevelCheck& check) const override;

 private:
  std::vector<RunRecord*> runs_;  // in key order
};

}  // namespace braiddb
