#include "check/level_entries.h"

#include <algorithm>
#include <string>

#include "check/media.h"
#include "log/log_reader.h"
#include "log/range_record.h"

namespace braiddb {

LevelEntries::LevelEntries(const LevelCheck& check) : check_(check), merging_(check.merging) {
  std::sort(merging_.begin(), merging_.end(),
            [&check](const LogEntry* a, const LogEntry* b) { return CompareEntries(check.order, *a, *b) < 0; });
}

void LevelEntries::Bad(const char* what, PmPtr place) {
  is_broken_ = true;
  check_.findings->Add(what, check_.media.Place(place) + ", last level" + check_.family.suffix());
}

void LevelEntries::Visit(const LogEntry& entry, PmPtr place, size_t segment) {
  if (previous_ != nullptr) {
    if (CompareEntries(check_.order, *previous_, entry) >= 0) return Bad("an entry out of order, or twice", place);
    if (check_.order.Compare(previous_->key(), entry.key()) == 0) ++counts_.obsolete_entries;
  }
  if (entry.sequence() >= check_.media.manifest().log_boundary)
    Bad("an entry whose sequence number does not belong there", place);
  if (entry.is_obsolete() && !check_.is_merging) Bad("an entry that is marked dead or moved", place);
  previous_ = &entry;
  ++counts_.entries;
  while (next_merging_ < merging_.size() && CompareEntries(check_.order, *merging_[next_merging_], entry) < 0)
    JudgeMark(*merging_[next_merging_++]);
  const bool counted = next_merging_ < merging_.size() && merging_[next_merging_] == &entry;
  next_merging_ += counted;
  JudgeMark(entry);
  if (!entry.is_obsolete() && !counted) check_.reached->Add(segment, place);
}

void LevelEntries::Finish() {
  while (next_merging_ < merging_.size()) JudgeMark(*merging_[next_merging_++]);
  EndKey();
}

// Receives the versions of level and merging tables together, in entry order, and decides for each key whether its marks are
// right.
void LevelEntries::JudgeMark(const LogEntry& entry) {
  if (newest_ != nullptr && check_.order.Compare(newest_->key(), entry.key()) == 0) {
    if (entry.sequence() != newest_->sequence()) {
      if (!entry.is_obsolete()) live_sequence_ = std::max(live_sequence_, entry.sequence());
      older_is_live_ |= !entry.is_obsolete();
    } else if (!entry.is_dead()) {
      newest_ = &entry;  // an entry and its copy are one version
    }
    return;
  }
  EndKey();
  newest_ = &entry;
  older_is_live_ = false;
  live_sequence_ = 0;
}

void LevelEntries::EndKey() {
  if (newest_ == nullptr || !newest_->is_dead()) return;
  // A sweep has no tables. It may have removed the newest versions of a key already if the key is in several leaves or slots.
  const bool may_be_first = newest_->type() != EntryType::kPut || !check_.has_tables || check_.media.manifest().merge_filters;
  if (may_be_first && (!older_is_live_ || RangeHidesOlder())) return;
  check_.findings->Add("an entry that is marked dead and is its key's newest, or the newest tombstone of one that is not",
                       "last level, or a table that was being merged" + check_.family.suffix());
}

// A snapshot that was lost with the process may have kept them.
bool LevelEntries::RangeHidesOlder() const {
  for (const MediaSegment& segment : check_.media.segments()) {
    if (!segment.holds_log()) continue;
    LogReader reader(check_.media.Resolve(segment.start()), segment.entry_seed, segment.limit());
    while (const LogEntry* entry = reader.NextValid()) {
      uint32_t family = 0;
      RangeTombstone range;
      if (entry->type() != EntryType::kPut || entry->is_obsolete() || entry->sequence() <= live_sequence_) continue;
      if (!RangeRecord::Parse(entry->key(), entry->value(), entry->sequence(), &family, &range)) continue;
      if (family == check_.family.id && check_.order.Compare(range.begin, newest_->key()) <= 0 &&
          check_.order.Compare(newest_->key(), range.end) < 0)
        return true;
    }
  }
  return false;
}

}  // namespace braiddb
