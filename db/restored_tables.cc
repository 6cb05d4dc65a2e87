// Restored tables of L0 get what a flush gives its tables: a hash index, in which lookups find the entries, and an order, which
// iterators follow.
//
// GOAL   A get costs the same after an open as before it. Until then each restored table costs a get a search of its list.
// STEPS  1 choose some tables, the newest first, since their entries hide those of older tables  2 walk along the list of each,
//        from the oldest table to the newest: in an index, newer tables have larger columns  3 install a view that has the
//        orders and groups the tables by their index.
// WHY A WALK ENDS IN ITS TABLE  A merge leads the lists of its tables into the last level. Merges are made under
//        compaction_mutex_, which the caller holds. While an unfinished merge waits to be resumed nothing is walked.
// WHY HIDDEN VERSIONS NEED NO PLACE IN THE INDEX  No snapshot is older than the open, so nobody asks for a version that a newer
//        one of the table hides. As in a flush, that keeps the index small where a key has many merge operands.
// WHAT A CRASH LEAVES  Nothing: all of it is in DRAM.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "db/db_impl.h"
#include "index/key_hash.h"
#include "skiplist/braided_cursor.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Tables are indexed together up to so many entries, unless one table has more.
constexpr uint64_t kEntriesTogether = 1 << 18;
// Between two looks at whether the database is being closed.
constexpr uint64_t kEntriesPerStop = 1 << 10;

}  // namespace

// Oldest first. Empty: no restored table waits.
std::vector<std::shared_ptr<PmTable>> DBImpl::ChooseRestoredTables(const ReadView& view) {
  std::vector<std::shared_ptr<PmTable>> waiting;
  view.ForEach([&waiting](uint32_t, const FamilyView& levels) {
    for (const auto& table : levels.l0) {
      if (table->waits_for_index) waiting.push_back(table);
    }
  });
  // Stable: tables of one family that have the same id stay in their order.
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a->id() > b->id(); });
  size_t count = 0;
  uint64_t entries = 0;
  while (count < std::min<size_t>(waiting.size(), L0Index::kMaxTables)) {
    entries += waiting[count]->entries;
    if (count > 0 && entries > kEntriesTogether) break;
    ++count;
  }
  waiting.resize(count);
  std::reverse(waiting.begin(), waiting.end());
  return waiting;
}

// Null: the list is damaged, there is no memory, or the database is being closed. What was added to the index does not count
// then.
std::shared_ptr<const TableOrder> DBImpl::WalkTable(const PmTable& table, L0IndexWriter* index) const {
  const KeyOrder& order = FindFamily(table.family())->order;
  auto in_order = std::make_shared<TableOrder>(table.entries);
  index->Begin(table.entries, order);
  BraidedCursor cursor(&table.list, nullptr);
  const LogEntry* before = nullptr;
  bool is_hidden = false;
  cursor.SeekToFirst();
  for (uint64_t i = 0; cursor.entry() != nullptr; ++i, cursor.Next()) {
    const LogEntry* const entry = cursor.entry();
    if (i % kEntriesPerStop == 0 && stopping_.load(std::memory_order_acquire)) return nullptr;
    const PmPtr place = regions_->Find(entry);
    if (!place || entry->height() > kMaxHeight ||
        !regions_->Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8)) ||
        (before != nullptr && CompareEntries(order, *before, *entry) >= 0)) {
      return nullptr;
    }
    const bool is_older = before != nullptr && order.Same(before->key(), entry->key());
    is_hidden = is_older && (is_hidden || !before->is_dead());
    // Not whole: an older table may be one of copies, with newer versions.
    in_order->Append(order.Prefix(entry->key()), place, is_older, false);
    if (!is_hidden) index->Add(KeyHash(*entry), place);
    before = entry;
  }
  bool is_sound = !regions_->damage_seen() && in_order->Finish(*regions_, order);
  BRAIDDB_SYNC_POINT_ARG("DBImpl::WalkTable:Walked", &is_sound);
  return is_sound ? in_order : nullptr;
}

// REQUIRES: compaction_mutex_
bool DBImpl::IndexRestoredTables(std::chrono::steady_clock::duration at_least) try {
  if (!tables_wait_for_index_ || resume_merge_.load(std::memory_order_acquire)) return false;
  bool is_put_off = false;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::IndexRestoredTables", &is_put_off);
  if (is_put_off) return false;
  const auto start = std::chrono::steady_clock::now();
  do {
    const PinnedView pinned(this);
    const std::vector<std::shared_ptr<PmTable>> tables = ChooseRestoredTables(pinned.view());
    tables_wait_for_index_ = !tables.empty();
    if (tables.empty()) {
      NotifyWork();  // the flush thread merges the orders
      return false;
    }
    uint64_t entries = 0;
    for (const auto& table : tables) entries += table->entries;
    const uint64_t usual = std::max<uint64_t>(1, entries / tables.size());
    std::optional<L0IndexWriter> index(std::in_place, regions_.get(), usual);
    std::vector<std::pair<std::shared_ptr<PmTable>, std::shared_ptr<const TableOrder>>> walked;
    for (const auto& table : tables) {
      table->waits_for_index = false;
      std::shared_ptr<const TableOrder> order = WalkTable(*table, &*index);
      if (stopping_.load(std::memory_order_acquire)) return false;
      if (order == nullptr) {  // it stays a list; its column has a part of it, and is no other table's
        index.emplace(regions_.get(), usual);
        continue;
      }
      table->SetIndex(index->Finish());
      walked.emplace_back(table, std::move(order));
    }
    std::lock_guard lock(view_mutex_);
    auto view = std::make_shared<ReadView>(*current_view_);
    for (auto& [table, order] : walked) {
      if (view->Of(table->family()) == nullptr) continue;  // the family was dropped meanwhile
      view->Alter(table->family(), [&](FamilyView* levels) { levels->SetOrder(*table, std::move(order)); });
    }
    InstallView(view);
  } while (std::chrono::steady_clock::now() - start < at_least);
  return true;
} catch (const std::bad_alloc&) {
  tables_wait_for_index_ = false;  // reads are right without it
  return false;
}

}  // namespace braiddb
