// Iterators of live readers: tables of L0 are read by the sorted arrays of the process that writes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/key_kinds.h"
#include "tests/support/live_readers_test.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// From the iterator's position on.
void ExpectRest(Iterator* iterator, const std::map<std::string, std::string>& model) {
  for (const auto& [key, value] : model) {
    ASSERT_TRUE(iterator->Valid()) << Printable(key) << ": " << iterator->status().ToString();
    ASSERT_EQ(iterator->key(), key);
    ASSERT_EQ(iterator->value(), value);
    iterator->Next();
  }
  EXPECT_FALSE(iterator->Valid());
}

// Every key, forward and backward, and a seek to each, with some steps.
void ExpectOrder(DB* reader, const std::map<std::string, std::string>& model) {
  const auto iterator = reader->NewIterator({});
  iterator->SeekToFirst();
  ExpectRest(iterator.get(), model);
  iterator->SeekToLast();
  for (auto at = model.rbegin(); at != model.rend(); ++at, iterator->Prev()) {
    ASSERT_TRUE(iterator->Valid()) << Printable(at->first);
    ASSERT_EQ(iterator->key(), at->first);
  }
  EXPECT_FALSE(iterator->Valid());
  for (auto at = model.begin(); at != model.end(); ++at) {
    const auto seeking = reader->NewIterator({});
    seeking->Seek(at->first);
    auto other = at;
    for (int step = 0; step < 3 && other != model.end(); ++step, ++other, seeking->Next()) {
      ASSERT_TRUE(seeking->Valid()) << Printable(at->first);
      ASSERT_EQ(seeking->key(), other->first);
    }
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
}

class LiveOrdersTest : public LiveReadersTest {
 protected:
  void SetUp() override {
    LiveReadersTest::SetUp();
    options_.merge_operator = nullptr;
    options_.disable_auto_compaction = true;
    SyncPoints::Instance().SetCallback("TableOrder::MakeSteps:Made", [this](void*) { ++attached_; });
    SyncPoints::Instance().Enable();
  }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    LiveReadersTest::TearDown();
  }
  // A table of these keys.
  void AddTable(DB* writer, const KeyKind& keys, int table) {
    for (int i = 0; i < 150; ++i) {
      const std::string key = keys.draw(&random_);
      if (random_.OneIn(8)) {
        ASSERT_OK(writer->Delete({}, key));
        model_.erase(key);
        continue;
      }
      const std::string value = std::to_string(table) + "." + std::to_string(i);
      ASSERT_OK(writer->Put({}, key, value));
      model_[key] = value;
    }
    ASSERT_OK(writer->Flush());
  }

  Random random_{5};
  std::map<std::string, std::string> model_;
  std::atomic<int> attached_{0};
};
INSTANTIATE_TEST_SUITE_P(Kinds, LiveOrdersTest, testing::ValuesIn(kLiveCases), [](const auto& of) { return of.param.name; });

TEST_P(LiveOrdersTest, TablesOfL0AreReadByTheArraysOfTheWriter) {
  for (const KeyKind& keys : kKeyKinds) {
    SCOPED_TRACE(keys.name);
    model_.clear();
    const std::string path = path_ + keys.name;
    auto writer = OpenOrFail(options_, path);
    ASSERT_NE(writer, nullptr);
    AddTable(writer.get(), keys, 0);  // before the first reader: its array is in private memory
    std::unique_ptr<DB> reader;
    ASSERT_OK(DB::OpenForReadOnly(options_, path, &reader));
    ExpectOrder(reader.get(), model_);
    EXPECT_TRUE(WaitUntil([&] {  // it is copied
      const auto iterator = reader->NewIterator({});
      return attached_.load() > 0;
    }));
    for (int table = 1; table < 12; ++table) {
      AddTable(writer.get(), keys, table);
      if (table % 4 == 3) ExpectOrder(reader.get(), model_);
    }
    EXPECT_GT(attached_.exchange(0), 0);
    const auto held = reader->NewIterator({});
    held->SeekToFirst();
    const std::map<std::string, std::string> before = model_;
    ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
    AddTable(writer.get(), keys, 12);
    ExpectOrder(reader.get(), model_);
    // The iterator goes on with the tables that it had.
    ExpectRest(held.get(), before);
  }
}

// Merges make new indexes, and readers follow them. Iterators of before keep theirs, also when the writer is gone.
TEST_P(LiveOrdersTest, TheLastLevelIsReadByTheIndexOfTheWriter) {
  std::atomic<int> indexes{0};  // that the reader has attached to
  SyncPoints::Instance().SetCallback("TallIndex::Attach", [&indexes](void*) { ++indexes; });
  std::vector<KeyKind> kinds(std::begin(kKeyKinds), std::end(kKeyKinds));
  kinds.insert(kinds.end(), std::begin(kAlikeKinds), std::end(kAlikeKinds));
  for (const KeyKind& keys : kinds) {
    SCOPED_TRACE(keys.name);
    model_.clear();
    const std::string path = path_ + keys.name;
    auto writer = OpenOrFail(options_, path);
    ASSERT_NE(writer, nullptr);
    for (int table = 0; table < 4; ++table) AddTable(writer.get(), keys, table);
    ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
    std::unique_ptr<DB> reader;
    indexes = 0;
    ASSERT_OK(DB::OpenForReadOnly(options_, path, &reader));
    ExpectOrder(reader.get(), model_);
    EXPECT_TRUE(WaitUntil([&] {  // the index that was made before the first reader came is copied
      const auto iterator = reader->NewIterator({});
      return indexes.load() > 0;
    }));
    ExpectOrder(reader.get(), model_);
    const auto held = reader->NewIterator({});
    held->SeekToFirst();
    const std::map<std::string, std::string> before = model_;
    for (int round = 0; round < 3; ++round) {
      for (int table = 0; table < 4; ++table) AddTable(writer.get(), keys, 4 * round + table);
      indexes = 0;
      ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
      ExpectOrder(reader.get(), model_);
      EXPECT_GT(indexes.load(), 0);
    }
    for (const auto& [key, value] : model_) {
      std::string found;
      ASSERT_OK(reader->Get({}, key, &found));
      ASSERT_EQ(found, value);
    }
    ASSERT_OK(writer->Close());
    writer.reset();
    ExpectRest(held.get(), before);
    ExpectOrder(reader.get(), model_);
  }
}

// Indexes, arrays and filters are private while the shared heap has no room to spare. Then the next merge shares the index.
TEST_P(LiveOrdersTest, AHeapWithoutRoomLeavesIndexesPrivateForAWhile) {
  std::atomic<int> indexes{0};
  std::atomic<bool> has_room{false};
  SyncPoints::Instance().SetCallback("TallIndex::Attach", [&indexes](void*) { ++indexes; });
  SyncPoints::Instance().SetCallback("SharedHeap::HasRoomLocked",
                                     [&has_room](void* has) { *static_cast<bool*>(has) = has_room.load(); });
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  const auto add_and_merge = [&] {
    for (int table = 0; table < 4; ++table) AddTable(writer.get(), kKeyKinds[0], table);
    CompactRangeOptions merges;
    merges.sweep_last_level = false;  // a sweep has the index built anew
    ASSERT_OK(writer->CompactRange(merges, nullptr, nullptr));
  };
  add_and_merge();
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (int round = 0; round < 3; ++round) {
    add_and_merge();
    ExpectOrder(reader.get(), model_);
  }
  // With several regions, one of them may have no node to index, and such an index is shared.
  EXPECT_TRUE(indexes.load() == 0 || GetParam().regions > 1);
  indexes = 0;
  has_room = true;
  add_and_merge();
  ExpectOrder(reader.get(), model_);
  EXPECT_GT(indexes.load(), 0);
}

// The writer merges arrays for iterators that come, also in other processes.
TEST_P(LiveOrdersTest, TheWriterKnowsThatIteratorsCome) {
  std::atomic<int> came{-1};
  SyncPoints::Instance().SetCallback("DBImpl::IteratorsCome",
                                     [&came](void* is_so) { came = *static_cast<bool*>(is_so) ? 1 : 0; });
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (const bool makes_iterator : {false, true, false, true}) {
    if (makes_iterator) (void)reader->NewIterator({});
    came = -1;
    AddTable(writer.get(), kKeyKinds[0], 0);
    EXPECT_TRUE(WaitUntil([&] { return came.load() >= 0; }));
    EXPECT_EQ(came.load(), makes_iterator ? 1 : 0);
  }
}

// A reader that has no memory to follow deleted ranges must not take a later set for the one that it has: a block of the shared
// heap may lie where an older one did.
TEST_P(LiveOrdersTest, DeletedRangesAreFollowedAfterFailures) {
  std::atomic<bool> fails{false};
  SyncPoints::Instance().SetCallback("DBImpl::FollowChanges:Between",
                                     [&fails](void* has_none) { *static_cast<bool*>(has_none) = fails.load(); });
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  constexpr int kRounds = 120 / kSlowdown;
  for (int i = 0; i < 6 * kRounds; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), "v"));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  std::string value;
  int deleted = 0;
  for (int round = 0; round < kRounds; ++round) {
    fails = true;
    for (uint64_t i = random_.Range(1, 5); i > 0; --i, ++deleted) {
      ASSERT_OK(writer->DeleteRange({}, NumberedKey(deleted), NumberedKey(deleted + 1)));
      for (uint64_t flushes = random_.Uniform(3); flushes > 0; --flushes) ASSERT_OK(writer->Flush());
      EXPECT_TRUE(reader->Get({}, NumberedKey(deleted), &value).IsMemoryLimit());
    }
    fails = false;
    for (int i = 0; i < deleted; ++i) ASSERT_TRUE(reader->Get({}, NumberedKey(i), &value).IsNotFound()) << i << " of " << deleted;
    ASSERT_OK(reader->Get({}, NumberedKey(deleted), &value));
  }
}

// A queue whose consumer is a reader: it passes the same deleted keys again and again, until the writer merges them.
TEST_P(LiveOrdersTest, TheWriterMergesWhatScansOfReadersPass) {
  std::atomic<int> merges{0};
  SyncPoints::Instance().SetCallback("DBImpl::BeginScanMerge", [&merges](void*) { ++merges; });
  options_.disable_auto_compaction = false;
  options_.memtable_size = 16 << 20;
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  for (int i = 0; i < 4000; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), "v"));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (int i = 0; i < 3990; ++i) ASSERT_OK(writer->Delete({}, NumberedKey(i)));
  EXPECT_TRUE(WaitUntil([&] {
    const auto iterator = reader->NewIterator({});
    iterator->SeekToFirst();
    EXPECT_TRUE(iterator->Valid() && iterator->key() == NumberedKey(3990));
    return merges.load() > 0;
  }));
}

// While arrays are copied, a merge may drop the entries whose keys are compared, and writers may want their segments.
TEST_P(LiveOrdersTest, CopiesReadNoEntryThatIsGone) {
  class CheckedOrder final : public Comparator {
   public:
    const char* Name() const override { return "test.CheckedOrder"; }
    int Compare(Slice a, Slice b) const override {
      for (const Slice key : {a, b}) {
        const bool is_good = key.empty() || (key.size() == 14 && key.starts_with("the same"));
        wrong_keys += is_good ? 0 : 1;
      }
      return a.compare(b);
    }
    mutable std::atomic<int> wrong_keys{0};
  };
  const CheckedOrder order;
  const auto key_of = [](uint64_t number) { return "the same" + std::to_string(100000 + number); };
  options_.comparator = &order;
  options_.memtable_size = 16 << 20;  // none waits, for which the copying would end
  std::atomic<bool> is_open{false}, is_chosen{false}, goes_on{false}, is_copied{false};
  std::unique_ptr<DB> writer;
  SyncPoints::Instance().SetCallback("DBImpl::ShareOrders:Copied", [&](void*) {
    if (goes_on.load()) is_copied.store(true);
  });
  SyncPoints::Instance().SetCallback("DBImpl::ShareOrders:Chosen", [&](void*) {
    if (goes_on.load()) return;
    EXPECT_TRUE(WaitUntil([&] {
      is_chosen.store(is_open.load());
      // The open of the reader waits for the flush of a memtable, and this is the flush thread.
      uint64_t waiting = 0;
      const bool is_awaited =
          !is_open.load() && writer->GetIntProperty("braiddb.num-immutable-mem-table", &waiting) && waiting != 0;
      return goes_on.load() || is_awaited;
    }));
  });
  writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  for (int table = 0; table < 8; ++table) {
    for (int i = 0; i < 2000; ++i) ASSERT_OK(writer->Put({}, key_of(i), std::string(100, 'v')));
    ASSERT_OK(writer->Flush());
  }
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  is_open.store(true);
  EXPECT_TRUE(WaitUntil([&] { return is_chosen.load(); }));
  reader.reset();  // it holds entries, too
  ChangedOptions merges;
  merges.disable_auto_compaction = false;
  merges.l0_compaction_trigger = 1;
  std::thread setter([&] { EXPECT_OK(writer->SetOptions(writer->DefaultColumnFamily(), merges)); });
  uint64_t tables = 0;
  EXPECT_TRUE(WaitUntil([&] { return writer->GetIntProperty("braiddb.num-l0-tables", &tables) && tables < 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // segments may be released
  for (int i = 0; i < 8000; ++i)
    ASSERT_OK(writer->Put({}, key_of(random_.Uniform(2000)), std::string(20 + random_.Uniform(200), '#')));
  goes_on.store(true);
  EXPECT_TRUE(WaitUntil([&] { return is_copied.load(); }));
  setter.join();
  EXPECT_EQ(order.wrong_keys.load(), 0);
  ASSERT_OK(writer->Close());
}

// The steps of an array are made once, however many views list it.
TEST_P(LiveOrdersTest, ArraysAreTakenOverFromViewToView) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  for (int table = 0; table < 4; ++table) AddTable(writer.get(), kKeyKinds[0], table);
  int made = 0;
  EXPECT_TRUE(WaitUntil([&] {  // the arrays are copied and merged
    made = attached_.load();
    const auto iterator = reader->NewIterator({});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return made > 0 && attached_.load() == made;
  }));
  std::unique_ptr<ColumnFamilyHandle> handle;
  ASSERT_OK(writer->CreateColumnFamily({}, "other", &handle));
  ASSERT_OK(writer->Put({}, handle.get(), "k", "v"));
  ASSERT_OK(writer->Flush());
  ExpectOrder(reader.get(), model_);
  EXPECT_LE(attached_.load(), made + 1);  // the memtable that the first reader made the writer flush is a table by now
}

}  // namespace
}  // namespace braiddb::test
