// Salvage: the intact log entries of a database that may be damaged, whatever leads to them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/media.h"
#include "index/key_order.h"
#include "index/range_tombstones.h"

namespace braiddb {

// GOAL   Of each key of each column family the newest intact version, and what that is applied to; of batches whole ones; and a
//        list of what was lost.
// STEPS  1 the segments: as their descriptors say, or, where directories are damaged, wherever a region has a segment header
//        2 in each, entry after entry; behind a damaged one the next place where an entry is valid  3 of each family sort them,
//        newest first.
// Sequence numbers are not saved, so range tombstones are not either: what they hide is left out, and what operands would be
// applied to beyond one becomes nothing. With a damaged MANIFEST their records are known by their keys.
// A version that is marked dead is the answer to nothing, but hides what is older: the rest of what made it dead may be gone.
// With a damaged MANIFEST nothing says how families are called and ordered, and which were dropped.
class Salvage {
 public:
  static Status Scan(const CheckOptions& options, const std::string& path, RepairReport* report,
                     std::unique_ptr<Salvage>* result);

  struct Family {
    uint32_t id = 0;
    std::string name;
    const Comparator* comparator = nullptr;
    std::optional<L1Kind> l1;  // none: the MANIFEST is damaged
    // To save, puts and operands, in the order of their keys, the oldest of a key first; they live as long as the Salvage.
    std::vector<const LogEntry*> entries;
    uint64_t keys = 0;  // of these
  };
  // To make, the default one first.
  const std::vector<Family>& families() const { return families_; }
  uint32_t regions() const { return media_->regions(); }

 private:
  // Log space that may hold entries.
  struct Stretch {
    PmPtr start;
    uint64_t entry_seed;
    uint64_t limit;
    bool sealed;
  };
  struct Found {
    uint64_t prefix;
    const LogEntry* entry;
  };

  Salvage(std::unique_ptr<Media> media, RepairReport* report) : media_(std::move(media)), report_(report) {}

  std::vector<Stretch> FindStretches() const;
  void FindHeaders(uint32_t region, std::vector<Stretch>* stretches) const;
  void ScanStretch(const Stretch& stretch);
  uint64_t SkipBrokenBatch(const Stretch& stretch, uint64_t offset);
  void Lose(const Stretch& stretch, uint64_t begin, uint64_t end);
  void Keep(const LogEntry* entry);
  // Takes the range tombstones out of what was found, obsolete or not: what they hid then is not to come back.
  void FindRanges();
  void ChooseFamilies(const CheckOptions& options, const std::vector<KeyOrder>& orders);
  void GuessFamilies(const CheckOptions& options);
  void ChooseNewest(Family* family);
  // Takes over what is to be saved of one key, the newest first.
  static void Save(std::vector<const LogEntry*>* versions, Family* family);

  const std::unique_ptr<Media> media_;
  RepairReport* const report_;
  std::array<std::vector<Found>, kMaxFamilies> found_;
  std::map<uint32_t, std::vector<RangeTombstones::Tombstone>> ranges_;  // by family
  uint64_t strays_ = 0;                                                 // of families that are not there, and not marked dead
  std::vector<Family> families_;
};

}  // namespace braiddb
