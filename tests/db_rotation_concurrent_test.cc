// Rotation of memtables beside writers, one step at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbRotationTest : public DbOpenTest {
 protected:
  void SetUp() override {
    db_ = OpenOrFail(TinyOptions(1), path_);
    ASSERT_NE(db_, nullptr);
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  std::unique_ptr<DB> db_;
};

// A writer that loaded the active memtable before a rotation, and drew its number after it, goes from the old memtable to the
// successor. The old memtable is not freed before the writer has arrived. A second write comes between, so that the number of
// the first one is larger than all numbers that were announced at the rotation.
TEST_F(DbRotationTest, AFlushWaitsForAWriterOnItsWayToTheSuccessor) {
  ASSERT_OK(db_->Put({}, "before", "1"));
  std::latch loaded(1);
  std::latch flush_begins(1);
  std::latch written_between(1);
  std::latch on_its_way(1);
  std::atomic<bool> flushed{false};
  std::atomic<bool> overtaken{false};
  std::atomic<bool> is_first{true};
  SyncPoints& points = SyncPoints::Instance();
  points.SetCallback("DBImpl::AppendAndPublish:Loaded", [&](void*) {
    if (!is_first.exchange(false)) return;
    loaded.count_down();
    written_between.wait();
  });
  points.SetCallback("DBImpl::FlushOne", [&](void*) {
    if (!flush_begins.try_wait()) flush_begins.count_down();
    on_its_way.wait();
  });
  points.SetCallback("MemtableBehind", [&](void*) {
    if (on_its_way.try_wait()) return;
    on_its_way.count_down();
    for (int i = 0; i < 100 && !flushed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    overtaken = flushed.load();
  });
  points.Enable();
  std::thread writer([&] { EXPECT_OK(db_->Put({}, "beside", "2")); });
  std::thread between([&] {
    flush_begins.wait();
    EXPECT_OK(db_->Put({}, "between", "3"));
    written_between.count_down();
  });
  loaded.wait();
  EXPECT_OK(db_->Flush());
  flushed = true;
  writer.join();
  between.join();
  EXPECT_FALSE(overtaken) << "the memtable that the writer reads was freed";
  EXPECT_EQ(GetOrText(db_.get(), "before"), "1");
  EXPECT_EQ(GetOrText(db_.get(), "beside"), "2");
  EXPECT_EQ(GetOrText(db_.get(), "between"), "3");
}

}  // namespace
}  // namespace braiddb::test
