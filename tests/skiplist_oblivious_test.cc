// Lists whose upper layers link entries of all regions: searches find the same, by ways that are as remote as the entries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "skiplist/braided_cursor.h"
#include "skiplist/fetch_paths.h"
#include "skiplist/tall_index.h"
#include "tests/support/entry_store.h"

namespace braiddb::test {
namespace {

constexpr uint32_t kRegions = 4;
constexpr size_t kEntries = 8000;

// The same entries, in a list of either kind.
class ListOf {
 public:
  explicit ListOf(ListKind lists) : store_(kRegions, PersistMode::kEmulated, lists) {
    Random random(17);
    uint64_t sequence = 1;
    versions_ = InEntryOrder(store_.DrawVersions(&random, kEntries, kEntries, 8, &sequence));
    table_ = store_.MakeTable(versions_);
  }

  EntryStore& store() { return store_; }
  const BraidedList& list() const { return table_->list; }
  const std::vector<Version>& versions() const { return versions_; }
  // What a search for a version comes upon that a reader in this region makes, from the head or from the index.
  LookupTrace Trace(const Version& version, uint32_t reader, const TallIndex* index) const {
    LookupTrace trace;
    const SearchKey target(store_.order(), version.key, version.sequence);
    const BraidedList::Start start =
        index != nullptr ? index->Start(reader, target) : list().HeadOf(store_.regions()->ListRegion(reader), reader);
    const LogEntry* const found = list().FindFrom(start, target, &trace);
    EXPECT_EQ(found, store_.Resolve(store_.Find(version.sequence)));
    return trace;
  }
  // The mean over all versions.
  double RemoteVisits(uint32_t reader, double* share) const {
    uint64_t local = 0, remote = 0;
    for (const Version& version : versions_) {
      const LookupTrace trace = Trace(version, reader, nullptr);
      local += trace.local;
      remote += trace.remote;
    }
    *share = static_cast<double>(remote) / static_cast<double>(local + remote);
    return static_cast<double>(remote) / static_cast<double>(versions_.size());
  }

 private:
  EntryStore store_;
  std::vector<Version> versions_;
  std::shared_ptr<PmTable> table_;
};

// With n regions (n - 1) / n of all visits are remote, whichever reader it is; of a braided list's only those at the bottom are,
// and where a search ends. A tower that all searches visit counts much, and there are few of them: the readers' shares differ,
// and add up to n - 1.
TEST(ObliviousList, VisitsAreAsRemoteAsEntriesAre) {
  const ListOf oblivious(ListKind::kOblivious), braided(ListKind::kBraided);
  double sum = 0, of_oblivious = 0, of_braided = 0, share = 0;
  for (uint32_t reader = 0; reader < kRegions; ++reader) {
    of_oblivious += oblivious.RemoteVisits(reader, &share);
    EXPECT_NEAR(share, (kRegions - 1.0) / kRegions, 0.2) << reader;
    sum += share;
    of_braided += braided.RemoteVisits(reader, &share);
    std::printf("reader in region %u: %.0f %% of a braided list's visits remote\n", reader, 100 * share);
    EXPECT_LT(share, 0.5) << reader;
  }
  std::printf("remote visits for a search: %.2f oblivious, %.2f braided\n", of_oblivious / kRegions, of_braided / kRegions);
  EXPECT_NEAR(sum, kRegions - 1.0, 1e-6) << "each visit is local to one of them";
  // At the bottom of a braided list, some kRegions * kBranching steps are made.
  EXPECT_LT(of_braided / kRegions, 1.5 * kRegions * kBranching);
  EXPECT_LT(1.5 * of_braided, of_oblivious);
}

TEST(ObliviousList, ItsListsAreRegionZerosAlone) {
  ListOf oblivious(ListKind::kOblivious);
  EXPECT_TRUE(oblivious.store().IsWhole(oblivious.list()));
  EXPECT_EQ(oblivious.store().Dump(oblivious.list()), oblivious.versions());
  for (uint32_t region = 1; region < kRegions; ++region) {
    for (uint32_t layer = 0; layer < kMaxHeight; ++layer) EXPECT_EQ(oblivious.list().head(region)[layer], 0u);
  }
}

// The index over tall nodes has one tree for all readers, whatever room there is for it.
TEST(ObliviousList, SearchesBeginAtTheIndexFromEveryRegion) {
  const ListOf oblivious(ListKind::kOblivious);
  for (const uint64_t bytes : {0ull, 2048ull, 1ull << 20}) {
    const TallIndex index(oblivious.list(), kEntries, bytes);
    uint64_t visits = 0;
    for (uint32_t reader = 0; reader < kRegions; ++reader) {
      EXPECT_EQ(index.size(reader) == 0, bytes == 0);
      for (const Version& version : oblivious.versions()) {
        const LookupTrace trace = oblivious.Trace(version, reader, &index);
        visits += trace.local + trace.remote;
      }
    }
    if (bytes == 1 << 20) {
      EXPECT_LT(visits / (kRegions * kEntries), 6u) << "a node of the index is three entries away";
    }
  }
}

TEST(ObliviousList, CursorsGoThroughAllOfIt) {
  const ListOf oblivious(ListKind::kOblivious);
  const TallIndex index(oblivious.list(), kEntries, 1 << 20);
  for (const TallIndex* its : {static_cast<const TallIndex*>(nullptr), &index}) {
    BraidedCursor cursor(&oblivious.list(), its);
    size_t at = 0;
    for (cursor.SeekToFirst(); cursor.entry() != nullptr; cursor.Next(), ++at)
      ASSERT_EQ(cursor.entry()->sequence(), oblivious.versions()[at].sequence);
    EXPECT_EQ(at, kEntries);
    for (cursor.SeekToLast(); cursor.entry() != nullptr; cursor.Prev())
      ASSERT_EQ(cursor.entry()->sequence(), oblivious.versions()[--at].sequence);
    EXPECT_EQ(at, 0u);
  }
  const Version& middle = oblivious.versions()[kEntries / 2];
  FetchPaths(
      1, [&](size_t) -> const BraidedList& { return oblivious.list(); },
      SearchKey(oblivious.list().order(), middle.key, middle.sequence));
}

}  // namespace
}  // namespace braiddb::test
