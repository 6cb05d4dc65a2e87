// Braiding keeps a reader in its own region: how many nodes of other regions a Get visits does not depend on how many there are.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "log/log_entry.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

constexpr uint32_t kRegions = 2;

class DbBraidTest : public testing::Test {
 protected:
  struct Visits {
    double local = 0;
    double remote = 0;
  };

  // A database of `count` random keys, each of which is in region `region_of(its number)`, all in one table.
  template <class RegionOf>
  void Fill(uint64_t count, const RegionOf& region_of, ListKind lists = ListKind::kBraided) {
    db_.reset();
    Options options = TinyOptions(kRegions);
    ASSERT_OK(DB::Destroy(options, directory_.File("db")));
    options.memtable_size = 1ull << 30;
    options.memtable_max_entries = 1 << 30;
    options.disable_auto_compaction = true;
    options.list_kind = lists;
    if (l1_index_size_) options.l1_index_size = *l1_index_size_;
    db_ = OpenOrFail(options, directory_.File("db"));
    keys_.clear();
    for (uint64_t i = 0; i < count; ++i) keys_.push_back(random_.Bytes(16));
    InEachRegion([&](uint32_t region) {
      for (uint64_t i = 0; i < count; ++i) {
        if (region_of(i) == region) {
          ASSERT_OK(db_->Put({}, keys_[i], "v"));
        }
      }
    });
  }

  // Runs `work(region)` on a thread at home in each region.
  template <class Work>
  void InEachRegion(const Work& work) {
    bool seen[kRegions] = {};
    std::vector<std::thread> waiting;  // a thread that has not ended keeps its place
    std::atomic<bool> done{false};
    std::atomic<uint32_t> home{0};
    for (int attempts = 0; attempts < 64 && !(seen[0] && seen[1]); ++attempts) {
      std::atomic<bool> finished{false};
      waiting.emplace_back([&] {
        home = RegionsOf(db_.get())->HomeRegion();
        if (!seen[home]) work(home);
        finished = true;
        finished.notify_all();
        done.wait(false);
      });
      finished.wait(false);
      seen[home] = true;
    }
    done = true;
    done.notify_all();
    for (auto& thread : waiting) thread.join();
    for (uint32_t region = 0; region < kRegions; ++region) ASSERT_TRUE(seen[region]) << "no thread is at home in " << region;
  }

  // The mean over lookups of keys that are there.
  Visits MeanVisits() {
    constexpr int kLookups = 4000;
    const Statistics before = db_->GetStatistics();
    std::string value;
    for (int i = 0; i < kLookups; ++i) EXPECT_OK(db_->Get({}, keys_[random_.Uniform(keys_.size())], &value));
    const Statistics after = db_->GetStatistics();
    return {static_cast<double>(after.local_visits - before.local_visits) / kLookups,
            static_cast<double>(after.remote_visits - before.remote_visits) / kLookups};
  }

  // `check(visits, where)` for readers in each region, of a table of L0 and of the last level.
  template <class Check>
  void InEachLevel(const Check& check) {
    ASSERT_OK(db_->Flush());
    ASSERT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 1u);
    InEachRegion([&](uint32_t region) { check(region, "L0"); });
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ASSERT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
    InEachRegion([&](uint32_t region) { check(region, "L1"); });
  }

  TestDirectory directory_;
  Random random_{81};
  std::optional<uint64_t> l1_index_size_;  // else the default
  std::unique_ptr<DB> db_;
  std::vector<std::string> keys_;
};

// Entries are in either region by chance. The upper layers lead to the last entry before the key that is in the reader's region
// and reaches layer 1. Of the bottom list one entry in kRegions · kBranching is such, so that the walk from there takes so many
// steps on average, and kRegions - 1 in kRegions of them are remote. The entry at which the search ends is one more. The mean
// varies as the gaps between such entries do, which are drawn once: by a little more than 2 in the root of their number.
TEST_F(DbBraidTest, RemoteVisitsDoNotGrowWithTheData) {
  constexpr double kSteps = kRegions * kBranching;
  for (const uint64_t count : {500, 5'000, 50'000}) {
    const double gaps = static_cast<double>(count) / kSlowdown / kSteps;
    const double most = kSteps * (kRegions - 1) / kRegions * (1 + 4 * std::sqrt(5 / gaps)) + 1;
    Fill(count / kSlowdown, [this](uint64_t i) { return static_cast<uint32_t>(keys_[i].back() & 1); });
    InEachLevel([&](uint32_t region, const char* level) {
      const Visits visits = MeanVisits();
      std::printf("%llu keys, %s, region %u: %.2f local, %.2f remote\n", static_cast<unsigned long long>(count), level, region,
                  visits.local, visits.remote);
      EXPECT_LT(visits.remote, most) << count << " keys, " << level << ", region " << region;
      EXPECT_GT(visits.remote, 0.0) << "it is one list";
    });
  }
}

// In an oblivious list the region of a node has nothing to do with the way of a search: with n regions (n - 1) / n of the nodes
// are remote, on all layers. That is what braiding is for: with more data the ways become longer, and what is more is in the
// reader's region. In the last level, without the index in DRAM, which takes the place of most of the way.
TEST_F(DbBraidTest, AnObliviousListIsAsRemoteAsItsEntries) {
  constexpr double kShare = (kRegions - 1.0) / kRegions;
  l1_index_size_ = 0;
  for (const uint64_t count : {500, 5'000, 50'000}) {
    double braided[kRegions] = {};
    for (const ListKind lists : {ListKind::kBraided, ListKind::kOblivious}) {
      Fill(
          count / kSlowdown, [this](uint64_t i) { return static_cast<uint32_t>(keys_[i].back() & 1); }, lists);
      EXPECT_EQ(db_->GetOptions().list_kind, lists);
      InEachLevel([&](uint32_t region, const std::string& level) {
        if (level != "L1") return;  // in L0 an index finds the entry
        const Visits visits = MeanVisits();
        const double share = visits.remote / (visits.local + visits.remote);
        std::printf("%llu keys, region %u, %s: %.2f visits, %.0f %% remote\n", static_cast<unsigned long long>(count), region,
                    lists == ListKind::kBraided ? "braided" : "oblivious", visits.local + visits.remote, 100 * share);
        if (lists == ListKind::kBraided) {
          braided[region] = visits.remote;
          return;
        }
        // Few nodes are tall, and all lookups visit them: their regions are drawn once, some 3 of them on each layer.
        const double layers = std::log(static_cast<double>(count / kSlowdown)) / std::log(double{kBranching});
        const double tolerance = 4 * std::sqrt(kShare * (1 - kShare) / (kBranching * layers));
        EXPECT_NEAR(share, kShare, tolerance) << count << " keys, region " << region;
        // Twice for the luck of these nodes.
        if (count == 50'000) {
          EXPECT_GT(visits.remote, 2 * braided[region]) << region;
        }
      });
    }
  }
}

// What a database was made with counts, whatever an open asks for.
TEST_F(DbBraidTest, TheKindOfListsIsStored) {
  Fill(
      2'000, [](uint64_t i) { return static_cast<uint32_t>(i & 1); }, ListKind::kOblivious);
  ASSERT_OK(db_->Flush());
  std::string value;
  for (const ListKind asked : {ListKind::kBraided, ListKind::kOblivious}) {
    ASSERT_OK(db_->Close());
    db_.reset();
    Options options = TinyOptions(kRegions);
    options.list_kind = asked;
    options.verify_at_open = true;
    db_ = OpenOrFail(options, directory_.File("db"));
    EXPECT_EQ(db_->GetOptions().list_kind, ListKind::kOblivious);
    EXPECT_TRUE(db_->GetProperty("braiddb.visits-per-get", &value));
    EXPECT_EQ(value, "0.00 local, 0.00 remote");
    for (const std::string& key : keys_) ASSERT_OK(db_->Get({}, key, &value));
    EXPECT_TRUE(db_->GetProperty("braiddb.visits-per-get", &value));
    double local = 0, remote = 0;
    ASSERT_EQ(std::sscanf(value.c_str(), "%lf local, %lf remote", &local, &remote), 2) << value;
    EXPECT_GT(local, 0.1);
    EXPECT_GT(remote, 0.1);
    ASSERT_OK(db_->Put({}, "more", "v"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  Options options = TinyOptions(kRegions);
  options.list_kind = static_cast<ListKind>(7);
  std::unique_ptr<DB> other;
  EXPECT_CODE(DB::Open(options, directory_.File("other"), &other), kNotSupported);
}

// Everything is in the other region: its upper layers lead on, so that the way is still logarithmic. After the steps with which
// it tries (8), a search makes kBranching on each layer on the way up, and as many on the way down, on average; twice that is
// allowed.
TEST_F(DbBraidTest, AReaderWhoseRegionIsEmptyClimbsTheOthersTowers) {
  for (const uint64_t count : {500, 5'000, 50'000}) {
    Fill(count / kSlowdown, [](uint64_t) { return 1u; });
    const double layers = std::log(static_cast<double>(count)) / std::log(double{kBranching});
    const double most = 2 * (8 + 2 * kBranching * layers);
    InEachLevel([&](uint32_t region, const char* level) {
      const Visits visits = MeanVisits();
      std::printf("%llu keys, %s, region %u: %.2f local, %.2f remote\n", static_cast<unsigned long long>(count), level, region,
                  visits.local, visits.remote);
      if (region == 1) {
        EXPECT_EQ(visits.remote, 0.0);
      } else {
        EXPECT_EQ(visits.local, 0.0);
        EXPECT_LT(visits.remote, most) << count << " keys, " << level;
      }
    });
  }
}

}  // namespace
}  // namespace braiddb::test
