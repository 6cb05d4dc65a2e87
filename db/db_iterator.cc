#include "db/db_iterator.h"

#include <algorithm>
#include <utility>

#include "skiplist/fetch_paths.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Versions of one key that are stepped over one by one before a search jumps over the rest.
constexpr int kStepsBeforeSeek = 8;
}  // namespace

// Keys that one movement passes since they are deleted. The database is told of many.
class DBIterator::HiddenKeys {
 public:
  explicit HiddenKeys(DBImpl* db) : db_(db) {}
  HiddenKeys(const HiddenKeys&) = delete;
  HiddenKeys& operator=(const HiddenKeys&) = delete;
  ~HiddenKeys() {
    if (__builtin_expect(count_ >= kMany, 0)) db_->NoteHiddenKeys(count_);
  }
  void Add() { ++count_; }

 private:
  static constexpr uint64_t kMany = 256;
  DBImpl* const db_;
  uint64_t count_ = 0;
};

void DBIterator::KeepPrefixOf(Slice key) {
  if (extractor_ == nullptr) return;
  const LogEntry* const current = std::exchange(current_, nullptr);  // if memory runs out half way
  has_prefix_ = extractor_->InDomain(key);
  if (has_prefix_) prefix_.assign(extractor_->Transform(key));
  current_ = current;
}

void DBIterator::SetPrefixLimit(const std::optional<std::string>& prefix) {
  has_prefix_ = prefix.has_value();
  if (has_prefix_) prefix_ = *prefix;
}

[[gnu::noinline]] bool DBIterator::HasOtherPrefix(Slice key) const {
  return !extractor_->InDomain(key) || extractor_->Transform(key) != prefix_;
}

Slice DBIterator::key() const {
  BRAIDDB_DCHECK(Valid());
  return current_->key();
}

Slice DBIterator::value() const {
  BRAIDDB_DCHECK(Valid());
  return current_->is_operand() ? Slice(merged_value_) : current_->value();
}

const LogEntry* DBIterator::Verified(const LogEntry* entry) {
  if (!status_.ok()) return nullptr;
  status_ = db_->VerifyEntry(entry);
  return status_.ok() ? entry : nullptr;
}

inline void DBIterator::Load(Child* child) {
  child->entry = child->cursor->entry();
  if (verify_ && child->entry != nullptr) child->entry = Verified(child->entry);
  if (child->entry == nullptr) return;
  child->prefix = child->cursor->knows_prefixes() ? child->cursor->prefix() : order_.Prefix(child->entry->key());
}

// The memory of an expired live reader is in other use, and its lists may be circles. The damage that is noted ends all loops.
inline bool DBIterator::GoesInCircles() {
  constexpr uint32_t kStepsBeforeLook = 1024;
  if (__builtin_expect(!db_->is_live_reader() || ++steps_ % kStepsBeforeLook != 0 || db_->IsLive(), 1)) return false;
  db_->regions_->NoteDamage();
  return true;
}

inline void DBIterator::Advance(Child* child) {
  const LogEntry* before = child->entry;
  child->cursor->Next();
  Load(child);
  if (GoesInCircles()) child->entry = nullptr;
  if (!verify_ || child->entry == nullptr || CompareEntries(order_, *before, *child->entry) < 0) return;
  status_ = Status::Corruption("a list is out of order: a pointer is damaged; restore the database from a copy");
  child->entry = nullptr;
}

void DBIterator::FetchForSeek(const SearchKey& target) {
  bool more = false;
  for (Child& child : children_) more |= child.cursor->BeginFetchForSeek(target);
  while (more) {
    more = false;
    for (Child& child : children_) more |= child.cursor->FetchForSeek(target);
  }
  if (lists_.size() < 2) return;
  FetchPaths(
      lists_.size(), [this](size_t i) -> const BraidedList& { return *lists_[i]; }, target);
}

perf::Timer DBIterator::NoteSeek(size_t child) const {
  const auto& [memtable_parts, level_parts] = std::pair(children_[child].memtable_parts, children_[child].level_parts);
  if (memtable_parts != 0) perf::Add(&PerfContext::seek_on_memtable_count, memtable_parts);
  if (level_parts != 0) perf::Add(&PerfContext::seek_child_seek_count, level_parts);
  return perf::Timer(level_parts == 0 ? &PerfContext::seek_on_memtable_time : &PerfContext::seek_child_seek_time);
}

void DBIterator::LeavePosition(Direction direction) {
  current_ = nullptr;
  turns_.Clear();
  has_left_shared_ = false;
  direction_ = direction;
}

void DBIterator::SeekChildren(const SearchKey& target) {
  const perf::Timer all(&PerfContext::seek_internal_seek_time);
  LeavePosition(Direction::kForward);
  FetchForSeek(target);
  for (size_t i = 0; i < children_.size(); ++i) {
    const perf::Timer one = NoteSeek(i);
    children_[i].cursor->Seek(target);
    Load(&children_[i]);
  }
  TakeTurns();
}

void DBIterator::SeekChildrenBefore(const SearchKey& target) {
  const perf::Timer all(&PerfContext::seek_internal_seek_time);
  LeavePosition(Direction::kBackward);
  FetchForSeek(target);
  for (size_t i = 0; i < children_.size(); ++i) {
    const perf::Timer one = NoteSeek(i);
    children_[i].cursor->SeekBefore(target);
    Load(&children_[i]);
  }
}

DBIterator::Child* DBIterator::Last() {
  Child* last = nullptr;
  for (Child& child : children_) {
    if (child.entry == nullptr) continue;
    if (last == nullptr || child.prefix > last->prefix ||
        (child.prefix == last->prefix && CompareEntries(order_, *child.entry, *last->entry) > 0)) {
      last = &child;
    }
  }
  return last;
}

bool DBIterator::SameKey(const Child& child, Slice key, uint64_t prefix) const {
  if (child.entry == nullptr || child.prefix != prefix) return false;
  const Slice own = child.entry->key();
  return own.data() == key.data() || order_.Same(own, key);
}

inline void DBIterator::PassFirst() {
  Child* const child = turns_.first();
  NoteSkipped(*child->entry);
  if (child->is_list) LeaveShared();
  if (LooksAtVersions()) {
    Advance(child);
  } else {
    child->cursor->NextKey();
    Load(child);
  }
  turns_.FirstMoved();
}

void DBIterator::SkipVersions(Slice key, uint64_t prefix) {
  const bool by_version = LooksAtVersions();
  while (!turns_.empty() && SameKey(*turns_.first(), key, prefix)) {
    Child* const child = turns_.first();
    if (child->is_list) LeaveShared();
    for (int steps = 0; SameKey(*child, key, prefix); ++steps) {
      NoteSkipped(*child->entry);
      if (steps < kStepsBeforeSeek && by_version) {
        Advance(child);
        continue;
      }
      if (steps < kStepsBeforeSeek) {
        child->cursor->NextKey();
        Load(child);
        continue;
      }
      if (StandsForOthers(*child)) return SeekAllTo(SearchKey(order_, key, 0));
      const SearchKey behind(order_, key, 0);  // behind all versions
      child->cursor->Seek(behind);
      Load(child);
      if (child->entry == nullptr || CompareEntry(order_, *child->entry, behind) > 0) break;
      db_->regions_->NoteDamage();  // it went in a circle
      child->entry = nullptr;
    }
    turns_.FirstMoved();
  }
}

inline void DBIterator::SkipKey(Slice key, uint64_t prefix) {
  if (!turns_.empty() && turns_.first_prefix() == prefix) SkipVersions(key, prefix);
}

// A dead entry is the answer for no registered snapshot. A cursor can still come upon one: it stood on a node that was unlinked,
// whose pointers stay as they were. Then what hides the entry (a tombstone that was dropped with it) may be out of the cursors'
// sight, so the mark has to be looked at. The mark is set before the pointers that led to the tombstone are turned away from it
// (Merger::MergeKey), and those were loaded with acquire: who missed the tombstone sees the mark.
bool DBIterator::Counts(const LogEntry& entry) const { return entry.sequence() <= sequence_ && !entry.is_dead(); }

bool DBIterator::MetDamage() {
  if (__builtin_expect(!db_->regions_->damage_seen(), 1)) return false;
  if (status_.ok() || is_of_position_) status_ = RegionSet::DamagedList();
  is_of_position_ = false;
  return true;
}

void DBIterator::FailHere(Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  is_of_position_ = true;
}

// The children have been asked, and go on standing where they are if something may be missing: then the view of now has it.
bool DBIterator::MakeCurrent(const LogEntry* newest) {
  if (!status_.ok()) return false;
  const std::shared_ptr<const MergeOperator>& merge = family_.options.merge_operator;
  if (merge == nullptr) {
    FailHere(Status::InvalidArgument("merge_operator_ must be set."));
    return false;
  }
  const Slice key = newest->key();
  size_t applied = 0;
  Status status = merge_.Settle()
                      ? merge_.Apply(*merge, key, &merged_value_, &applied)
                      : db_->ReadMerged(family_, SearchKey(order_, key, sequence_), family_.HashOf(key), verify_, &merged_value_);
  if (status.ok()) current_ = newest;
  if (!status.ok() && !status.IsNotFound()) FailHere(std::move(status));
  return status_.ok() && current_ != nullptr;
}

// A list goes on for those of other tables that have come to it (LeaveShared), from where it stands: the way there from its own
// table's head may lead past what only these have, by entries that a merge dropped. So then a search is made for all.
void DBIterator::SeekAllTo(const SearchKey& target) {
  SeekChildren(target);
  if (turns_.empty()) return;
  const LogEntry& first = *turns_.first()->entry;
  if (CompareEntry(order_, first, target) >= 0) return;
  db_->regions_->NoteDamage();
  turns_.Clear();
}

// Steps over the first child's entry, which does not count; where many versions of a key are newer than the view, jumps over
// these.
void DBIterator::PassUncounted() {
  Child* const child = turns_.first();
  const Slice key = child->entry->key();
  const uint64_t prefix = child->prefix;
  for (int steps = 0; steps < kStepsBeforeSeek; ++steps) {
    if (child->entry->sequence() > sequence_) {
      CountSkipped();
      perf::Add(&PerfContext::internal_recent_skipped_count);
    } else {
      NoteSkipped(*child->entry);
    }
    Advance(child);
    if (!SameKey(*child, key, prefix) || child->entry->sequence() <= sequence_) return turns_.FirstMoved();
  }
  if (StandsForOthers(*child)) return SeekAllTo(SearchKey(order_, key, sequence_));
  const SearchKey target(order_, key, sequence_);
  child->cursor->Seek(target);
  Load(child);
  if (child->entry != nullptr && CompareEntry(order_, *child->entry, target) < 0) {
    db_->regions_->NoteDamage();  // it went in a circle
    child->entry = nullptr;
  }
  turns_.FirstMoved();
}

// What is remembered of a table's operands; the child stays where it is, and SkipKey takes it on. Not where the table's list
// stands for those of others, too (LeaveShared), which have more of the key.
bool DBIterator::AddRunOf(const Child& child, Slice key, uint64_t prefix) {
  if (child.table == nullptr || verify_ || (child.is_list && has_left_shared_) || !SameKey(child, key, prefix)) return false;
  const PmTable& table = *child.table;
  if (sequence_ < table.boundary()) return false;
  std::shared_ptr<const OperandRun> run = table.operand_runs.Find(key);
  if (run == nullptr || !run->is_one) return false;
  merge_.AddRun(std::move(run));
  return true;
}

// With a merge operator no child is of L0 and the last level, or of several tables that remember operands: they are in the order
// of their levels, the newest first. So an older version is looked at, and its mark, after all that a merge may have taken away
// above it. All are asked: a memtable may have several, which share a key's versions in any way.
void DBIterator::CollectForward(Slice key, uint64_t prefix) {
  merge_.Clear(FloorOf(key));
  for (Child& child : children_) {
    if (AddRunOf(child, key, prefix)) continue;
    for (bool more = true; more && SameKey(child, key, prefix); Advance(&child)) {
      if (child.entry->sequence() > sequence_) continue;
      merge_.Add(child.entry);
      more = child.entry->is_operand();
    }
  }
}

void DBIterator::FindForward() {
  current_ = nullptr;
  HiddenKeys hidden(db_);
  while (!GoesInCircles() && !MetDamage() && !turns_.empty() && !GaveUp()) {
    Child* const first = turns_.first();
    const LogEntry* const entry = first->entry;
    if (has_upper_ && order_.Compare(entry->key(), upper_) >= 0) return;
    if (LeavesPrefix(entry->key())) return;
    if (!Counts(*entry)) {
      PassUncounted();
      continue;
    }
    const bool is_hidden = IsHidden(*entry);
    current_prefix_ = first->prefix;
    if (entry->type() == EntryType::kPut && !is_hidden) {
      if (status_.ok()) current_ = entry;
      return;
    }
    const Slice key = entry->key();
    if (entry->is_operand() && !is_hidden) {
      CollectForward(key, current_prefix_);
      TakeTurns();
      if (MetDamage() || MakeCurrent(entry) || !status_.ok()) return;
    }
    hidden.Add();
    SkipKey(key, current_prefix_);
  }
}

inline void DBIterator::CollectVersion(const LogEntry* entry, const LogEntry** newest) {
  if (entry->sequence() <= sequence_) merge_.Add(entry);
  if (Counts(*entry) && (*newest == nullptr || entry->sequence() > (*newest)->sequence())) *newest = entry;
  NoteSkipped(*entry);
}

// The newest version that the view may see is the child's answer; an operand's older versions follow it, down to one that is no
// operand. If the newest one is dead, a newer version of another child hides it, and with it all older ones, or nothing of the
// key is visible.
void DBIterator::CollectBySearch(Child* child, Slice key, uint64_t prefix, const LogEntry** newest) {
  child->cursor->Seek(SearchKey(prefix, key, sequence_));
  Load(child);
  for (bool more = true; more && SameKey(*child, key, prefix);) {
    more = child->entry->is_operand();
    CollectVersion(child->entry, newest);
    if (more) Advance(child);
  }
  child->cursor->SeekBefore(SearchKey(prefix, key, kMaxSequence));
  Load(child);
  if (!SameKey(*child, key, prefix)) return;
  db_->regions_->NoteDamage();  // it went in a circle
  child->entry = nullptr;
}

// The child comes to its last entry before the key.
inline void DBIterator::CollectBackward(Child* child, Slice key, uint64_t prefix, const LogEntry** newest) {
  for (int steps = 0; SameKey(*child, key, prefix); ++steps) {
    if (steps == kStepsBeforeSeek) return CollectBySearch(child, key, prefix, newest);
    CollectVersion(child->entry, newest);
    child->cursor->Prev();
    Load(child);
  }
}

void DBIterator::FindBackward() {
  current_ = nullptr;
  HiddenKeys hidden(db_);
  while (!GoesInCircles() && !MetDamage()) {
    Child* last = Last();
    if (last == nullptr) return;
    const Slice key = last->entry->key();
    const uint64_t prefix = last->prefix;
    if (has_lower_ && order_.Compare(key, lower_) < 0) return;
    if (LeavesPrefix(key)) return;
    const LogEntry* newest = nullptr;
    merge_.Clear(FloorOf(key));
    for (Child& child : children_) CollectBackward(&child, key, prefix, &newest);
    // Looked at once more: while the older versions were collected, a merge may have taken the newer ones away, tombstone and
    // all.
    if (!status_.ok() || MetDamage()) return;
    hidden.Add();  // unless it is shown
    if (newest != nullptr && IsHidden(*newest)) continue;
    if (newest != nullptr && newest->type() == EntryType::kPut && !newest->is_dead()) {
      current_ = newest;
      return;
    }
    if (newest != nullptr && newest->is_operand() && !newest->is_dead() && (MakeCurrent(newest) || !status_.ok())) return;
  }
}

// ---- Movements

void DBIterator::SkippedTooMany() { FailHere(Status::Incomplete("Too many internal keys skipped.")); }  // in RocksDB's words

bool DBIterator::Begin() {
  skipped_ = 0;
  if (is_of_position_) status_ = Status::OK();
  is_of_position_ = false;
  return status_.ok();
}

void DBIterator::NoteArrival() const {
  if (Valid()) perf::Add(&PerfContext::iter_read_bytes, key().size() + value().size());
}

template <class Move>
[[gnu::noinline]] void DBIterator::ObserveSeek(const Move& move) {
  const uint64_t begin_ns = perf::NowNs();
  const uint64_t sought_before = perf::t_context.seek_internal_seek_time;
  move();
  const uint64_t took_ns = perf::NowNs() - begin_ns;
  const uint64_t sought_ns = perf::t_context.seek_internal_seek_time - sought_before;
  if (perf::Times()) perf::t_context.find_next_user_entry_time += took_ns - std::min(took_ns, sought_ns);
  NoteArrival();
  db_->Measure(HistogramKind::kSeekMicros, took_ns);
}

template <class Step>
[[gnu::noinline]] void DBIterator::ObserveStep(const Step& step) {
  const perf::Timer timed(&PerfContext::find_next_user_entry_time);
  step();
  NoteArrival();
}

void DBIterator::SeekToFirst() {
  if (db_->IsObserved()) return ObserveSeek([this] { MoveToFirst(); });
  MoveToFirst();
}

void DBIterator::SeekToLast() {
  if (db_->IsObserved()) return ObserveSeek([this] { MoveToLast(); });
  MoveToLast();
}

void DBIterator::Seek(Slice target) {
  if (db_->IsObserved()) return ObserveSeek([this, target] { MoveTo(target); });
  MoveTo(target);
}

void DBIterator::SeekForPrev(Slice target) {
  if (db_->IsObserved()) return ObserveSeek([this, target] { MoveToOrBefore(target); });
  MoveToOrBefore(target);
}

void DBIterator::Next() {
  if (perf::Counts()) return ObserveStep([this] { StepForward(); });
  if (is_plain_ && direction_ == Direction::kForward) return StepPlainly();
  StepForward();
}

void DBIterator::Prev() {
  if (perf::Counts()) return ObserveStep([this] { StepBackward(); });
  StepBackward();
}

inline void DBIterator::MoveToFirst() {
  if (!Begin()) return;
  has_prefix_ = false;
  if (has_lower_) {
    KeepPrefixOf(lower_);
    SeekChildren(SearchKey(order_, lower_, sequence_));
  } else {
    LeavePosition(Direction::kForward);
    for (Child& child : children_) {
      child.cursor->SeekToFirst();
      Load(&child);
    }
    TakeTurns();
  }
  FindForward();
  if (Valid() && !has_prefix_) KeepPrefixOf(key());
}

inline void DBIterator::MoveToLast() {
  if (!Begin()) return;
  has_prefix_ = false;
  if (has_upper_) {
    KeepPrefixOf(upper_);
    SeekChildrenBefore(SearchKey(order_, upper_, kMaxSequence));
  } else {
    LeavePosition(Direction::kBackward);
    for (Child& child : children_) {
      child.cursor->SeekToLast();
      Load(&child);
    }
  }
  FindBackward();
  if (Valid() && !has_prefix_) KeepPrefixOf(key());
}

inline void DBIterator::MoveTo(Slice target) {
  if (!Begin()) return;
  KeepPrefixOf(target);
  if (has_lower_ && order_.Compare(target, lower_) < 0) target = lower_;
  SeekChildren(SearchKey(order_, target, sequence_));
  FindForward();
}

inline void DBIterator::MoveToOrBefore(Slice target) {
  if (!Begin()) return;
  KeepPrefixOf(target);
  if (has_upper_ && order_.Compare(target, upper_) >= 0) {
    SeekChildrenBefore(SearchKey(order_, upper_, kMaxSequence));
  } else {
    SeekChildrenBefore(SearchKey(order_, target, 0));  // before what follows the last version of target
  }
  FindBackward();
}

inline void DBIterator::StepForward() {
  BRAIDDB_DCHECK(Valid());
  const LogEntry* const passed = current_;
  current_ = nullptr;
  skipped_ = 0;
  if (direction_ == Direction::kBackward) {
    SeekChildren(SearchKey(order_, passed->key(), 0));
  } else {
    if (!turns_.empty() && turns_.first()->entry == passed) PassFirst();
    skipped_ = 0;  // it was shown
    SkipKey(passed->key(), current_prefix_);
  }
  FindForward();
}

// Mostly the child that showed the current key has the next one, too, which is a put.
inline void DBIterator::StepPlainly() {
  BRAIDDB_DCHECK(Valid());
  const LogEntry* const passed = current_;
  current_ = nullptr;  // if memory runs out half way
  if (!turns_.empty() && turns_.first()->entry == passed) {
    Child* const child = turns_.first();
    if (child->is_list) LeaveShared();
    child->cursor->NextKey();
    Load(child);
    const LogEntry* const entry = child->entry;
    if (entry == nullptr || !turns_.FirstMovedTo(child->prefix)) {
      turns_.FirstMoved();
    } else if ((child->prefix != current_prefix_ || !order_.Same(entry->key(), passed->key())) && child->prefix <= plain_until_ &&
               Counts(*entry) && entry->type() == EntryType::kPut && !MetDamage()) {
      current_ = entry;
      current_prefix_ = child->prefix;
      return;
    }
  }
  SkipKey(passed->key(), current_prefix_);
  FindForward();
}

inline void DBIterator::StepBackward() {
  BRAIDDB_DCHECK(Valid());
  const LogEntry* const passed = current_;
  skipped_ = 0;
  if (direction_ == Direction::kForward) SeekChildrenBefore(SearchKey(order_, passed->key(), kMaxSequence));
  FindBackward();
}

}  // namespace braiddb
