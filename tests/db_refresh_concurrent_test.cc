// DB::Refresh: live readers go on with the next process that opens the database for writing.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/merge_operator.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class RefreshTest : public testing::Test {
 protected:
  using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

  RefreshTest() { options_.create_if_missing = true; }
  void OpenWriter() {
    writer_.reset();
    writer_ = OpenOrFail(options_, path_);
    ASSERT_NE(writer_, nullptr);
  }
  std::unique_ptr<DB> OpenReader() {
    std::unique_ptr<DB> reader;
    EXPECT_OK(DB::OpenForReadOnly(options_, path_, &reader));
    return reader;
  }
  std::string Value(DB* db, const std::string& key) {
    std::string value;
    const Status status = db->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
  // How often this process maps shared memory of databases.
  static int SharedMappings() {
    int found = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) found += line.find("memfd:") != std::string::npos;
    return found;
  }

  TestDirectory directory_;
  Options options_;
  const std::string path_ = directory_.File("db");
  std::unique_ptr<DB> writer_;
};

TEST_F(RefreshTest, AttachesToTheNextWriter) {
  OpenWriter();
  EXPECT_OK(writer_->Refresh());
  ASSERT_OK(writer_->Put({}, "a", "1"));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  EXPECT_OK(reader->Refresh()) << "the writer is there";
  ASSERT_OK(writer_->Put({}, "a", "2"));
  writer_.reset();
  EXPECT_EQ(Value(reader.get(), "a"), "2") << "the last state";
  const Status none = reader->Refresh();
  EXPECT_TRUE(none.IsNotFound() || none.IsAborted()) << none.ToString();
  EXPECT_EQ(Value(reader.get(), "a"), "2");
  OpenWriter();
  ASSERT_OK(writer_->Put({}, "a", "3"));
  std::string value;
  EXPECT_TRUE(reader->Get({}, "a", &value).IsExpired());
  EXPECT_TRUE(reader->NewIterator({})->status().IsExpired());
  EXPECT_EQ(reader->GetSnapshot(), nullptr);
  ASSERT_OK(reader->Refresh());
  EXPECT_EQ(Value(reader.get(), "a"), "3");
  uint64_t latest = 0;
  ASSERT_OK(reader->WaitForUpdate(0, std::chrono::seconds(60), &latest));
  ASSERT_OK(writer_->Put({}, "a", "4"));
  ASSERT_OK(reader->WaitForUpdate(latest, std::chrono::seconds(60), &latest));
  EXPECT_EQ(Value(reader.get(), "a"), "4");
  // A writer that has come and gone: the reader has expired, and nobody can be attached to.
  OpenWriter();
  writer_.reset();
  EXPECT_TRUE(reader->Get({}, "a", &value).IsExpired());
  EXPECT_FALSE(reader->Refresh().ok());
  EXPECT_TRUE(reader->Get({}, "a", &value).IsExpired());
  OpenWriter();
  ASSERT_OK(reader->Refresh());
  EXPECT_EQ(Value(reader.get(), "a"), "4");
}

// Handles stand for families, and not for names.
TEST_F(RefreshTest, HandlesStayThoseOfTheirFamilies) {
  OpenWriter();
  std::unique_ptr<ColumnFamilyHandle> kept, dropped, again;
  ASSERT_OK(writer_->CreateColumnFamily({}, "kept", &kept));
  ASSERT_OK(writer_->CreateColumnFamily({}, "dropped", &dropped));
  ASSERT_OK(writer_->CreateColumnFamily({}, "again", &again));
  for (ColumnFamilyHandle* const family : {kept.get(), dropped.get(), again.get()}) {
    ASSERT_OK(writer_->Put({}, family, "key", family->GetName()));
  }
  const std::vector<ColumnFamilyDescriptor> families = {{"default", {}}, {"kept", {}}, {"dropped", {}}, {"again", {}}};
  Handles own;
  std::unique_ptr<DB> reader;
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, families, &own, &reader));
  ASSERT_EQ(own.size(), 4u);
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i]->GetName(), families[i].name);
  ASSERT_OK(writer_->DropColumnFamily(dropped.get()));
  ASSERT_OK(writer_->DropColumnFamily(again.get()));
  again.reset();
  dropped.reset();
  ASSERT_OK(writer_->CreateColumnFamily({}, "again", &again));
  ASSERT_OK(writer_->Put({}, again.get(), "key", "another one"));
  kept.reset();
  again.reset();
  ASSERT_OK(writer_->Close());
  writer_.reset();
  Handles writers;
  ASSERT_OK(DB::Open(options_, path_, {{"default", {}}, {"kept", {}}, {"again", {}}}, &writers, &writer_));
  ASSERT_OK(writer_->Put({}, writers[1].get(), "key", "newer"));
  ASSERT_OK(reader->Refresh());
  std::string value;
  ASSERT_OK(reader->Get({}, own[1].get(), "key", &value));
  EXPECT_EQ(value, "newer");
  PinnableSlice pinned;
  ASSERT_OK(reader->Get({}, own[1].get(), "key", &pinned));
  EXPECT_EQ(pinned.slice(), "newer");
  pinned.Reset();
  for (const size_t gone : {2, 3}) {
    EXPECT_TRUE(reader->Get({}, own[gone].get(), "key", &value).IsInvalidArgument()) << own[gone]->GetName();
    EXPECT_TRUE(reader->NewIterator({}, own[gone].get())->status().IsInvalidArgument());
    EXPECT_EQ(own[gone]->GetName(), families[gone].name);
  }
  EXPECT_TRUE(reader->Get({}, writers[1].get(), "key", &value).IsInvalidArgument()) << "the writer's handle";
  EXPECT_TRUE(reader->Get({}, nullptr, "key", &value).IsInvalidArgument());
  EXPECT_TRUE(writer_->Get({}, own[1].get(), "key", &value).IsInvalidArgument()) << "the reader's handle";
  std::vector<std::string> values;
  const auto statuses = reader->MultiGet({}, {own[0].get(), own[1].get(), own[2].get()}, {"key", "key", "key"}, &values);
  EXPECT_TRUE(statuses[0].IsNotFound());
  EXPECT_TRUE(statuses[1].ok());
  EXPECT_TRUE(statuses[2].IsInvalidArgument());
  Handles now;
  ASSERT_OK(reader->GetColumnFamilies(&now));
  ASSERT_EQ(now.size(), 3u);
  ASSERT_OK(reader->Get({}, now[2].get(), "key", &value));
  EXPECT_EQ(value, "another one");
  // A family that the first attachment did not know stays in later ones.
  std::unique_ptr<ColumnFamilyHandle> later;
  ASSERT_OK(writer_->CreateColumnFamily({}, "later", &later));
  ASSERT_OK(writer_->Put({}, later.get(), "key", "late"));
  ASSERT_OK(reader->GetColumnFamilies(&now));
  ASSERT_EQ(now.size(), 4u);
  later.reset();
  writers.clear();
  writer_.reset();
  ASSERT_OK(DB::Open(options_, path_, {{"default", {}}, {"kept", {}}, {"again", {}}, {"later", {}}}, &writers, &writer_));
  ASSERT_OK(reader->Refresh());
  ASSERT_OK(reader->Get({}, now[3].get(), "key", &value));
  EXPECT_EQ(value, "late");
  writers.clear();
}

// What is held of an old attachment ends with an error, and its memory goes when nothing is held.
TEST_F(RefreshTest, OldAttachmentsAreFreed) {
  OpenWriter();
  for (int i = 0; i < 100; ++i) ASSERT_OK(writer_->Put({}, NumberedKey(i), PatternedValue(i, 50)));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto refresh = [&] {
    OpenWriter();
    std::string value;
    EXPECT_TRUE(reader->Get({}, NumberedKey(1), &value).IsExpired());
    ASSERT_OK(reader->Refresh());
    EXPECT_OK(reader->Get({}, NumberedKey(1), &value));
  };
  refresh();
  const int mappings = SharedMappings();
  auto iterator = reader->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  const Snapshot* const snapshot = reader->GetSnapshot();
  ASSERT_NE(snapshot, nullptr);
  ReadOptions at;
  at.snapshot = snapshot;
  PinnableSlice pinned;
  ASSERT_OK(reader->Get({}, NumberedKey(2), &pinned));
  refresh();
  EXPECT_GT(SharedMappings(), mappings) << "the old attachment is held";
  iterator->Next();
  EXPECT_TRUE(iterator->status().IsExpired());
  std::string value;
  EXPECT_TRUE(reader->Get(at, NumberedKey(1), &value).IsExpired());
  EXPECT_TRUE(reader->NewIterator(at)->status().IsExpired());
  const Snapshot* const others = writer_->GetSnapshot();
  ReadOptions at_others;
  at_others.snapshot = others;
  EXPECT_TRUE(reader->Get(at_others, NumberedKey(1), &value).IsInvalidArgument());
  writer_->ReleaseSnapshot(others);
  // Each of the three keeps it alone.
  iterator.reset();
  EXPECT_OK(reader->Refresh());
  EXPECT_GT(SharedMappings(), mappings);
  reader->ReleaseSnapshot(snapshot);
  EXPECT_OK(reader->Refresh());
  EXPECT_GT(SharedMappings(), mappings);
  pinned.Reset();
  EXPECT_OK(reader->Refresh());
  EXPECT_EQ(SharedMappings(), mappings);
  for (int i = 0; i < 5; ++i) refresh();
  EXPECT_EQ(SharedMappings(), mappings);
}

// A get that pins a value and then finds that the reader has expired leaves no pin.
TEST_F(RefreshTest, AnExpiredGetPinsNothing) {
  OpenWriter();
  ASSERT_OK(writer_->Put({}, "a", std::string(100, 'a')));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::atomic<bool> opens{true};
  SyncPoints::Instance().SetCallback("LiveDB::ReadValidly:Followed", [&](void*) {
    if (opens.exchange(false)) OpenWriter();
  });
  SyncPoints::Instance().Enable();
  PinnableSlice pinned;
  EXPECT_TRUE(reader->Get({}, "a", &pinned).IsExpired());
  EXPECT_TRUE(pinned.empty());
  ASSERT_OK(reader->Refresh());
  SyncPoints::Instance().Clear();
  ASSERT_OK(reader->Get({}, "a", &pinned));
  EXPECT_EQ(pinned.size(), 100u);
}

// The number of before is smaller than those of the next attachment: the writer may begin below it.
TEST_F(RefreshTest, AFollowerLooksAtTheNextWriter) {
  options_.refresh_live_readers = true;
  OpenWriter();
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  uint64_t latest = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(writer_->Put({}, "a", std::to_string(round)));
    const uint64_t before = latest;
    ASSERT_OK(reader->WaitForUpdate(latest, std::chrono::seconds(60), &latest));
    EXPECT_GT(latest, before);
    OpenWriter();
    EXPECT_EQ(Value(reader.get(), "a"), std::to_string(round)) << "refreshes by itself";
    EXPECT_OK(reader->WaitForUpdate(latest, std::chrono::seconds(0), &latest));
    EXPECT_TRUE(reader->WaitForUpdate(latest, std::chrono::seconds(0), &latest).IsTimedOut());
  }
}

// The value may be the key's string.
TEST_F(RefreshTest, TheValueMayReplaceTheKey) {
  options_.refresh_live_readers = true;
  OpenWriter();
  ASSERT_OK(writer_->Put({}, "a", "value"));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (int round = 0; round < 3; ++round) {
    std::string text = "a";
    ASSERT_OK(reader->Get({}, text, &text));
    EXPECT_EQ(text, "value");
    OpenWriter();
  }
}

// Functions that are told of log lines may use the reader, in the middle of a refresh and of a close.
TEST_F(RefreshTest, TheLogMayUseTheReader) {
  OpenWriter();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(writer_->CreateColumnFamily({}, "family", &family));
  ASSERT_OK(writer_->Put({}, family.get(), "a", "1"));
  family.reset();
  writer_.reset();
  std::atomic<DB*> used{nullptr};
  std::atomic<ColumnFamilyHandle*> handle{nullptr};
  std::atomic<int> lines{0};
  Options logging = options_;
  logging.refresh_live_readers = true;
  logging.info_log = [&](Slice) {
    DB* const db = used.load();
    if (db == nullptr) return;
    ++lines;
    std::string value;
    const Status status = db->Get({}, handle.load(), "a", &value);
    EXPECT_TRUE(status.ok() || status.IsExpired()) << status.ToString();
    (void)db->Refresh();
    Handles all;
    (void)db->GetColumnFamilies(&all);
  };
  Handles writers;
  const std::vector<ColumnFamilyDescriptor> families = {{"default", {}}, {"family", {}}};
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(DB::Open(options_, path_, families, &writers, &writer_));
    Handles own;
    std::unique_ptr<DB> reader;
    ASSERT_OK(DB::OpenForReadOnly(logging, path_, families, &own, &reader));
    handle.store(own[1].get());
    used.store(reader.get());
    writers.clear();
    writer_.reset();
    ASSERT_OK(DB::Open(options_, path_, families, &writers, &writer_));
    std::string value;
    ASSERT_OK(reader->Get({}, own[1].get(), "a", &value));
    EXPECT_EQ(value, "1");
    if (round == 1) {
      EXPECT_OK(reader->Close());
    }
    reader.reset();
    used.store(nullptr);
    own.clear();
    writers.clear();
    writer_.reset();
  }
  EXPECT_GT(lines.load(), 0);
}

// A merge operator that reads the database, from inside a read of it.
class ReadingOperator final : public MergeOperator {
 public:
  const char* Name() const override { return "reading"; }
  bool FullMerge(Slice, const Slice*, std::span<const Slice> operands, std::string* result) const override {
    std::string other;
    DB* const from = db.load();
    if (from != nullptr && !from->Get({}, "other", &other).ok()) return false;
    *result = other + std::string(operands.back());
    return true;
  }
  std::atomic<DB*> db{nullptr};
};

TEST_F(RefreshTest, ReadsInsideOfReads) {
  const auto merge = std::make_shared<ReadingOperator>();
  options_.merge_operator = merge;
  options_.refresh_live_readers = true;
  options_.disable_auto_compaction = true;  // a merge would apply the operand for good
  OpenWriter();
  ASSERT_OK(writer_->Put({}, "other", "x"));
  ASSERT_OK(writer_->Merge({}, "key", "1"));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  merge->db.store(reader.get());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Value(reader.get(), "key"), "x1");
    OpenWriter();
  }
  merge->db.store(nullptr);
}

// Threads read while the writer is closed and opened again and again. Each value is at least as new as the last one that was
// acknowledged before the read.
TEST_F(RefreshTest, ReadersWithTheOptionSeeNoWriterGo) {
  options_.refresh_live_readers = true;
  OpenWriter();
  ASSERT_OK(writer_->Put({}, "number", "0"));
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::atomic<int> acknowledged{0};
  std::atomic<bool> stops{false};
  std::atomic<uint64_t> reads{0}, between{0};
  const auto read = [&](int kind) {
    while (!stops.load()) {
      const int least = acknowledged.load();
      std::string value;
      Status status;
      if (kind == 0) {
        status = reader->Get({}, "number", &value);
      } else if (kind == 1) {
        std::vector<std::string> values;
        status = reader->MultiGet({}, std::vector<Slice>{"number"}, &values)[0];
        value = values[0];
      } else {
        const auto iterator = reader->NewIterator({});
        iterator->Seek("number");
        status = iterator->status();
        if (status.ok() && iterator->Valid()) value.assign(iterator->value());
        if (status.ok() && !iterator->Valid()) status = iterator->status();
      }
      if (status.IsExpired()) {  // while no writer is there, or the iterator met the change
        between.fetch_add(1);
        std::this_thread::yield();
        continue;
      }
      ASSERT_OK(status);
      ASSERT_GE(std::stoi(value), least);
      reads.fetch_add(1);
    }
  };
  std::vector<std::thread> threads;
  for (int kind = 0; kind < 3; ++kind) threads.emplace_back(read, kind);
  for (int number = 1; number <= 15; ++number) {
    OpenWriter();
    ASSERT_NE(writer_, nullptr);
    ASSERT_OK(writer_->Put({}, "number", std::to_string(number)));
    acknowledged.store(number);
    const uint64_t before = reads.load();
    EXPECT_TRUE(WaitUntil([&] { return reads.load() > before + 30 || HasFailure(); }));
  }
  stops.store(true);
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace braiddb::test
