// VersionFilter: which versions of a key a snapshot or a reader from now on can see.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace braiddb {

// Built from the snapshots that are registered when a job starts. Snapshots registered later see the newest version of everything
// that the job works on, because its entries were published before they were made.
class VersionFilter {
 public:
  // `snapshots`: sequence numbers in any order.
  explicit VersionFilter(std::vector<uint64_t> snapshots) : snapshots_(std::move(snapshots)) {
    std::sort(snapshots_.begin(), snapshots_.end());
  }

  // Whether anyone can see a version that has a newer one. REQUIRES: older < newer.
  bool Visible(uint64_t older, uint64_t newer) const {
    const auto snapshot = std::lower_bound(snapshots_.begin(), snapshots_.end(), older);
    return snapshot != snapshots_.end() && *snapshot < newer;
  }

 private:
  std::vector<uint64_t> snapshots_;
};

}  // namespace braiddb
