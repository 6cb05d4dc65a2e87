// Restored tables of L0 get the structures that a flush gives its tables: a hash index, in which lookups find entries, and a
// sorted run (TableOrder), which iterators follow.
//
// GOAL   A get costs the same after an open as before it. Without the index, each restored table costs a get a search of its
//        list.
// STEPS  1 choose some tables, the newest first, since their entries hide those of older tables  2 walk along the list of each,
//        from the oldest table to the newest: in an index, newer tables have larger columns  3 install a view that has the sorted
//        runs and groups the tables by their index.
// WHY A WALK ENDS IN ITS TABLE  A merge leads the lists of its tables into the last level. Merges are made under
//        compaction_mutex_, which the caller holds. While an unfinished merge waits to be resumed, no table is walked.
// WHY THE INDEX NEED NOT HAVE HIDDEN VERSIONS  No snapshot is older than the open, so no reader needs a version that a newer one
//        of the table hides. As in a flush, the index stays small if a key has many merge operands.
// CRASH  Changes DRAM only.
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

// Tables are indexed together up to this number of entries. A larger table is indexed alone.
constexpr uint64_t kEntriesTogether = 1 << 18;
// The number of entries between two checks whether the database is being closed.
constexpr uint64_t kEntriesPerCheck = 1 << 10;

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

// Adds the table's entries to the index, and returns its sorted run. Null: the list is damaged, there is no memory, or the
// database is being closed. Entries that were added to the index before a failure are without effect.
std::shared_ptr<const TableOrder> DBImpl::WalkTable(const PmTable& table, L0IndexWriter* index) const {
  const KeyOrder& order = FindFamily(table.family())->order;
  auto in_order = std::make_shared<TableOrder>(table.entries, live_heap_.load(std::memory_order_acquire));
  index->Begin(table.entries, order);
  BraidedCursor cursor(&table.list, nullptr);
  const LogEntry* before = nullptr;
  bool is_hidden = false;
  cursor.SeekToFirst();
  for (uint64_t i = 0; cursor.entry() != nullptr; ++i, cursor.Next()) {
    const LogEntry* const entry = cursor.entry();
    if (i % kEntriesPerCheck == 0 && stopping_.load(std::memory_order_acquire)) return nullptr;
    const PmPtr place = regions_->Find(entry);
    if (!place || entry->height() > kMaxHeight ||
        !regions_->Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8)) ||
        (before != nullptr && CompareEntries(order, *before, *entry) >= 0)) {
      return nullptr;
    }
    const bool is_older = before != nullptr && order.Same(before->key(), entry->key());
    is_hidden = is_older && (is_hidden || !before->is_dead());
    // `whole` is false, because an older table may be a table of copies with newer versions.
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
      restored_orders_wait_.store(true, std::memory_order_release);
      NotifyWork();
      return false;
    }
    uint64_t entries = 0;
    for (const auto& table : tables) entries += table->entries;
    const uint64_t usual = std::max<uint64_t>(1, entries / tables.size());
    SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
    std::optional<L0IndexWriter> index(std::in_place, regions_.get(), usual);
    index->Share(heap);
    std::vector<std::pair<std::shared_ptr<PmTable>, std::shared_ptr<const TableOrder>>> walked;
    for (const auto& table : tables) {
      table->waits_for_index = false;
      std::shared_ptr<const TableOrder> order = WalkTable(*table, &*index);
      if (stopping_.load(std::memory_order_acquire)) return false;
      if (order == nullptr) {  // the table stays without an index; its column is incomplete and is not used
        index.emplace(regions_.get(), usual);
        index->Share(heap);
        continue;
      }
      table->SetIndex(index->Finish());
      walked.emplace_back(table, std::move(order));
    }
    std::lock_guard lock(view_mutex_);
    auto view = std::make_shared<ReadView>(*current_view_);
    for (auto& [table, order] : walked) {
      if (view->Of(table->family()) == nullptr) continue;  // the family was dropped concurrently
      view->Alter(table->family(), [&](FamilyView* levels) { levels->SetOrder(*table, std::move(order)); });
    }
    InstallView(view);
  } while (std::chrono::steady_clock::now() - start < at_least);
  return true;
} catch (const std::bad_alloc&) {
  tables_wait_for_index_ = false;  // reads are right without the index
  return false;
}

}  // namespace braiddb
