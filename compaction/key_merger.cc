#include "compaction/key_merger.h"

#include "util/mutant.h"

namespace braiddb {

void KeyMerger::AddFromLevel(LogEntry* entry, PmPtr pointer, uint64_t prefix) {
  // The tables' versions are sorted, newest first. Binary search, because a key may have many versions (operands).
  const auto end = versions_.begin() + static_cast<std::ptrdiff_t>(in_tables_);
  const auto same = std::partition_point(
      versions_.begin(), end, [entry](const Version& version) { return version.entry->sequence() > entry->sequence(); });
  if (same != end && same->pointer == pointer) {  // an earlier run of the merge added the version
    same->in_level = true;
    return;
  }
  versions_.push_back({entry, pointer, prefix, true, false});
}

// WHY TOMBSTONES ARE MARKED LAST  Take put@5 in the level and delete@8 in a table, which no snapshot needs. Both are dropped. A
//     reader skips entries that are marked dead. If the mark of delete@8 became durable first and a crash followed, readers
//     would skip the deletion and find put@5: a deleted key would return. So put@5 is marked in M1, and delete@8 in M2, after
//     a fence. If a newer version of the key exists, the newer version hides both, and the order does not matter.
const std::vector<KeyMerger::Version>& KeyMerger::Decide() {
  std::sort(versions_.begin(), versions_.end(), [](const Version& a, const Version& b) {
    const uint64_t of_a = a.entry->sequence();
    const uint64_t of_b = b.entry->sequence();
    return of_a != of_b ? of_a > of_b : a.in_table > b.in_table;  // a copy before its original
  });
  for (size_t i = 1; i < versions_.size(); ++i)
    versions_[i].moved = versions_[i].entry->sequence() == versions_[i - 1].entry->sequence();
  filter_.Decide(&versions_);
  // A version that an earlier run has marked dead is invisible already, also to snapshots that exist now. It must not be kept.
  for (Version& version : versions_) version.keep = version.keep && !version.entry->is_dead();
  // The version that the user's filter drops is marked in M2, as a tombstone, for the same reason: its mark makes older
  // versions visible. [CC-48]
  const LogEntry* filtered = nullptr;
  if (entry_filter_ != nullptr) {
    const Version* const gone = FilterNewest(
        entry_filter_.get(), [](const Version& v) { return v.in_table; }, &versions_);
    if (gone != nullptr) filtered_.push_back(filtered = gone->entry);
  }
  if (!versions_.empty() && versions_[0].keep && versions_[0].entry->is_operand())
    stats_.AddOperandKey(versions_[0].entry->key());
  // Operands hide no older version.
  size_t first_to_hide = 0;
  while (first_to_hide < versions_.size() && versions_[first_to_hide].entry->is_operand()) ++first_to_hide;
  // If a range tombstone hides a newest version that is an operand, all older versions are dropped too. The operand's mark
  // comes after their marks.
  const bool takes_all = !versions_.empty() && !versions_[0].keep && !versions_[0].moved && versions_[0].entry->is_operand();
  // Oldest first: a reader that sees the mark of a version also sees the marks of the versions that it hid.
  for (size_t i = versions_.size(); i-- > 0;) {
    const Version& version = versions_[i];
    if (version.keep) continue;
    const bool nothing_newer_hides = i <= first_to_hide || (i == first_to_hide + 1 && version.moved);
    if (version.moved && versions_[i - 1].keep) {
      Mark(version.pointer, LogEntry::kMovedBit);
      stats_.moved.Add(versions_[i - 1].pointer, version.pointer);
    } else if (takes_all && i == 0) {
      tombstones_.push_back(version.pointer);
    } else if (!takes_all && nothing_newer_hides && version.entry->type() == EntryType::kDelete &&
               !BRAIDDB_MUTANT("tombstone-marked-early")) {
      tombstones_.push_back(version.pointer);
    } else if (version.entry == filtered && !BRAIDDB_MUTANT("filtered-marked-early")) {
      tombstones_.push_back(version.pointer);
    } else {
      MarkDead(version.pointer);
    }
  }
  for (const Version& version : versions_) {
    if (version.in_table && version.keep) {  // also entries that an interrupted run has added
      key_writer_.Add(KeyHash(*version.entry));
      ++stats_.merged;
    }
    if (version.in_table && !version.keep && !version.in_level) ++stats_.dropped;
    if (version.in_level && !version.keep) ++stats_.unlinked;
  }
  return versions_;
}

Status KeyMerger::MarkTombstones() {
  if (tombstones_.empty()) return Status::OK();
  // ORDER: the marks of the versions that tombstones hide before the marks of the tombstones. [CC-45]
  if (Status status = Drain(); !status.ok()) return status;
  for (const PmPtr pointer : tombstones_) MarkDead(pointer);
  tombstones_.clear();
  for (const LogEntry* entry : filtered_) entry_filter_->Forget(*entry);
  filtered_.clear();
  return Status::OK();
}

Status KeyMerger::Drain() {
  Persistence* const persistence = regions_.persistence();
  if (BRAIDDB_MUTANT("level-marks-not-fenced")) return Status::OK();
  return persistence->Drain() ? Status::OK() : persistence->error();
}

void KeyMerger::MarkDead(PmPtr pointer) {
  Mark(pointer, LogEntry::kDeadBit);
  const PmPtr original = moved_ == nullptr ? PmPtr() : moved_->OriginalOf(pointer);
  if (original) Mark(original, LogEntry::kDeadBit);
}

// Sets the bit, counts an entry without marks as obsolete, and flushes the line. The line is flushed even if the bit is set,
// because an earlier run may have crashed before its fence.
void KeyMerger::Mark(PmPtr pointer, uint64_t bit) {
  auto* const entry = regions_.Resolve<LogEntry>(pointer);
  const uint64_t word = LoadRelaxed(&entry->next[0]);
  if ((word & bit) == 0) {
    StoreRelease(&entry->next[0], word | bit);
    Segment* const segment = (word & LogEntry::kMarks) == 0 ? segments_.Find(pointer) : nullptr;
    if (segment != nullptr) CountObsolete(segment, pointer, *entry);
  }
  if (!BRAIDDB_MUTANT("level-mark-not-flushed")) regions_.persistence()->Flush(&entry->next[0], sizeof(uint64_t));
  ++stats_.flushed_lines;
}

}  // namespace braiddb
