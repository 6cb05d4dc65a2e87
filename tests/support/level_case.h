// Test support: a last level of any kind, behind its interface, and tables to merge into it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "compaction/last_level.h"
#include "skiplist/braided_skiplist.h"
#include "tests/support/merge_inputs.h"
#include "tests/support/order_of_tables.h"
#include "tests/support/same_index.h"

namespace braiddb::test {

struct LevelShape {
  L1Kind kind;
  uint32_t regions;
  ListKind lists = ListKind::kBraided;
};
inline void PrintTo(const LevelShape& shape, std::ostream* out) {
  *out << NameOfL1(static_cast<uint8_t>(shape.kind)).substr(1) << shape.regions << (shape.regions == 1 ? "Region" : "Regions")
       << (shape.lists == ListKind::kOblivious ? "Oblivious" : "");
}

class LevelCase : public MergeInputs {
 public:
  explicit LevelCase(const LevelShape& shape)
      : LevelCase(std::make_unique<EntryStore>(shape.regions, PersistMode::kEmulated, shape.lists), shape) {}

  EntryStore& store() { return *store_; }
  const LastLevel& level() const { return *level_; }

  // As after a crash that loses nothing but DRAM. Regions stay mapped, so that the tables do.
  void Restart() { ASSERT_OK(TryRestart()); }
  Status TryRestart() {
    level_.reset();
    epochs_ = std::make_unique<EpochManager>();
    if (copies()) store_->ReopenSegments();
    Status status = LastLevel::Open(options_, Parts(), running_ ? job_ : 0, &level_);
    if (!status.ok() || !copies()) return status;
    // As the open of a database does.
    std::vector<Segment*> unowned;
    store_->segments()->ForEachIndex([&](Segment* segment) {
      if (!level_->Owns(segment)) unowned.push_back(segment);
    });
    for (Segment* const segment : unowned) {
      if (status.ok()) status = store_->segments()->Release(segment);
    }
    return status;
  }
  // For tests with very many entries: runs take segments of their own.
  void UseLargeRuns() {
    run_bytes_ = 64 << 10;
    if (copies()) Restart();
  }
  // Where the level has this version.
  PmPtr PlaceOf(const Version& version) const {
    if (!copies()) return store_->Find(version.sequence);
    const auto cursor = level_->View()->NewCursor();
    cursor->Seek(SearchKey(store_->order(), version.key, version.sequence));
    return store_->regions()->Find(cursor->entry());
  }
  // Whether entries of the level are copies of those that were written.
  bool copies() const { return FindLevelKind(options_.l1)->copies_entries; }
  Status Close() { return level_->Close(); }

  // ---- Jobs. One that does not end well is running until it is given again and does.

  Status Run(const std::vector<uint64_t>& snapshots, MergeStats* stats = nullptr, const std::atomic<bool>* stop = nullptr,
             uint32_t threads = 2) {
    MergeStats ignored;
    const VersionFilter filter(snapshots);
    MergeJob job = Job(&filter, stop, threads);
    // Every other job, if it is no resumed one, knows the order of its tables.
    if (!running_ && !tables().empty() && job_ % 2 == 0) job.order = OrderOfTables(*store_, tables());
    running_ = true;
    const Status status = level_->Merge(job, tables(), stats != nullptr ? stats : &ignored);
    if (status.ok()) EndJob();
    return status;
  }
  Status Sweep(const std::vector<uint64_t>& snapshots, const KeyRanges& ranges, MergeStats* stats) {
    const VersionFilter filter(snapshots);
    running_ = true;
    const Status status = level_->Sweep(Job(&filter, nullptr, 1), ranges, stats);
    if (status.ok()) EndJob();
    return status;
  }
  // Of the jobs from now on; null: none. What they drop is not in Expected.
  void FilterBy(EntryFilterSource* entry_filters) { entry_filters_ = entry_filters; }
  // Merges, and checks what comes of it.
  void Merge(const std::vector<uint64_t>& snapshots, uint32_t threads = 2) {
    const Outcome expected = Expected(snapshots);
    const uint64_t dead = DeadCounted();
    MergeStats stats;
    const uint64_t in_the_tables = in_tables().size();
    ASSERT_OK(Run(snapshots, &stats, nullptr, threads));
    ExpectMerged(expected);
    EXPECT_EQ(stats.merged, expected.merged);
    EXPECT_EQ(stats.dropped, expected.dropped);
    EXPECT_EQ(stats.unlinked, expected.unlinked);
    EXPECT_EQ(DeadCounted() - dead, copies() ? in_the_tables : expected.dead.size());
    const auto list = std::dynamic_pointer_cast<const BraidedSkipList>(level_->View());
    EXPECT_TRUE(list == nullptr || HaveSameNodes(list->index(), TallIndex(list->list(), indexed_, options_.l1_index_size),
                                                 list->list().regions().count()));
    Forget(expected);
  }
  // Puts these into the level, all of them but tombstones that hide nothing.
  void Fill(const std::vector<Version>& versions) {
    AddTable(versions);
    std::vector<uint64_t> everything;
    for (const Version& version : in_tables()) everything.push_back(version.sequence);
    Merge(everything);
  }

  // ---- Looking

  std::vector<Version> Forward() const {
    std::vector<Version> versions;
    const auto cursor = level_->View()->NewCursor();
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next()) versions.push_back(VersionOf(cursor->entry()));
    return versions;
  }
  std::vector<Version> Backward() const {
    std::vector<Version> versions;
    const auto cursor = level_->View()->NewCursor();
    for (cursor->SeekToLast(); cursor->entry() != nullptr; cursor->Prev()) versions.push_back(VersionOf(cursor->entry()));
    std::reverse(versions.begin(), versions.end());
    return versions;
  }
  Version VersionOf(const LogEntry* entry) const { return store_->VersionAt(store_->regions()->Find(entry)); }

  void ExpectMerged(const Outcome& outcome) {
    if (options_.l1 == L1Kind::kBraidedSkipList) ExpectWholeList();
    const std::vector<Version> forward = Forward();
    EXPECT_TRUE(forward == outcome.last_level) << Difference(outcome.last_level, forward);
    EXPECT_EQ(Backward(), forward);
    for (const uint64_t sequence : outcome.dead)
      EXPECT_TRUE(copies() ? store_->IsObsolete(sequence) : store_->IsDead(sequence)) << sequence;
    for (const Version& version : outcome.last_level) EXPECT_FALSE(store_->IsDead(version.sequence)) << version.sequence;
  }

  // What a reader at this sequence number finds, in the tables and the level together: a number, or nothing.
  std::optional<uint64_t> Read(const std::string& key, uint64_t sequence) const {
    const SearchKey target(store_->order(), key, sequence);
    const auto guard = epochs_->Enter();
    const LogEntry* entry = nullptr;
    LookupTrace trace;
    for (size_t i = tables().size(); i-- > 0 && entry == nullptr;) entry = tables()[i]->list.Find(target, &trace);
    if (entry == nullptr) entry = level_->View()->Find(target, &trace);
    if (entry == nullptr || entry->type() == EntryType::kDelete) return std::nullopt;
    return entry->sequence();
  }
  // … and what it should find.
  std::optional<uint64_t> ExpectedRead(const std::string& key, uint64_t sequence) const {
    const Version* newest = nullptr;
    for (const auto* versions : {&in_last_level(), &in_tables()}) {
      for (const Version& version : *versions) {
        if (version.key != key || version.sequence > sequence) continue;
        if (newest == nullptr || version.sequence > newest->sequence) newest = &version;
      }
    }
    if (newest == nullptr || newest->tombstone) return std::nullopt;
    return newest->sequence;
  }
  testing::AssertionResult ReadsAreRight(const std::vector<std::string>& keys, const std::vector<uint64_t>& sequences) const {
    for (const uint64_t sequence : sequences) {
      for (const std::string& key : keys) {
        const auto found = Read(key, sequence), expected = ExpectedRead(key, sequence);
        if (found == expected) continue;
        return testing::AssertionFailure() << Printable(key) << " at " << sequence << ": found " << found.value_or(0)
                                           << ", expected " << expected.value_or(0);
      }
    }
    return testing::AssertionSuccess();
  }

  bool running() const { return running_; }

 private:
  LevelCase(std::unique_ptr<EntryStore> store, const LevelShape& shape) : MergeInputs(store.get()), store_(std::move(store)) {
    options_.l1 = shape.kind;
    options_.nv_leaf_size = 512;
    options_.l1_index_size = 1 << 16;
    options_.recovery_threads = 2;
    // Space that is known when a power cut begins to watch.
    for (uint32_t region = 0; copies() && region < shape.regions; ++region) store_->segments()->PrepareSpares(region, kSpares);
    EXPECT_OK(LastLevel::Create(options_, store_->regions(), store_->segments()));
    EXPECT_OK(TryRestart());
  }
  uint64_t DeadCounted() const {
    uint64_t dead = 0;
    store_->segments()->ForEachLog([&](Segment* segment) { dead += segment->dead_entries; });
    return dead;
  }
  // On all layers.
  void ExpectWholeList() const {
    std::shared_ptr<const BraidedSkipList> list;
    ASSERT_OK(BraidedSkipList::Open(store_->regions(), &store_->order(), &list));
    EXPECT_OK(list->VerifyHeads());
    EXPECT_TRUE(store_->IsWhole(list->list()));
  }
  LastLevel::Parts Parts() {
    return {store_->regions(), store_->segments(), epochs_.get(), &store_->order(), {}, nullptr, run_bytes_};
  }
  MergeJob Job(const VersionFilter* filter, const std::atomic<bool>* stop, uint32_t threads) const {
    return {job_, in_last_level().size(), filter, threads, stop, nullptr, nullptr, entry_filters_};
  }
  void EndJob() {
    running_ = false;
    while (copies() && epochs_->Reclaim() > 0) {
    }
    ++job_;
    indexed_ = in_last_level().size() + in_tables().size();
    level_->Refresh(indexed_);
  }

  static constexpr uint32_t kSpares = 8;

  const std::unique_ptr<EntryStore> store_;
  Options options_;
  std::unique_ptr<EpochManager> epochs_;
  std::unique_ptr<LastLevel> level_;
  EntryFilterSource* entry_filters_ = nullptr;
  uint64_t job_ = 1;
  bool running_ = false;
  uint64_t run_bytes_ = 8192;
  uint64_t indexed_ = 0;  // entries, when the level was refreshed last
};

}  // namespace braiddb::test
