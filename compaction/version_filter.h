// VersionFilter: decides which versions of a key a snapshot, or a future reader, can see.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "index/range_tombstones.h"
#include "log/log_entry.h"
#include "util/mutant.h"

namespace braiddb {

// Built from the snapshots that exist when a job starts. A snapshot that is created later sees the newest version of every key
// that the job works on, because all entries of the job were published before the snapshot.
class VersionFilter {
 public:
  // `snapshots`: sequence numbers in any order. `ranges`: the range tombstones, or null; it must outlive the filter.
  // `newest_range`: range tombstones up to this sequence number are published. The caller must load `ranges` before it copies the
  // snapshots. Then no later snapshot is older than a tombstone in `ranges`.
  explicit VersionFilter(std::vector<uint64_t> snapshots, const RangeTombstones* ranges = nullptr, uint64_t newest_range = 0)
      : snapshots_(std::move(snapshots)), ranges_(ranges), newest_range_(newest_range) {
    std::sort(snapshots_.begin(), snapshots_.end());
  }

  // Whether a snapshot can see the version `older`, given that the next newer version is `newer`: some snapshot lies in [older,
  // newer). REQUIRES: older < newer.
  bool Visible(uint64_t older, uint64_t newer) const {
    const auto snapshot = std::lower_bound(snapshots_.begin(), snapshots_.end(), older);
    return snapshot != snapshots_.end() && *snapshot < newer;
  }

  // Whether the next older version must be kept because `newer` is an operand that is applied to it. A snapshot need not see the
  // older version. [CC-50]
  static bool IsApplied(const LogEntry& newer, bool is_kept) {
    return is_kept && newer.is_operand() && !BRAIDDB_MUTANT("operand-base-dropped");
  }

  // Sets `keep` for all versions of one key in the last level. `versions`: all versions of the key, newest first, each with a
  // member `entry`. A range tombstone acts like a deletion with its sequence number. A `moved` version is represented by its
  // copy: its own `keep` becomes false, and it counts as newer for no other version.
  //
  // Example: snapshots {7}; versions put@9, put@7, delete@5, put@3. put@9 is kept: no newer version exists. put@7 is kept:
  // snapshot 7 sees it. delete@5 and put@3 are dropped: no snapshot lies in [5, 7) or [3, 5).
  // Operands: if an operand is kept, the next older version is kept too, and so on down to the first version that is not an
  // operand. A dropped operand keeps no older version.
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
    // The oldest kept versions, if they are tombstones, hide nothing: no older level exists. So they are dropped.
    for (size_t i = versions->size(); i-- > 0;) {
      if (!(*versions)[i].keep) continue;
      if ((*versions)[i].entry->type() != EntryType::kDelete) break;
      (*versions)[i].keep = false;
    }
  }

 private:
  // The sequence number of the oldest range tombstone that hides the version and is older than the next newer version (`newer`,
  // null: none). Returns 0 if no such tombstone exists. The oldest tombstone matters, because the version must go before any
  // tombstone that hides it.
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
