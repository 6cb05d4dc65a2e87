// Salvage: finds the intact log entries of a database that may be damaged, without following its lists.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/media.h"
#include "index/key_order.h"
#include "index/range_tombstones.h"

namespace braiddb {

// GOAL       For each key of each column family: the newest intact version, and if that is an operand, the older versions to
//            which it is applied. A batch counts only if it is complete. A list of the losses.
// STEPS      1 find the segments by their descriptors, or, if directories are damaged, by the segment headers in the regions  2
//            read each segment entry by entry; behind damage, search for the next valid entry  3 sort the entries of each
//            family and choose the newest versions.
// RANGES     Sequence numbers are not saved, so range tombstones cannot be saved. The entries that they hide are skipped, and
//            an operand is not applied to a hidden version. If the MANIFEST is damaged, tombstones are recognized by their
//            keys.
// MARKS      A version that is marked dead is no result, but it hides older versions: the newer version that made it dead may
//            be lost.
// FAMILIES   If the MANIFEST is damaged, names, comparators and drops of families are unknown. Each id with entries becomes a
//            family with a made-up name.
// HOLES      The database gives the blocks of free segments back, except their first and last page (pmem/part_blocks.h), and may
//            take them again before it uses the segment. A free segment without a descriptor is found by its header in the first
//            page. Its zeros are no loss, and neither are the parts of entries and batches that are left beside them.
// COST       DRAM: 16 bytes per entry. One read of each segment; searches behind damage may read bytes again.
class Salvage {
 public:
  // Reads the database. Fills report->damage, report->lost and the counts. Errors as of Media::Load and ChooseOrders.
  static Status Scan(const CheckOptions& options, const std::string& path, RepairReport* report,
                     std::unique_ptr<Salvage>* result);

  struct Family {
    uint32_t id = 0;
    std::string name;
    const Comparator* comparator = nullptr;
    std::optional<L1Kind> l1;  // none if the MANIFEST is damaged
    // Puts and operands to save, in key order, the oldest version of a key first. Valid as long as the Salvage.
    std::vector<const LogEntry*> entries;
    uint64_t keys = 0;  // number of different keys
  };
  // The families to create, the default family first.
  const std::vector<Family>& families() const { return families_; }
  uint32_t regions() const { return media_->regions(); }
  // Of the log that was read.
  uint64_t bytes() const { return bytes_; }

 private:
  // A range of log space that may have entries.
  struct Stretch {
    PmPtr start;
    uint64_t entry_seed;
    uint64_t limit;      // bytes
    bool sealed;         // the range is known to be full of entries
    bool may_have_hole;  // the segment has no descriptor, so it may be free, and its blocks given back
  };
  struct Found {
    uint64_t prefix;
    const LogEntry* entry;
  };
  // The second pass of CheckOptions::progress.
  struct Sorting {
    std::function<void(uint64_t done, uint64_t total)> progress;
    uint64_t steps = 0;
    uint64_t done = 0;
  };

  Salvage(std::unique_ptr<Media> media, RepairReport* report) : media_(std::move(media)), report_(report) {}

  std::vector<Stretch> FindStretches() const;
  void FindHeaders(uint32_t region, std::vector<Stretch>* stretches) const;
  void ScanStretch(const Stretch& stretch);
  // Returns the end of the rest of a batch that begins at `offset`. Sets *is_complete to true if the batch has its last entry.
  uint64_t SkipBrokenBatch(const Stretch& stretch, uint64_t offset, bool* is_complete) const;
  // Returns true if the whole pages of [begin, end) were given back to the file system, and cut the entry at `begin`.
  bool IsGivenBack(const Stretch& stretch, uint64_t begin, uint64_t end) const;
  void Lose(const Stretch& stretch, uint64_t begin, uint64_t end);
  void Keep(const LogEntry* entry);
  // Moves the range tombstones from found_ to ranges_, obsolete ones as well: the keys that they have hidden must not come
  // back.
  void FindRanges();
  void ChooseFamilies(const CheckOptions& options, const std::vector<KeyOrder>& orders);
  void GuessFamilies(const CheckOptions& options);
  void ChooseNewest(Family* family);
  // Called twice for each entry that is sorted.
  void NoteSorted();
  // Appends the versions of one key, which are newest first, to the family, oldest first.
  static void Save(std::vector<const LogEntry*>* versions, Family* family);

  const std::unique_ptr<Media> media_;
  RepairReport* const report_;
  std::array<std::vector<Found>, kMaxFamilies> found_;
  std::map<uint32_t, std::vector<RangeTombstones::Tombstone>> ranges_;  // by family
  uint64_t strays_ = 0;                                                 // entries of unlisted families that are not marked dead
  std::vector<Family> families_;
  uint64_t bytes_ = 0;
  Sorting sorting_;
};

}  // namespace braiddb
