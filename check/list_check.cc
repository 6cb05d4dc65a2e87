#include "check/list_check.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "check/tree_check.h"
#include "log/log_reader.h"

namespace braiddb {
namespace {

// The bits of a next word that are neither address nor mark.
constexpr uint64_t kUnusedBits = LogEntry::kTagBits & ~LogEntry::kMarks;

class ListWalk {
 public:
  struct Limits {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = UINT64_MAX;
    const LogEntry* until = nullptr;  // entries at or after it belong to the last level by now; null: there is no such entry
    // Takes the entries: they are being merged into a tree, and may be marked dead. Null: they are not.
    std::vector<const LogEntry*>* merging = nullptr;
  };

  // `heads`: kMaxHeight words for each region.
  ListWalk(const Media& media, const KeyOrder& order, std::string name, std::vector<uint64_t> heads, const Limits& limits,
           std::vector<EntrySet>* reached, Findings* findings)
      : media_(media),
        order_(order),
        name_(std::move(name)),
        cursors_(std::move(heads)),
        limits_(limits),
        reached_(reached),
        findings_(findings) {}

  void Run() {
    uint64_t word = cursors_[0];
    cursors_[0] = 0;
    std::string origin = "its head";
    while (word != 0) {
      const PmPtr pointer(word);
      size_t segment = 0;
      const LogEntry* entry = media_.EntryAt(pointer, &segment);
      if (entry == nullptr || !IsValid(pointer, segment)) return Bad("a pointer that leads to no valid entry", origin);
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

  uint64_t entries() const { return entries_; }
  uint64_t obsolete() const { return obsolete_; }
  bool broken() const { return broken_; }

 private:
  void Bad(const std::string& what, const std::string& where) {
    broken_ = true;
    findings_->Add(what, where + ", " + name_);
  }

  bool IsValid(PmPtr pointer, size_t segment) const {
    const MediaSegment& home = media_.segments()[segment];
    const LogReader reader(media_.Resolve(home.start()), home.generation, home.limit());
    return reader.ValidAt(pointer.offset() - home.data);
  }

  bool IsMerged(const LogEntry& entry) const {
    return limits_.until != nullptr && CompareEntries(order_, entry, *limits_.until) >= 0;
  }

  void Visit(PmPtr pointer, const LogEntry& entry, size_t segment) {
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
    uint64_t* const cursors = &cursors_[pointer.region() * kMaxHeight];
    for (uint32_t layer = 1; layer < entry.height(); ++layer) {
      if (cursors[layer] != pointer.raw()) {
        Bad("layer " + std::to_string(layer) + " of region " + std::to_string(pointer.region()) + " misses an entry",
            media_.Place(pointer));
      }
      cursors[layer] = entry.next[layer];
    }
  }

  // What the upper layers lead to behind the last entry of the bottom: nothing, or what has been merged.
  void CheckUpperEnds() {
    for (size_t i = 0; i < cursors_.size(); ++i) {
      if (cursors_[i] != 0) CheckMerged(cursors_[i], static_cast<uint32_t>(i % kMaxHeight));
    }
  }

  // From where a table has been merged a reader goes on in the last level, by way of entries that the merge dropped: these are
  // marked dead and lead on as before, on all of their layers. The first that is not dead is in the last level, or the numbers of
  // entries disagree.
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
      const bool sound = entry != nullptr && IsValid(pointer, segment) && IsMerged(*entry) && step.layer < entry->height() &&
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
  const KeyOrder& order_;
  const std::string name_;
  std::vector<uint64_t> cursors_;  // where each upper layer goes on
  const Limits limits_;
  std::vector<EntrySet>* const reached_;
  Findings* const findings_;
  const LogEntry* previous_ = nullptr;
  std::unordered_set<uint64_t> merged_seen_;  // dropped entries that were followed
  uint64_t entries_ = 0;
  uint64_t obsolete_ = 0;  // not the newest of their key in this list
  bool broken_ = false;
};

std::vector<uint64_t> L1Heads(const Media& media) {
  std::vector<uint64_t> heads;
  for (uint32_t region = 0; region < media.regions(); ++region) {
    const uint64_t* words = media.l1_head(region)->next;
    heads.insert(heads.end(), words, words + kMaxHeight);
  }
  return heads;
}

// The entry from which on the merging tables have been merged; null if none was.
bool FindProgress(const Media& media, const LogEntry** until, Findings* findings) {
  *until = nullptr;
  if (media.progress().is_null()) return true;
  size_t segment = 0;
  *until = media.EntryAt(media.progress(), &segment);
  if (*until == nullptr) findings->Add("the progress of the merge is no entry", "merge journal in region 0");
  return *until != nullptr;
}

}  // namespace

std::vector<EntrySet> CheckLists(const Media& media, const KeyOrder& order, Findings* findings, ListCounts* counts) {
  std::vector<EntrySet> reached(media.segments().size());
  const ManifestState& manifest = media.manifest();
  const LogEntry* until = nullptr;
  if (!FindProgress(media, &until, findings)) return reached;
  const bool tree = media.tree_root() != nullptr;
  std::vector<const LogEntry*> merged;
  if (!tree) {
    ListWalk l1(media, order, "last level", L1Heads(media), {.end_sequence = manifest.log_boundary}, &reached, findings);
    l1.Run();
    counts->l1_entries = l1.entries();
    counts->obsolete_entries = l1.obsolete();
  }
  uint64_t boundary = 0;
  for (size_t i = 0; i < manifest.tables.size(); ++i) {
    const ManifestState::Table& table = manifest.tables[i];
    const bool merging = i < manifest.merging_tables;
    const std::string name = "table " + std::to_string(table.id) + " of L0";
    if (table.boundary <= boundary || table.boundary > manifest.log_boundary || table.id >= manifest.next_id)
      findings->Add("number or boundary of a table contradict the others", name + " in the MANIFEST");
    const ListWalk::Limits limits{boundary, table.boundary, merging ? until : nullptr, merging && tree ? &merged : nullptr};
    ListWalk walk(media, order, name, table.heads, limits, &reached, findings);
    walk.Run();
    counts->l0_entries += walk.entries();
    const bool partly = merging && until != nullptr;
    if (!walk.broken() && (partly ? walk.entries() > table.entries : walk.entries() != table.entries)) {
      findings->Add(
          "the list has " + std::to_string(walk.entries()) + " entries, the MANIFEST says " + std::to_string(table.entries),
          name);
    }
    boundary = table.boundary;
  }
  if (!manifest.tables.empty() && boundary != manifest.log_boundary)
    findings->Add("the log boundary is not that of the newest table", "MANIFEST");
  if (tree) {
    std::sort(merged.begin(), merged.end(),
              [&order](const LogEntry* a, const LogEntry* b) { return CompareEntries(order, *a, *b) < 0; });
    const TreeCounts in_tree = CheckTree(media, order, merged, &reached, findings);
    counts->l1_entries = in_tree.entries;
    counts->obsolete_entries = in_tree.obsolete_entries;
  }
  return reached;
}

}  // namespace braiddb
