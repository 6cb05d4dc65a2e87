// Event listeners: what they are told, in which order, what they may do, and that a close tells them all.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/event_listener.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

// Notes everything, and reads meanwhile.
class Recorder : public EventListener {
 public:
  void OnMemTableSealed(DB* db, const MemTableInfo& info) override {
    Note(db, "sealed", info.db_name);
    EXPECT_GT(info.id, sealed_.exchange(info.id));
  }
  void OnFlushBegin(DB* db, const FlushJobInfo& info) override {
    Note(db, "flush begins", info.db_name);
    EXPECT_EQ(flushing_.exchange(info.memtable_id), 0u) << "one at a time";
    EXPECT_LE(info.memtable_id, sealed_) << "sealed before";
  }
  void OnFlushCompleted(DB* db, const FlushJobInfo& info) override {
    Note(db, "flush completed", info.db_name);
    EXPECT_EQ(flushing_.exchange(0), info.memtable_id);
    flushed_entries += info.num_entries + info.num_dropped;
  }
  void OnCompactionBegin(DB* db, const CompactionJobInfo& info) override {
    Note(db, "compaction begins", info.db_name);
    EXPECT_EQ(compacting_.exchange(info.job_id), 0u);
    EXPECT_GT(info.num_input_tables, 0u);
    const std::lock_guard lock(mutex_);
    ++families_[info.cf_name];
  }
  void OnCompactionCompleted(DB* db, const CompactionJobInfo& info) override {
    Note(db, "compaction completed", info.db_name);
    EXPECT_EQ(compacting_.exchange(0), info.job_id);
    EXPECT_TRUE(info.status.ok() || info.status.IsAborted()) << info.status.ToString();
    merged_entries += info.num_merged_entries;
  }
  void OnStallConditionsChanged(DB* db, const WriteStallInfo& info) override {
    Note(db, "stall", info.db_name);
    EXPECT_NE(info.previous, info.current);
    EXPECT_EQ(info.previous, condition_);
    condition_ = info.current;
  }

  int Count(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return counts_[what];
  }
  int CountOfFamily(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return families_[name];
  }
  std::atomic<uint64_t> flushed_entries{0}, merged_entries{0};
  bool nothing_runs() const { return flushing_ == 0 && compacting_ == 0; }

 private:
  void Note(DB* db, const std::string& what, const std::string& name) {
    EXPECT_EQ(db->GetName(), name);
    const auto self = std::this_thread::get_id();
    std::string value;
    const Status status = db->Get({}, NumberedKey(0), &value);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    const auto iterator = db->NewIterator({});
    iterator->SeekToFirst();
    const std::lock_guard lock(mutex_);
    if (thread_ == std::thread::id()) thread_ = self;
    EXPECT_EQ(thread_, self) << "one thread tells everything";
    ++counts_[what];
  }

  std::mutex mutex_;
  std::map<std::string, int> counts_, families_;
  std::thread::id thread_;
  std::atomic<uint64_t> sealed_{0}, flushing_{0}, compacting_{0};
  WriteStallCondition condition_ = WriteStallCondition::kNormal;
};

class EventListenerTest : public DbOpenTest {
 protected:
  EventListenerTest() {
    options_ = TinyOptions(1);
    options_.listeners.push_back(recorder_);
  }
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(EventListenerTest, IsToldOfFlushesAndCompactions) {
  ASSERT_OK(Open(options_, &db_));
  std::unique_ptr<ColumnFamilyHandle> other;
  ASSERT_OK(db_->CreateColumnFamily({}, "other", &other));
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  for (int i = 0; i < 50; ++i) ASSERT_OK(db_->Put({}, other.get(), NumberedKey(i), "value"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->CompactRange({}, other.get(), nullptr, nullptr));
  other.reset();
  const Statistics statistics = db_->GetStatistics();
  ASSERT_OK(db_->Close());
  db_.reset();
  EXPECT_GE(recorder_->Count("sealed"), static_cast<int>(statistics.rotations));
  EXPECT_GT(statistics.rotations, 0u);
  EXPECT_EQ(recorder_->Count("flush begins"), recorder_->Count("sealed"));
  EXPECT_EQ(recorder_->Count("flush completed"), recorder_->Count("flush begins"));
  EXPECT_EQ(recorder_->flushed_entries, 150u);
  EXPECT_EQ(recorder_->merged_entries, 150u);
  EXPECT_GT(recorder_->CountOfFamily("other"), 0);
  EXPECT_GT(recorder_->CountOfFamily(kDefaultColumnFamilyName), 0);
  EXPECT_TRUE(recorder_->nothing_runs());
}

TEST_F(EventListenerTest, IsToldOfHandlesBeforeTheyGo) {
  class Deletions : public EventListener {
   public:
    void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle* handle) override {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      names.push_back(handle->GetName() + " " + std::to_string(handle->GetID()));
    }
    const std::thread::id thread = std::this_thread::get_id();
    std::vector<std::string> names;
  };
  const auto deletions = std::make_shared<Deletions>();
  options_.listeners.push_back(deletions);
  options_.create_missing_column_families = true;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::Open(options_, path_, {{"default", ColumnFamilyOptions(options_)}, {"one", {}}}, &handles, &db_));
  std::unique_ptr<ColumnFamilyHandle> two;
  ASSERT_OK(db_->CreateColumnFamily({}, "two", &two));
  ASSERT_OK(db_->DropColumnFamily(two.get()));
  EXPECT_TRUE(deletions->names.empty());
  two.reset();
  EXPECT_EQ(deletions->names, (std::vector<std::string>{"two 2"}));
  handles.clear();
  EXPECT_EQ(deletions->names.size(), 3u);
  ASSERT_OK(db_->GetColumnFamilies(&handles));
  EXPECT_EQ(handles.size(), 2u);
  handles.clear();
  EXPECT_EQ(deletions->names, (std::vector<std::string>{"two 2", "default 0", "one 1", "default 0", "one 1"}));
  ASSERT_OK(db_->Close());
  db_.reset();
  EXPECT_EQ(deletions->names.size(), 5u) << "the database's own is not told of";
}

// A slow listener holds up nobody but the close, which tells everything.
TEST_F(EventListenerTest, NobodyWaitsForOneButTheClose) {
  struct Slow : EventListener {
    void OnFlushCompleted(DB* db, const FlushJobInfo&) override {
      while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::string value;
      EXPECT_OK(db->Get({}, NumberedKey(1), &value));
      ++told;
    }
    std::atomic<bool> go{false};
    std::atomic<int> told{0};
  };
  const auto slow = std::make_shared<Slow>();
  options_.listeners.push_back(slow);
  ASSERT_OK(Open(options_, &db_));
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK(db_->Put({}, NumberedKey(1), "value"));
    ASSERT_OK(db_->Flush());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(slow->told, 0);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slow->go = true;
  });
  ASSERT_OK(db_->Close());
  EXPECT_EQ(slow->told, 5);
  EXPECT_EQ(recorder_->Count("flush completed"), 5);
  later.join();
  db_.reset();
}

// A listener may do more than read while the database is open.
TEST_F(EventListenerTest, OneMayWriteAndFlush) {
  struct Writer : EventListener {
    void OnMemTableSealed(DB* db, const MemTableInfo&) override {
      if (begun.exchange(true)) return;
      EXPECT_OK(db->Put({}, "sealed", "yes"));
      EXPECT_OK(db->Flush());
      EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      finished = true;
    }
    std::atomic<bool> begun{false}, finished{false};
  };
  const auto writer = std::make_shared<Writer>();
  options_.listeners.push_back(writer);
  ASSERT_OK(Open(options_, &db_));
  ASSERT_OK(db_->Put({}, "key", "value"));
  ASSERT_OK(db_->Flush());
  while (!writer->finished) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(GetOrText(db_.get(), "sealed"), "yes");
}

// Many events, and a close that comes in the middle of them.
TEST_F(EventListenerTest, UnderLoadNoEventIsLost) {
  options_.l0_slowdown_writes_trigger = 2;
  options_.l0_compaction_trigger = 1;
  options_.memtable_size = 16 << 10;
  for (int life = 0; life < 4; ++life) {
    const auto recorder = std::make_shared<Recorder>();
    options_.listeners = {recorder};
    ASSERT_OK(Open(options_, &db_));
    std::vector<std::thread> writers;
    for (int thread = 0; thread < 3; ++thread) {
      writers.emplace_back([&, thread] {
        Random random(static_cast<uint64_t>(thread) + 1);
        for (int i = 0; i < 3000 / kSlowdown; ++i) {
          ASSERT_OK(db_->Put({}, NumberedKey(random.Uniform(500)), PatternedValue(random.Next(), 100)));
        }
      });
    }
    for (auto& writer : writers) writer.join();
    const uint64_t rotations = db_->GetStatistics().rotations;
    ASSERT_OK(db_->Close());
    db_.reset();
    EXPECT_GT(rotations, 3u);
    EXPECT_GE(recorder->Count("sealed"), static_cast<int>(rotations));
    EXPECT_EQ(recorder->Count("flush begins"), recorder->Count("sealed"));
    EXPECT_EQ(recorder->Count("flush completed"), recorder->Count("sealed"));
    EXPECT_EQ(recorder->Count("compaction completed"), recorder->Count("compaction begins"));
    EXPECT_TRUE(recorder->nothing_runs());
  }
}

}  // namespace
}  // namespace braiddb::test
