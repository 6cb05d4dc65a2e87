// The construction of iterators: the snapshot, the cursors over all levels, bounds and the prefix.
#include <algorithm>
#include <new>
#include <utility>

#include "db/db_iterator.h"
#include "db/error_iterator.h"
#include "db/timestamped_entry.h"
#include "lsm/merging_cursor.h"
#include "skiplist/braided_cursor.h"

namespace braiddb {
namespace {

// Entries that all cursors together fetch ahead, about.
constexpr size_t kAhead = 32;
// All levels are one cursor, unless the last level has so many times more entries than the others. Then two cursors take less
// time, since most steps of the last level's do not look at the other one.
constexpr uint64_t kTimesBelow = 8;

// The smallest string that is greater than every string with this prefix; false if there is none.
bool PrefixEnd(std::string prefix, std::string* end) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return false;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  *end = std::move(prefix);
  return true;
}

// Whether memtables and L0 are one cursor. Not if keys are alike, as a cursor over many arrays then compares more entries. Not if
// there is a single array, which would slow down the cursor of the last level.
bool IsOneCursorBetter(const std::vector<OrderedArray>& memtables, const FamilyView& levels) {
  size_t arrays = memtables.size();
  if (std::ranges::any_of(memtables, &OrderedArray::IsAlike)) return false;
  for (const auto& [order, tables] : levels.orders) {
    if (order == nullptr) continue;
    if (order->array().IsAlike()) return false;
    ++arrays;
  }
  return arrays > 1;
}

}  // namespace

std::unique_ptr<Iterator> DBImpl::NewIterator(const ReadOptions& options) { return MakeIterator(options, default_family_); }

std::unique_ptr<Iterator> DBImpl::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return std::make_unique<ErrorIterator>(status);
  return MakeIterator(options, *known);
}

std::unique_ptr<Iterator> DBImpl::MakeIterator(const ReadOptions& options, const Family& family) {
  if (options.timestamp.has_value() || options.iter_start_ts.has_value())
    return std::make_unique<ErrorIterator>(TakesNoTimestamp(family.name));
  if (live_reader_ != nullptr) live_reader_->NoteIterator();
  if (!iterator_came_.load(std::memory_order_relaxed)) iterator_came_.store(true, std::memory_order_relaxed);
  uint64_t sequence = 0;
  if (options.snapshot != nullptr) {
    // Registered once more, so that the snapshot may be released before the iterator.
    sequence = options.snapshot->GetSequenceNumber();
    snapshots_.RegisterAgain(sequence);
  } else {
    sequence = RegisterSnapshot();
  }
  // The view is taken after the sequence number: it holds everything that the number covers.
  SnapshotRegistration registration(&snapshots_, sequence);
  std::shared_ptr<const ReadView> view;
  std::shared_ptr<const RangeTombstones> ranges;
  uint64_t pin = 0;
  {
    const auto guard = epochs_.Enter();
    if (const RangeTombstones* const now = family.ranges.load(std::memory_order_acquire)) ranges = now->shared_from_this();
    view = view_.load(std::memory_order_acquire)->shared_from_this();
    pin = epochs_.Pin();
  }
  const auto unpin = [this](const uint64_t* pinned) { epochs_.Unpin(*pinned); };
  std::unique_ptr<const uint64_t, decltype(unpin)> pinned(&pin, unpin);
  auto iterator = std::make_unique<DBIterator>(this, family, std::move(view), std::move(ranges), options, sequence, pin);
  registration.Leave();  // the iterator's from here on
  (void)pinned.release();
  if (options.prefix_same_as_start) iterator->StayInPrefix(options_.prefix_extractor);
  return iterator;
}

std::unique_ptr<DBIterator> DBIterator::Again(const ReadOptions& options) const {
  db_->snapshots_.RegisterAgain(sequence_);
  SnapshotRegistration registration(&db_->snapshots_, sequence_);
  const uint64_t pin = db_->epochs_.Pin();
  const auto unpin = [this](const uint64_t* pinned) { db_->epochs_.Unpin(*pinned); };
  std::unique_ptr<const uint64_t, decltype(unpin)> pinned(&pin, unpin);
  auto iterator = std::make_unique<DBIterator>(db_, family_, view_, ranges_, options, sequence_, pin);
  registration.Leave();  // the iterator's from here on
  (void)pinned.release();
  if (extractor_ != nullptr) iterator->StayInPrefix(extractor_);
  return iterator;
}

DBIterator::DBIterator(DBImpl* db, const Family& family, std::shared_ptr<const ReadView> view,
                       std::shared_ptr<const RangeTombstones> ranges, const ReadOptions& options, uint64_t sequence, uint64_t pin)
    : db_(db),
      family_(family),
      order_(family.order),
      view_(std::move(view)),
      ranges_(std::move(ranges)),
      sequence_(sequence),
      verify_(options.verify_checksums),
      most_skipped_(options.max_skippable_internal_keys),
      pin_(pin),
      turns_(&order_) {
  const auto add = [this](std::unique_ptr<EntryCursor> cursor, const PmTable* table = nullptr, bool is_list = false) {
    children_.push_back({std::move(cursor), nullptr, 0, is_list, table});
  };
  constexpr size_t kUsual = 4;
  children_.reserve(kUsual);
  const FamilyView& levels = *view_->Of(family.id);
  std::vector<OrderedArray> arrays;
  arrays.reserve(levels.orders.size() + kUsual);
  size_t memtable_arrays = 0;
  const auto add_arrays = [&](const PmTable* table = nullptr, std::unique_ptr<EntryCursor> level = nullptr) {
    if (arrays.empty()) return;
    const size_t level_parts = arrays.size() - memtable_arrays + (level == nullptr ? 0 : 1);
    add(std::make_unique<MergingCursor>(db->regions_.get(), &order_, std::move(arrays), std::move(level)), table);
    children_.back().memtable_parts = std::exchange(memtable_arrays, 0);
    children_.back().level_parts = level_parts;
    arrays.clear();
  };
  std::vector<std::unique_ptr<EntryCursor>> memtables;
  const auto add_memtable = [&](const Memtable& set) {
    if (const Memtable* const memtable = set.Of(family.id)) memtable->AddCursors(&memtables, &arrays);
  };
  add_memtable(*view_->active);
  for (const auto& memtable : view_->immutables) add_memtable(*memtable);
  for (auto& cursor : memtables) {
    add(std::move(cursor));
    children_.back().memtable_parts = std::exchange(children_.back().level_parts, 0);
  }
  memtable_arrays = arrays.size();
  // With a merge operator, a cursor over several levels would not give the versions in the order of the levels.
  const bool remember_operands = family.options.merge_operator != nullptr;
  if (remember_operands || verify_ || !IsOneCursorBetter(arrays, levels)) add_arrays();
  size_t first = 0;
  for (const auto& [order, tables] : levels.orders) {
    const PmTable* const table = levels.l0[first].get();
    if (order != nullptr) {
      arrays.push_back(order->array());
      if (remember_operands) add_arrays(tables == 1 ? table : nullptr);
    } else {
      add(std::make_unique<BraidedCursor>(&table->list, nullptr), table, true);
      lists_.push_back(&table->list);
    }
    first += tables;
  }
  std::unique_ptr<EntryCursor> level = levels.l1->NewCursor();
  uint64_t above = 0;
  for (const OrderedArray& array : arrays) above += array.size;
  const uint64_t below = level->gives_items() ? level->entries() : 0;
  // Who verifies that each entry of a cursor is behind the one before would take copies for damage.
  const bool is_one = above > 0 && below > 0 && above >= below / kTimesBelow && !verify_;
  add_arrays(nullptr, is_one ? std::move(level) : nullptr);
  if (level != nullptr) add(std::move(level));
  turns_.Reserve(children_.size());
  SetReadAhead();
  SetBounds(options);
  is_plain_ = !verify_ && most_skipped_ == 0 && ranges_ == nullptr;
  if (has_upper_) {
    const uint64_t end = order_.Prefix(upper_);
    is_plain_ &= end > 0;
    plain_until_ = end - 1;
  }
  // The last thing, for which there is the destructor: MakeCurrent needs the family in the view of now.
  family_.handles.fetch_add(1, std::memory_order_relaxed);
}

// A child of fork(2) takes no lock, which a thread of the parent may have held at the fork. So what the iterator holds stays.
DBIterator::~DBIterator() {
  children_.clear();
  if (__builtin_expect(db_->fork_mark_.is_in_child(), 0)) {
    (void)new (std::nothrow) std::shared_ptr<const ReadView>(view_);
    return;
  }
  family_.handles.fetch_sub(1, std::memory_order_release);
  db_->epochs_.Unpin(pin_);
  db_->snapshots_.Unregister(sequence_);
}

// By how often each is likely to be asked.
void DBIterator::SetReadAhead() {
  uint64_t entries = 1;
  for (const Child& child : children_) entries += child.cursor->entries();
  for (Child& child : children_) {
    const size_t share = kAhead * child.cursor->entries() / entries;
    child.cursor->SetReadAhead(std::clamp<size_t>(share, 2, kAhead));
  }
}

void DBIterator::SetBounds(const ReadOptions& options) {
  if (options.iterate_lower_bound) {
    has_lower_ = true;
    lower_.assign(*options.iterate_lower_bound);
  }
  if (options.iterate_upper_bound) {
    has_upper_ = true;
    upper_.assign(*options.iterate_upper_bound);
  }
  if (!options.prefix || options.prefix->empty()) return;
  if (order_.comparator() != BytewiseComparator()) {
    status_ = Status::NotSupported("ReadOptions::prefix needs the bytewise comparator; use bounds instead");
    return;
  }
  std::string end;
  if (!has_lower_ || order_.Compare(lower_, *options.prefix) < 0) lower_.assign(*options.prefix);
  has_lower_ = true;
  if (PrefixEnd(std::string(*options.prefix), &end) && (!has_upper_ || order_.Compare(end, upper_) < 0)) {
    upper_ = std::move(end);
    has_upper_ = true;
  }
}

void DBIterator::StayInPrefix(std::shared_ptr<const SliceTransform> extractor) {
  extractor_ = std::move(extractor);
  is_plain_ &= extractor_ == nullptr;
}

}  // namespace braiddb
