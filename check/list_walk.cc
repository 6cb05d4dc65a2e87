#include "check/list_walk.h"

#include "log/log_reader.h"
#include "util/check.h"

namespace braiddb {
namespace {

// The bits of a next word that are neither address nor mark; always 0.
constexpr uint64_t kUnusedBits = LogEntry::kTagBits & ~LogEntry::kMarks;

}  // namespace

void ListWalk::Run() {
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

bool ListWalk::IsValid(PmPtr pointer, size_t segment) const {
  const MediaSegment& home = media_.segments()[segment];
  const LogReader reader(media_.Resolve(home.start()), home.entry_seed, home.limit());
  return reader.ValidAt(pointer.offset() - home.data);
}

// Checks one entry of the bottom layer: marks, sequence number, unused bits, and that each upper layer of its list has
// arrived at it.
void ListWalk::Visit(PmPtr pointer, const LogEntry& entry, size_t segment) {
  BRAIDDB_DCHECK(segment < reached_->segments());
  ++entries_;
  if (limits_.merging != nullptr) limits_.merging->push_back(&entry);
  if (limits_.merging == nullptr || !entry.is_obsolete()) reached_->Add(segment, pointer);
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
void ListWalk::CheckUpperEnds() {
  for (size_t i = 0; i < cursors_.size(); ++i) {
    if (cursors_[i] != 0) CheckMerged(cursors_[i], static_cast<uint32_t>(i % kMaxHeight));
  }
}

// Checks the pointers from a partly merged table into the last level. A reader of the table may pass entries that the merge
// has dropped: these are marked dead, and keep their next words on all layers. The first entry that is not dead must be in
// the last level; otherwise the counts of entries disagree.
void ListWalk::CheckMerged(uint64_t first_word, uint32_t first_layer) {
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

}  // namespace braiddb
