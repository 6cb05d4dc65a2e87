#include "check/list_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "braiddb/column_family.h"
#include "check/list_walk.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Walks the tables and the last level of one family.
class FamilyWalk {
 public:
  FamilyWalk(const Media& media, const MediaFamily& family, const KeyOrder& order, ReachedEntries* reached, Findings* findings)
      : media_(media),
        manifest_(media.manifest()),
        family_(family),
        order_(order),
        is_merging_(media.merging_family() == &family),
        merging_tables_(is_merging_ ? manifest_.merging_tables : 0),
        reached_(reached),
        findings_(findings) {}

  // `first_sequences`: the smallest sequence number of each table of the MANIFEST (CheckBoundaries). REQUIRES: the last level can
  // be followed.
  void Run(const std::vector<uint64_t>& first_sequences) {
    if (!FindProgress()) return;
    for (size_t i = 0; i < manifest_.tables.size(); ++i) {
      if (manifest_.tables[i].family == family_.id) WalkTable(manifest_.tables[i], first_sequences[i]);
    }
    const LevelCounts in_level = family_.level->Check(
        {media_, family_, order_, is_merging_, merging_tables_ > 0, std::move(merging_), reached_, findings_});
    counts_.l1_entries = in_level.entries;
    counts_.obsolete_entries = in_level.obsolete_entries;
  }

  const ListCounts& counts() const { return counts_; }

 private:
  // Sets until_ to the entry from which on the running merge has moved the tables' entries; null if it has moved none. Returns
  // false if the merge's progress is damaged.
  bool FindProgress() {
    if (!is_merging_ || media_.progress().is_null()) return true;
    size_t segment = 0;
    until_ = media_.EntryAt(media_.progress(), &segment);
    if (until_ != nullptr && until_->family() == family_.id) return true;
    findings_->Add("the progress of the merge is no entry" + std::string(until_ == nullptr ? "" : " of its column family"),
                   "merge journal in region 0" + family_.suffix());
    return false;
  }

  // Walks one table. The family's oldest tables, as many as the MANIFEST says, are being merged.
  void WalkTable(const ManifestState::Table& table, uint64_t first_sequence) {
    const bool merging = counts_.tables++ < merging_tables_;
    const bool partly = merging && until_ != nullptr;
    const std::string name = "table " + std::to_string(table.id) + " of L0" + family_.suffix();
    const ListWalk::Limits limits{first_sequence, table.boundary, partly ? until_ : nullptr,
                                  merging && !family_.kind->relinks_entries ? &merging_ : nullptr};
    ListWalk walk(media_, family_.id, order_, name, table.heads, limits, reached_, findings_);
    walk.Run();
    counts_.l0_entries += walk.entries();
    if (walk.broken() || (partly ? walk.entries() <= table.entries : walk.entries() == table.entries)) return;
    findings_->Add(
        "the list has " + std::to_string(walk.entries()) + " entries, the MANIFEST says " + std::to_string(table.entries), name);
  }

  const Media& media_;
  const ManifestState& manifest_;
  const MediaFamily& family_;
  const KeyOrder& order_;
  const bool is_merging_;  // a merge or sweep of this family was running
  const uint32_t merging_tables_;
  const LogEntry* until_ = nullptr;
  std::vector<const LogEntry*> merging_;
  ReachedEntries* const reached_;
  Findings* const findings_;
  ListCounts counts_;
};

// Checks that numbers and names of families are unique, and that the merging family exists.
void CheckFamilies(const ManifestState& manifest, Findings* findings) {
  std::set<uint64_t> numbers;
  std::set<std::string> names = {kDefaultColumnFamilyName};
  for (const ManifestState::Family& family : manifest.families) {
    const std::string where = "column family '" + Escaped(family.name) + "' in the MANIFEST";
    if (family.number == 0 || family.number >= manifest.next_id || !numbers.insert(family.number).second)
      findings->Add("the number of a column family contradicts the others", where);
    // The name of a dropped family may be used again.
    if (family.name.empty() || (!family.dropped && !names.insert(family.name).second))
      findings->Add("a column family without a name of its own", where);
  }
  if (manifest.merge_id != 0 && manifest.merging_family != 0 && manifest.FindFamily(manifest.merging_family) == nullptr)
    findings->Add("a merge of a column family that is not there", "MANIFEST");
}

// Returns the smallest sequence number that each table may have, and checks the order of ids and boundaries. Tables that were
// flushed together have one id and one boundary, and are neighbours, at most one of each family. Tables of copies share the id
// kRelocationId, and are older than the other tables of their family.
std::vector<uint64_t> CheckBoundaries(const ManifestState& manifest, Findings* findings) {
  std::vector<uint64_t> first_sequences;
  std::map<uint32_t, uint64_t> boundary_of;  // of a family's newest table
  uint64_t id = kRelocationId;
  uint64_t boundary = 0;  // boundary of the tables with this id; 0: they are tables of copies
  uint64_t older = 0;     // boundary of the tables with the id before
  for (const ManifestState::Table& table : manifest.tables) {
    uint64_t& of_family = boundary_of[table.family];
    if (table.id != id) older = boundary;
    const bool is_in_order =
        table.id == id ? id == kRelocationId || table.boundary == boundary : table.id > id && table.boundary > older;
    if (!is_in_order || table.boundary <= of_family || table.boundary > manifest.log_boundary || table.id >= manifest.next_id)
      findings->Add("number or boundary of a table contradict the others",
                    "table " + std::to_string(table.id) + " of L0 in the MANIFEST");
    first_sequences.push_back(std::max(older, of_family));
    of_family = table.boundary;
    id = table.id;
    if (id != kRelocationId) boundary = table.boundary;
  }
  return first_sequences;
}

}  // namespace

void CheckLists(const Media& media, const std::vector<KeyOrder>& orders, Findings* findings, ReachedEntries* reached,
                std::vector<ListCounts>* counts) {
  BRAIDDB_DCHECK(media.manifest_is_sound() && orders.size() == media.families().size());
  BRAIDDB_DCHECK(reached->segments() == media.segments().size());
  CheckFamilies(media.manifest(), findings);
  const std::vector<uint64_t> first_sequences = CheckBoundaries(media.manifest(), findings);
  counts->clear();
  for (size_t i = 0; i < media.families().size(); ++i) {
    FamilyWalk walk(media, media.families()[i], orders[i], reached, findings);
    if (media.families()[i].level_is_there) walk.Run(first_sequences);
    counts->push_back(walk.counts());
  }
}

}  // namespace braiddb
