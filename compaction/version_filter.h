// VersionFilter: which versions of a key a snapshot or a reader from now on can see.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "index/range_tombstones.h"
#include "log/log_entry.h"
#include "util/mutant.h"

namespace braiddb {

// Built from the snapshots that are registered when a job starts. Snapshots registered later see the newest version of everything
// that the job works on, because its entries were published before they were made.
class VersionFilter {
 public:
  // `snapshots`: sequence numbers in any order. `ranges`: what hides keys, up to the number `newest_range`, which is published;
  // null: nothing does. It outlives this, and was loaded before the snapshots were copied: so later ones are no older than it.
  explicit VersionFilter(std::vector<uint64_t> snapshots, const RangeTombstones* ranges = nullptr, uint64_t newest_range = 0)
      : snapshots_(std::move(snapshots)), ranges_(ranges), newest_range_(newest_range) {
    std::sort(snapshots_.begin(), snapshots_.end());
  }

  // Whether anyone can see a version that has a newer one. REQUIRES: older < newer.
  bool Visible(uint64_t older, uint64_t newer) const {
    const auto snapshot = std::lower_bound(snapshots_.begin(), snapshots_.end(), older);
    return snapshot != snapshots_.end() && *snapshot < newer;
  }

  // Whether the next older version is needed for the sake of this one, be it seen by anyone or not. [CC-50]
  static bool IsApplied(const LogEntry& newer, bool is_kept) {
    return is_kept && newer.is_operand() && !BRAIDDB_MUTANT("operand-base-dropped");
  }

  // Which versions of one key, all there are of it, the last level keeps: sets `keep` of each. `versions`: from the newest to the
  // oldest; they have an `entry`. What a range tombstone hides is as if a deletion with its number came next. Those that are
  // `moved` are kept in their copies, if at all, and may be anywhere.
  template <class Version>
  void Decide(std::vector<Version>* versions) const {
    const Version* newer = nullptr;
    for (Version& version : *versions) {
      if (const uint64_t range = version.moved ? 0 : RangeAbove(*version.entry, newer); range != 0) {
        version.keep = Visible(version.entry->sequence(), range);
        newer = &version;
        continue;
      }
      version.keep = !version.moved && (newer == nullptr || IsApplied(*newer->entry, newer->keep) ||
                                        Visible(version.entry->sequence(), newer->entry->sequence()));
      if (!version.moved) newer = &version;
    }
    // A tombstone with nothing to hide any more goes too: this is the last level.
    for (size_t i = versions->size(); i-- > 0;) {
      if (!(*versions)[i].keep) continue;
      if ((*versions)[i].entry->type() != EntryType::kDelete) break;
      (*versions)[i].keep = false;
    }
  }

 private:
  // The number of the oldest range tombstone that hides a version, if it is older than the next newer version (null: there is
  // none); else 0. Of several the oldest is the one that must not go before the version.
  template <class Version>
  uint64_t RangeAbove(const LogEntry& entry, const Version* newer) const {
    if (ranges_ == nullptr) return 0;
    const uint64_t next = ranges_->Next(entry.key(), entry.sequence());
    return next <= newest_range_ && (newer == nullptr || next < newer->entry->sequence()) ? next : 0;
  }

  std::vector<uint64_t> snapshots_;
  const RangeTombstones* const ranges_;
  const uint64_t newest_range_;
};

}  // namespace braiddb
