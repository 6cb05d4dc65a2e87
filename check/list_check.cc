#include "check/list_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>

#include "braiddb/column_family.h"
#include "check/tree_check.h"
#include "log/log_reader.h"
#include "util/check.h"

namespace braiddb {
namespace {

// The bits of a next word that are neither address nor mark; always 0.
constexpr uint64_t kUnusedBits = LogEntry::kTagBits & ~LogEntry::kMarks;

// Follows one braided list along the bottom layer, and checks the upper layers at each entry.
class ListWalk {
 public:
  struct Limits {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = UINT64_MAX;
    // A merge has moved the entries at or after this one to the last level; null: it has moved none.
    const LogEntry* until = nullptr;
    // Receives the entries of a table that is being merged into a tree or into runs, and may be marked. Null: of other lists.
    std::vector<const LogEntry*>* merging = nullptr;
    const LogEntry* after = nullptr;  // all entries must be after this one; null: no bound
  };

  // `heads`: the head towers, kMaxHeight words for each region. `name`: the list, for findings.
  ListWalk(const Media& media, uint32_t family, const KeyOrder& order, std::string name, std::vector<uint64_t> heads,
           const Limits& limits, std::vector<EntrySet>* reached, Findings* findings)
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
  void Run() {
    uint64_t word = cursors_[0];
    cursors_[0] = 0;
    std::string origin = "its head";
    while (word != 0) {
      const PmPtr pointer(word);
      size_t segment = 0;
      const LogEntry* entry = media_.EntryAt(pointer, &segment);
      if (entry == nullptr || !IsValid(pointer, segment)) return Bad("a pointer that leads to no valid entry", origin);
      if (entry->family() != family_) return Bad("an entry of another column family", media_.Place(pointer));
      if (previous_ != nullptr && CompareEntries(order_, *previous_, *entry) >= 0)
        return Bad("an entry out of order", media_.Place(pointer));
      if (IsMerged(*entry)) {
        CheckMerged(word, 0);
        break;
      }
      Visit(pointer, *entry, segment);
      previous_ = entry;
      origin = media_.Place(pointer);
      word = entry->next[0] & ~LogEntry::kMarks;
    }
    CheckUpperEnds();
  }

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

  bool IsValid(PmPtr pointer, size_t segment) const {
    const MediaSegment& home = media_.segments()[segment];
    const LogReader reader(media_.Resolve(home.start()), home.entry_seed, home.limit());
    return reader.ValidAt(pointer.offset() - home.data);
  }

  bool IsMerged(const LogEntry& entry) const {
    return limits_.until != nullptr && CompareEntries(order_, entry, *limits_.until) >= 0;
  }

  // Checks one entry of the bottom layer: marks, sequence number, unused bits, and that each upper layer of its list has
  // arrived at it.
  void Visit(PmPtr pointer, const LogEntry& entry, size_t segment) {
    BRAIDDB_DCHECK(segment < reached_->size());
    ++entries_;
    if (limits_.merging != nullptr) limits_.merging->push_back(&entry);
    if (limits_.merging == nullptr || !entry.is_obsolete()) (*reached_)[segment].Add(pointer);
    if (previous_ != nullptr && order_.Compare(previous_->key(), entry.key()) == 0) ++obsolete_;
    if (entry.is_obsolete() && limits_.merging == nullptr)
      Bad("an entry that is linked and marked dead or moved", media_.Place(pointer));
    if (entry.sequence() < limits_.first_sequence || entry.sequence() >= limits_.end_sequence)
      Bad("an entry whose sequence number does not belong there", media_.Place(pointer));
    for (uint32_t layer = 0; layer < entry.height(); ++layer) {
      if ((entry.next[layer] & (layer == 0 ? kUnusedBits : LogEntry::kTagBits)) != 0)
        Bad("a pointer with unknown marks", media_.Place(pointer));
    }
    const uint32_t list = media_.manifest().list_kind == ListKind::kBraided ? pointer.region() : 0;
    uint64_t* const cursors = &cursors_[list * kMaxHeight];
    for (uint32_t layer = 1; layer < entry.height(); ++layer) {
      if (cursors[layer] != pointer.raw()) {
        Bad("layer " + std::to_string(layer) + " of region " + std::to_string(list) + " misses an entry", media_.Place(pointer));
      }
      cursors[layer] = entry.next[layer];
    }
  }

  // Behind the last entry of the bottom layer an upper layer ends, or leads to entries that the merge has moved.
  void CheckUpperEnds() {
    for (size_t i = 0; i < cursors_.size(); ++i) {
      if (cursors_[i] != 0) CheckMerged(cursors_[i], static_cast<uint32_t>(i % kMaxHeight));
    }
  }

  // Checks the pointers from a partly merged table into the last level. A reader of the table may pass entries that the merge
  // has dropped: these are marked dead, and keep their next words on all layers. The first entry that is not dead must be in
  // the last level; otherwise the counts of entries disagree.
  void CheckMerged(uint64_t first_word, uint32_t first_layer) {
    struct Step {
      uint64_t word;
      uint32_t layer;
      const LogEntry* before;
    };
    std::vector<Step> steps = {{first_word, first_layer, previous_}};
    while (!steps.empty()) {
      const Step step = steps.back();
      steps.pop_back();
      if (step.word == 0) continue;
      const PmPtr pointer(step.word);
      size_t segment = 0;
      const LogEntry* entry = media_.EntryAt(pointer, &segment);
      const bool sound = entry != nullptr && IsValid(pointer, segment) && entry->family() == family_ && IsMerged(*entry) &&
                         step.layer < entry->height() &&
                         (step.before == nullptr || CompareEntries(order_, *step.before, *entry) < 0);
      if (!sound) {
        return Bad("layer " + std::to_string(step.layer) + " leads to an entry that is not in the list", media_.Place(pointer));
      }
      if (!entry->is_dead() || !merged_seen_.insert(step.word).second) continue;
      for (uint32_t layer = 0; layer < entry->height(); ++layer) {
        steps.push_back({entry->next[layer] & (layer == 0 ? ~LogEntry::kMarks : ~uint64_t{0}), layer, entry});
      }
    }
  }

  const Media& media_;
  const uint32_t family_;
  const KeyOrder& order_;
  const std::string name_;
  std::vector<uint64_t> cursors_;  // the next word of each upper layer
  const Limits limits_;
  std::vector<EntrySet>* const reached_;
  Findings* const findings_;
  const LogEntry* previous_;
  std::unordered_set<uint64_t> merged_seen_;  // dropped entries that CheckMerged has followed
  uint64_t entries_ = 0;
  uint64_t obsolete_ = 0;  // entries that are not the newest of their key in this list
  bool broken_ = false;
};

// Walks the tables and the last level of one family.
class FamilyWalk {
 public:
  FamilyWalk(const Media& media, const MediaFamily& family, const KeyOrder& order, std::vector<EntrySet>* reached,
             Findings* findings)
      : media_(media),
        manifest_(media.manifest()),
        family_(family),
        order_(order),
        is_merging_(media.merging_family() == &family),
        merging_tables_(is_merging_ ? manifest_.merging_tables : 0),
        reached_(reached),
        findings_(findings) {}

  // `first_sequences`: the smallest sequence number of each table of the MANIFEST (CheckBoundaries).
  void Run(const std::vector<uint64_t>& first_sequences) {
    if (!FindProgress()) return;
    for (size_t i = 0; i < manifest_.tables.size(); ++i) {
      if (manifest_.tables[i].family == family_.id) WalkTable(manifest_.tables[i], first_sequences[i]);
    }
    if (family_.l1 == L1Kind::kSortedRuns) {
      WalkRuns();
    } else if (family_.tree_root != nullptr) {
      WalkTree();
    } else {
      WalkList();
    }
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
                                  merging && family_.l1 != L1Kind::kBraidedSkipList ? &merging_ : nullptr};
    ListWalk walk(media_, family_.id, order_, name, table.heads, limits, reached_, findings_);
    walk.Run();
    counts_.l0_entries += walk.entries();
    if (walk.broken() || (partly ? walk.entries() <= table.entries : walk.entries() == table.entries)) return;
    findings_->Add(
        "the list has " + std::to_string(walk.entries()) + " entries, the MANIFEST says " + std::to_string(table.entries), name);
  }

  void WalkList() {
    std::vector<uint64_t> heads;
    for (const SkipListHead* head : family_.heads) heads.insert(heads.end(), head->next, head->next + kMaxHeight);
    ListWalk walk(media_, family_.id, order_, "last level" + family_.suffix(), std::move(heads),
                  {.end_sequence = manifest_.log_boundary}, reached_, findings_);
    walk.Run();
    counts_.l1_entries = walk.entries();
    counts_.obsolete_entries = walk.obsolete();
  }

  // Walks the runs of the last level. Each run must begin behind the last key of the run before.
  void WalkRuns() {
    const LogEntry* last = nullptr;
    for (RunRecord* const run : family_.runs) {
      const std::string name = "last level" + family_.suffix() + ", run at " + media_.Place(PmPtr(run->place));
      ListWalk walk(media_, family_.id, order_, name, {HeadsOf(run), HeadsOf(run) + uint64_t{media_.regions()} * kMaxHeight},
                    {.end_sequence = manifest_.log_boundary, .after = last}, reached_, findings_);
      walk.Run();
      counts_.l1_entries += walk.entries();
      counts_.obsolete_entries += walk.obsolete();
      if (walk.broken()) return;
      if (walk.entries() != run->entries)
        findings_->Add(
            "the list has " + std::to_string(walk.entries()) + " entries, its record says " + std::to_string(run->entries), name);
      last = walk.last();
    }
  }

  void WalkTree() {
    std::sort(merging_.begin(), merging_.end(),
              [this](const LogEntry* a, const LogEntry* b) { return CompareEntries(order_, *a, *b) < 0; });
    const TreeMerge merge{is_merging_, merging_tables_ > 0, merging_};
    const TreeCounts in_tree = CheckTree(media_, family_, order_, merge, reached_, findings_);
    counts_.l1_entries = in_tree.entries;
    counts_.obsolete_entries = in_tree.obsolete_entries;
  }

  const Media& media_;
  const ManifestState& manifest_;
  const MediaFamily& family_;
  const KeyOrder& order_;
  const bool is_merging_;  // a merge or sweep of this family was running
  const uint32_t merging_tables_;
  const LogEntry* until_ = nullptr;
  std::vector<const LogEntry*> merging_;
  std::vector<EntrySet>* const reached_;
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

std::vector<EntrySet> CheckLists(const Media& media, const std::vector<KeyOrder>& orders, Findings* findings,
                                 std::vector<ListCounts>* counts) {
  BRAIDDB_DCHECK(media.manifest_is_sound() && orders.size() == media.families().size());
  std::vector<EntrySet> reached(media.segments().size());
  CheckFamilies(media.manifest(), findings);
  const std::vector<uint64_t> first_sequences = CheckBoundaries(media.manifest(), findings);
  counts->clear();
  for (size_t i = 0; i < media.families().size(); ++i) {
    FamilyWalk walk(media, media.families()[i], orders[i], &reached, findings);
    if (media.families()[i].level_is_there) walk.Run(first_sequences);
    counts->push_back(walk.counts());
  }
  return reached;
}

}  // namespace braiddb
