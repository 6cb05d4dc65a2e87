// Salvage: the intact log entries of a database that may be damaged, whatever leads to them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/media.h"
#include "index/key_order.h"

namespace braiddb {

// GOAL   Of each key the newest intact version; of batches whole ones; and a list of what was lost.
// STEPS  1 the segments: as their descriptors say, or, where directories are damaged, wherever a region has a segment header
//        2 in each, entry after entry; behind a damaged one the next place where an entry is valid  3 sort, newest first.
// A version that is marked dead is the answer to nothing, but hides what is older: the rest of what made it dead may be gone.
class Salvage {
 public:
  static Status Scan(const CheckOptions& options, const std::string& path, RepairReport* report,
                     std::unique_ptr<Salvage>* result);

  // The last level of the database; `otherwise` if its MANIFEST is damaged.
  L1Kind l1(L1Kind otherwise) const {
    return media_->manifest_is_sound() ? static_cast<L1Kind>(media_->manifest().l1_kind) : otherwise;
  }
  const Comparator* comparator() const { return order_.comparator(); }
  uint32_t regions() const { return media_->regions(); }
  // The entries to save, all puts, in the order of their keys; they live as long as this object.
  const std::vector<const LogEntry*>& entries() const { return newest_; }

 private:
  // Log space that may hold entries.
  struct Stretch {
    PmPtr start;
    uint64_t generation;
    uint64_t limit;
    bool sealed;
  };
  struct Found {
    uint64_t prefix;
    const LogEntry* entry;
  };

  Salvage(std::unique_ptr<Media> media, const Comparator* comparator, RepairReport* report)
      : media_(std::move(media)), order_(comparator), report_(report) {}

  std::vector<Stretch> FindStretches() const;
  void FindHeaders(uint32_t region, std::vector<Stretch>* stretches) const;
  void ScanStretch(const Stretch& stretch);
  uint64_t SkipBrokenBatch(const Stretch& stretch, uint64_t offset);
  void Lose(const Stretch& stretch, uint64_t begin, uint64_t end);
  void ChooseNewest();

  const std::unique_ptr<Media> media_;
  const KeyOrder order_;
  RepairReport* const report_;
  std::vector<Found> found_;
  std::vector<const LogEntry*> newest_;
};

}  // namespace braiddb
