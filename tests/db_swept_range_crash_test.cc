// A process ends in a sweep of a deleted range, while a snapshot keeps an older version of a key.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kIsCutShort = 7;

class DbSweptRangeCrashTest : public testing::TestWithParam<L1Kind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, DbSweptRangeCrashTest, testing::Values(L1Kind::kNvTree, L1Kind::kHybrid, L1Kind::kLbTree),
                         [](const auto& test) { return NameOfL1(static_cast<uint8_t>(test.param)).substr(1); });

// The newest version is marked, and the older one, which the range hides as well, is not.
TEST_P(DbSweptRangeCrashTest, LeavesASoundDatabase) {
  Options options = TinyOptions(1);
  options.l1 = GetParam();
  options.disable_auto_compaction = true;  // or the range would be swept before
  int passages = 0;
  for (bool is_done = false; !is_done; ++passages) {
    SCOPED_TRACE(passages);
    const TestDirectory directory;
    const std::string path = directory.File("db");
    const int exit_status = RunInChild([&]() -> int {
      const auto db = OpenOrFail(options, path);
      EXPECT_OK(db->Put({}, "key", "older"));
      (void)db->GetSnapshot();
      EXPECT_OK(db->Put({}, "key", "newer"));
      const Snapshot* const between = db->GetSnapshot();
      EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      EXPECT_OK(db->DeleteRange({}, "a", "z"));
      db->ReleaseSnapshot(between);
      int left = passages;
      SyncPoints::Instance().SetCallback("LevelMerge:Marked", [&left](void*) {
        if (left-- == 0) _exit(kIsCutShort);
      });
      SyncPoints::Instance().Enable();
      EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      _exit(0);
    });
    ASSERT_TRUE(exit_status == 0 || exit_status == kIsCutShort) << exit_status;
    is_done = exit_status == 0;
    EXPECT_TRUE(ChecksAsSound(path));
    const auto db = OpenOrFail(options, path);
    ASSERT_NE(db, nullptr);
    EXPECT_EQ(GetOrText(db.get(), "key"), "<not found>");
    EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
    EXPECT_EQ(GetOrText(db.get(), "key"), "<not found>");
  }
  EXPECT_GT(passages, 2) << "the range's record, and the key";
}

}  // namespace
}  // namespace braiddb::test
