// ListWalk: follows one braided list along the bottom layer, and checks the upper layers at each entry.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "check/findings.h"
#include "check/media.h"
#include "check/reached_entries.h"
#include "index/key_order.h"
#include "log/log_entry.h"

namespace braiddb {

// The rules of a list: list_check.h.
class ListWalk {
 public:
  struct Limits {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = UINT64_MAX;
    // A merge has moved the entries at or after this one to the last level; null: it has moved none.
    const LogEntry* until = nullptr;
    // Receives the entries of a table that is being merged into a level that does not relink entries, and may be marked. Null: of
    // other lists.
    std::vector<const LogEntry*>* merging = nullptr;
    const LogEntry* after = nullptr;  // all entries must be after this one; null: no bound
  };

  // `heads`: the head towers, kMaxHeight words for each region. `name`: the list, for findings.
  ListWalk(const Media& media, uint32_t family, const KeyOrder& order, std::string name, std::vector<uint64_t> heads,
           const Limits& limits, ReachedEntries* reached, Findings* findings)
      : media_(media),
        family_(family),
        order_(order),
        name_(std::move(name)),
        cursors_(std::move(heads)),
        limits_(limits),
        reached_(reached),
        findings_(findings),
        previous_(limits.after) {}

  // Walks to the end of the list, or to its first entry that cannot be trusted.
  void Run();

  // Returns the last entry of the walk.
  const LogEntry* last() const { return previous_; }
  uint64_t entries() const { return entries_; }
  uint64_t obsolete() const { return obsolete_; }
  bool broken() const { return broken_; }

 private:
  // Adds a finding. The counts of the list are then not compared.
  void Bad(const std::string& what, const std::string& where) {
    broken_ = true;
    findings_->Add(what, where + ", " + name_);
  }
  bool IsValid(PmPtr pointer, size_t segment) const;
  bool IsMerged(const LogEntry& entry) const {
    return limits_.until != nullptr && CompareEntries(order_, entry, *limits_.until) >= 0;
  }
  void Visit(PmPtr pointer, const LogEntry& entry, size_t segment);
  void CheckUpperEnds();
  void CheckMerged(uint64_t first_word, uint32_t first_layer);

  const Media& media_;
  const uint32_t family_;
  const KeyOrder& order_;
  const std::string name_;
  std::vector<uint64_t> cursors_;  // the next word of each upper layer
  const Limits limits_;
  ReachedEntries* const reached_;
  Findings* const findings_;
  const LogEntry* previous_;
  std::unordered_set<uint64_t> merged_seen_;  // dropped entries that CheckMerged has followed
  uint64_t entries_ = 0;
  uint64_t obsolete_ = 0;  // entries that are not the newest of their key in this list
  bool broken_ = false;
};

}  // namespace braiddb
