// The log as history, read while many write and space is reclaimed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

// Each batch begins with a put of "writer<n>", of which the value is how many that writer has written: so one that is left out,
// or comes twice, shows.
class LogFollowTest : public DbOpenTest {
 protected:
  static constexpr int kWriters = 3;

  // Applies updates to `content`, and notes how far each writer is.
  struct Follower : WriteBatch::Handler {
    void Put(Slice key, Slice value) override {
      content[std::string(key)] = value;
      if (!key.starts_with("writer")) return;
      const std::string text(value);
      const int number = std::stoi(text);
      int& last = written[std::string(key)];
      const bool may_jump = may_have_missed.erase(std::string(key)) > 0;
      EXPECT_TRUE(number == last + 1 || (may_jump && number > last)) << key << ": " << number << " behind " << last;
      last = number;
    }
    void Delete(Slice key) override { content.erase(std::string(key)); }
    void Merge(Slice key, Slice operand) override {
      std::string& value = content[std::string(key)];
      value = AppendOperator::Apply(value, operand);
    }
    std::map<std::string, std::string> content;
    std::map<std::string, int> written;
    std::set<std::string> may_have_missed;  // writers, since something was gone
  };

  void Write(DB* db, int writer, uint64_t batches) {
    Random random(static_cast<uint64_t>(writer));
    for (uint64_t i = 1; i <= batches; ++i) {
      WriteBatch batch;
      batch.Put("writer" + std::to_string(writer), std::to_string(i));
      for (uint64_t updates = random.Uniform(6); updates > 0; --updates) {
        const std::string key = NumberedKey(random.OneIn(30) ? random.Uniform(20'000) : random.Uniform(300));
        if (random.OneIn(4)) {
          batch.Delete(key);
        } else if (random.OneIn(4)) {
          batch.Merge(key, "+" + std::to_string(i));
        } else {
          batch.Put(key, PatternedValue(i, random.Uniform(200)));
        }
      }
      ASSERT_OK(db->Write({}, batch));
    }
  }

  // Follows until all has been given, or something is gone, and looks again after `pause_us`.
  Status Follow(DB* db, uint64_t since, const std::atomic<bool>& ended, int pause_us, Follower* follower) {
    std::unique_ptr<TransactionLogIterator> iterator;
    uint64_t next = since;
    for (;;) {
      const bool is_last = ended.load();
      Status status = next > db->GetLatestSequenceNumber() ? Status::OK() : db->GetUpdatesSince(next, &iterator);
      if (!status.ok()) return status;
      for (int i = 0; iterator != nullptr && iterator->Valid(); iterator->Next()) {
        const LoggedBatch batch = iterator->GetBatch();
        EXPECT_GE(batch.sequence, next);
        next = batch.sequence + batch.updates->Count();
        EXPECT_OK(batch.updates->Iterate(follower));
        if (++i % 500 == 0) std::this_thread::yield();
      }
      if (iterator != nullptr && !iterator->status().ok()) return iterator->status();
      iterator.reset();
      if (is_last) return Status::OK();
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
  }

  // Returns how often something was gone.
  int Run(Options options, int pause_us) {
    options.merge_operator = std::shared_ptr<const MergeOperator>(std::shared_ptr<void>(), &append_);
    auto db = OpenOrFail(options, path_);
    const uint64_t batches = 20'000 / kSlowdown;
    std::atomic<bool> ended{false};
    Follower follower;
    int gone = 0;
    std::thread reader([&] {
      uint64_t since = 1;
      for (;;) {
        const Status status = Follow(db.get(), since, ended, pause_us, &follower);
        if (status.ok()) return;
        EXPECT_TRUE(status.IsNotFound()) << status.ToString();
        ++gone;
        for (int writer = 0; writer < kWriters; ++writer) follower.may_have_missed.insert("writer" + std::to_string(writer));
        since = db->GetLatestSequenceNumber() + 1;
      }
    });
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) writers.emplace_back([&, writer] { Write(db.get(), writer, batches); });
    for (auto& writer : writers) writer.join();
    ended = true;
    reader.join();
    if (gone == 0) {
      EXPECT_TRUE(HoldsExactly(db.get(), follower.content));
      for (int writer = 0; writer < kWriters; ++writer)
        EXPECT_EQ(follower.written["writer" + std::to_string(writer)], static_cast<int>(batches));
    }
    if (options.disable_auto_compaction) {
      EXPECT_EQ(db->GetStatistics().segments_recycled, 0u);
    }
    return gone;
  }

  AppendOperator append_;
};

TEST_F(LogFollowTest, NothingIsMissedWhileNothingIsReclaimed) {
  Options options = TinyOptions();
  options.disable_auto_compaction = true;
  EXPECT_EQ(Run(options, 200), 0);
}

// Who follows closely misses nothing, and who is too late is told.
TEST_F(LogFollowTest, NothingIsMissedWithoutAWordWhileSpaceIsReclaimed) { Run(TinyOptions(), 200); }
TEST_F(LogFollowTest, TheSameInOneRegion) { Run(TinyOptions(1), 200); }
// Most often too late.
TEST_F(LogFollowTest, NorByWhoSeldomLooks) { Run(TinyOptions(), 50'000); }

}  // namespace
}  // namespace braiddb::test
