// A process is killed at each flush of a merge that replaces originals by their copies, while snapshots keep many versions of a
// key: what it leaves is a sound database.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "pmem/persistence.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kIsCutShort = 7;
constexpr int kVersions = 12;

// Ends the process at flush number `left`, counted from Start.
class KillAtFlush final : public PersistObserver {
 public:
  explicit KillAtFlush(int left) : left_(left) {}
  void Start() { runs_ = true; }
  void OnFlush(const void*, size_t) override {
    if (runs_ && left_-- == 0) _exit(kIsCutShort);
  }
  void OnDrain() override {}

 private:
  std::atomic<bool> runs_{false};
  std::atomic<int> left_;
};

class DbKilledRelocationTest : public testing::TestWithParam<L1Kind> {
 protected:
  DbKilledRelocationTest() {
    options_.l1 = GetParam();
    options_.disable_auto_compaction = true;
    options_.max_space_amplification = 1.1;
    options_.space_slack = 256 << 10;
  }
  static std::string VersionOf(int number) { return "version " + std::to_string(number); }
  // Keys between others that go, so that what lives is sparse. Merges them, and relocates what is left.
  void Work(const std::string& path, KillAtFlush* kill) const {
    const auto db = OpenOrFail(options_, path);
    RegionsOf(db.get())->persistence()->SetObserver(kill);
    SyncPoints::Instance().SetCallback("DBImpl::RelocateSparse:Installed", [kill](void*) { kill->Start(); });
    SyncPoints::Instance().Enable();
    std::vector<const Snapshot*> snapshots;
    for (int i = 0; i < 6000; ++i) {
      if (i % 500 == 0) {
        EXPECT_OK(db->Put({}, "key", VersionOf(i / 500)));
        snapshots.push_back(db->GetSnapshot());
        EXPECT_OK(db->Put({}, NumberedKey(static_cast<uint64_t>(i)), "value"));
      } else {
        EXPECT_OK(db->Put({}, "passing" + std::to_string(i % 10), std::string(400, 'p')));
      }
    }
    EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
    RegionsOf(db.get())->persistence()->SetObserver(nullptr);
    SyncPoints::Instance().Clear();
    for (int i = 0; i < kVersions; ++i) {
      ReadOptions read;
      read.snapshot = snapshots[static_cast<size_t>(i)];
      std::string value;
      EXPECT_OK(db->Get(read, "key", &value));
      EXPECT_EQ(value, VersionOf(i));
    }
    EXPECT_GT(db->GetStatistics().relocated_entries, kVersions);
    for (const Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
  }

  Options options_ = TinyOptions(1);
};

INSTANTIATE_TEST_SUITE_P(Kinds, DbKilledRelocationTest,
                         testing::Values(L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kHybrid, L1Kind::kLbTree),
                         [](const auto& test) { return NameOfL1(static_cast<uint8_t>(test.param)).substr(1); });

TEST_P(DbKilledRelocationTest, LeavesASoundDatabase) {
  int cuts = 0;
  for (int flush = 0, is_done = 0; is_done == 0; flush += 1 + flush / 32 + (kSlowdown > 1 ? 7 : 0)) {
    SCOPED_TRACE(flush);
    const TestDirectory directory;
    const std::string path = directory.File("db");
    const int exit_status = RunInChild([&]() -> int {
      KillAtFlush kill(flush);
      Work(path, &kill);
      return testing::Test::HasFailure() ? 1 : 0;
    });
    ASSERT_TRUE(exit_status == 0 || exit_status == kIsCutShort) << exit_status;
    is_done = exit_status == 0;
    cuts += !is_done;
    ASSERT_TRUE(ChecksAsSound(path));
    if (cuts % 8 != 0) continue;
    const auto db = OpenOrFail(options_, path);
    ASSERT_NE(db, nullptr);
    EXPECT_EQ(GetOrText(db.get(), "key"), VersionOf(kVersions - 1));
    EXPECT_EQ(GetOrText(db.get(), NumberedKey(0)), "value");
    EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
    EXPECT_EQ(GetOrText(db.get(), "key"), VersionOf(kVersions - 1));
  }
  EXPECT_GT(cuts, 4);
}

}  // namespace
}  // namespace braiddb::test
