// Test support: a last level and tables to merge into it, and what must come of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "compaction/zipper.h"
#include "tests/support/level_store.h"
#include "tests/support/merge_inputs.h"
#include "tests/support/order_of_tables.h"

namespace braiddb::test {

class MergeCase : public MergeInputs {
 public:
  explicit MergeCase(uint32_t regions) : MergeCase(std::make_unique<LevelStore>(regions)) {}

  LevelStore& store() { return *store_; }

  // ---- The merge

  Status Run(const std::vector<uint64_t>& snapshots, PmPtr progress = PmPtr(), MergeStats* stats = nullptr,
             const std::atomic<bool>* stop = nullptr, uint32_t threads = 2) {
    MergeStats ignored;
    const VersionFilter filter(snapshots);
    ZipperContext context = ContextFor(&filter, threads, stop);
    const TallIndex index(store_->l1(), in_last_level().size(), uses_index_ && !progress ? 1 << 20 : 0);
    context.index = &index;
    // Every other merge goes by the order of its tables.
    const bool by_order = !progress && !tables().empty() && merge_id_ % 2 == 0;
    const std::shared_ptr<const TableOrder> order = by_order ? OrderOfTables(*store_, tables()) : nullptr;
    context.order_of_tables = order.get();
    return RunZipper(context, tables(), progress, stats != nullptr ? stats : &ignored);
  }
  Status Sweep(const std::vector<uint64_t>& snapshots, MergeStats* stats) {
    const VersionFilter filter(snapshots);
    return SweepLastLevel(ContextFor(&filter, 1, nullptr), {KeyRange()}, stats);
  }
  // Whether merges from now on have an index of the last level. They do in the beginning, and can only use it with one region.
  void UseIndex(bool uses_index) { uses_index_ = uses_index; }
  // The merges from now on note what they change; null: they do not.
  void NoteIn(IndexChanges* changes) { index_changes_ = changes; }
  // As an open after a crash does: a new journal, the newest batch done again. The next merge of the same tables resumes.
  Status Redo(PmPtr* progress) {
    OpenJournal();
    return journal_.Redo(merge_id_, progress);
  }

  // ---- What must come of it

  void ExpectMerged(const Outcome& outcome) {
    EXPECT_OK(store_->last_level().VerifyHeads());
    EXPECT_TRUE(store_->IsWhole(store_->l1()));
    const std::vector<Version> found = store_->Dump(store_->l1());
    EXPECT_TRUE(found == outcome.last_level) << Difference(outcome.last_level, found);
    for (const uint64_t sequence : outcome.dead) EXPECT_TRUE(store_->IsDead(sequence)) << sequence;
    // Whoever stands on a node of a table still comes to everything behind it.
    for (const PmTable* table : tables()) EXPECT_TRUE(LeadsToEnd(*table));
  }

  // The tables are merged: from now on there is the last level, and no table.
  void Forget(const Outcome& outcome) {
    MergeInputs::Forget(outcome);
    journal_.Begin(++merge_id_);
  }
  // Merges with these snapshots and checks what comes of it.
  void Merge(const std::vector<uint64_t>& snapshots) {
    const Outcome expected = Expected(snapshots);
    MergeStats stats;
    ASSERT_OK(Run(snapshots, PmPtr(), &stats));
    ExpectMerged(expected);
    EXPECT_EQ(stats.merged, expected.merged);
    EXPECT_EQ(stats.dropped, expected.dropped);
    EXPECT_EQ(stats.unlinked, expected.unlinked);
    Forget(expected);
  }
  // Puts these into the last level, all of them but tombstones that hide nothing.
  void FillLastLevel(const std::vector<Version>& versions) {
    AddTable(versions);
    std::vector<uint64_t> everything;
    for (const Version& version : in_tables()) everything.push_back(version.sequence);
    Merge(everything);
  }

 private:
  explicit MergeCase(std::unique_ptr<LevelStore> store) : MergeInputs(store.get()), store_(std::move(store)) { OpenJournal(); }
  ZipperContext ContextFor(const VersionFilter* filter, uint32_t threads, const std::atomic<bool>* stop) {
    return {store_->regions(),
            &store_->order(),
            store_->segments(),
            &store_->l1(),
            in_last_level().size(),
            &journal_,
            filter,
            threads,
            stop,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            index_changes_};
  }
  void OpenJournal() {
    journal_ = MergeJournal();
    EXPECT_OK(MergeJournal::Open(store_->regions(), &journal_));
    journal_.Begin(merge_id_);
  }
  bool LeadsToEnd(const PmTable& table) const {
    const LogEntry* before = nullptr;
    for (const LogEntry* entry = table.list.First(); entry != nullptr; entry = table.list.Next(entry)) {
      if (before != nullptr && CompareEntries(store_->order(), *before, *entry) >= 0) return false;
      before = entry;
    }
    return true;
  }

  const std::unique_ptr<LevelStore> store_;
  MergeJournal journal_;
  bool uses_index_ = true;
  IndexChanges* index_changes_ = nullptr;
  uint64_t merge_id_ = 1;
};

}  // namespace braiddb::test
