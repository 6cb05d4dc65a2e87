// Column families: what is written to one stays there, across flushes, merges and opens; batches over several; creation and
// dropping.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;
using Content = std::map<std::string, std::string>;

class DbColumnFamilyTest : public testing::Test {
 protected:
  void SetUp() override { Open({}); }
  void TearDown() override { Close(); }

  Options MakeOptions() const {
    Options options = TinyOptions(2);
    options.create_missing_column_families = true;
    return options;
  }
  static ColumnFamilyDescriptor Describe(const std::string& name, L1Kind l1,
                                         const Comparator* comparator = BytewiseComparator()) {
    ColumnFamilyDescriptor descriptor{name, {}};
    descriptor.options.l1 = l1;
    descriptor.options.comparator = comparator;
    return descriptor;
  }
  Status TryOpen(const std::vector<ColumnFamilyDescriptor>& families) {
    return DB::Open(options_, directory_.File("db"), families, &handles_, &db_);
  }
  void Open(const std::vector<ColumnFamilyDescriptor>& families) { ASSERT_OK(TryOpen(families)); }
  void Close() {
    handles_.clear();
    if (db_ != nullptr) {
      EXPECT_OK(db_->Close());
    }
    db_.reset();
  }
  Handle Create(const std::string& name, L1Kind l1 = L1Kind::kBraidedSkipList) {
    Handle handle;
    EXPECT_OK(db_->CreateColumnFamily(Describe(name, l1).options, name, &handle));
    return handle;
  }
  std::string Get(ColumnFamilyHandle* family, const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, family, key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  Content Scan(ColumnFamilyHandle* family) {
    Content content;
    const auto iterator = db_->NewIterator({}, family);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      content.emplace(std::string(iterator->key()), std::string(iterator->value()));
    EXPECT_OK(iterator->status());
    size_t backward = 0;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) ++backward;
    EXPECT_EQ(backward, content.size());
    return content;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    EXPECT_OK(DB::ListColumnFamilies(options_, directory_.File("db"), &names));
    return names;
  }
  uint64_t Property(const char* name, ColumnFamilyHandle* family = nullptr) {
    uint64_t value = 0;
    EXPECT_TRUE(family == nullptr ? db_->GetIntProperty(name, &value) : db_->GetIntProperty(family, name, &value)) << name;
    return value;
  }

  TestDirectory directory_;
  Options options_ = MakeOptions();
  std::unique_ptr<DB> db_;
  std::vector<Handle> handles_;
};

TEST_F(DbColumnFamilyTest, EachHasItsOwnKeys) {
  const Handle a = Create("a");
  const Handle b = Create("b", L1Kind::kNvTree);
  ASSERT_OK(db_->Put({}, "key", "default"));
  ASSERT_OK(db_->Put({}, a.get(), "key", "of a"));
  ASSERT_OK(db_->Put({}, b.get(), "key", "of b"));
  ASSERT_OK(db_->Put({}, b.get(), "other", "1"));
  for (const char* name : {"braiddb.num-entries-active-mem-table", "braiddb.estimate-num-keys"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(Property(name), 1u);
    EXPECT_EQ(Property(name, a.get()), 1u);
    EXPECT_EQ(Property(name, b.get()), 2u);
  }
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    EXPECT_EQ(Get(db_->DefaultColumnFamily(), "key"), "default");
    EXPECT_EQ(Get(a.get(), "key"), "of a");
    EXPECT_EQ(Get(b.get(), "key"), "of b");
    EXPECT_EQ(Get(a.get(), "other"), "-");
    EXPECT_EQ(Scan(b.get()), (Content{{"key", "of b"}, {"other", "1"}}));
    EXPECT_EQ(Scan(db_->DefaultColumnFamily()), (Content{{"key", "default"}}));
    if (step == 0) {
      ASSERT_OK(db_->Flush());
    }
    if (step == 1) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
  }
  ASSERT_OK(db_->Delete({}, a.get(), "key"));
  EXPECT_EQ(Get(a.get(), "key"), "-");
  EXPECT_EQ(Get(b.get(), "key"), "of b");
}

TEST_F(DbColumnFamilyTest, AnOpenNamesAllOfThem) {
  ASSERT_OK(db_->Put({}, Create("a").get(), "k", "v"));
  ASSERT_OK(db_->Put({}, Create("b", L1Kind::kNvTree).get(), "k", "w"));
  Close();
  EXPECT_EQ(Names(), (std::vector<std::string>{"default", "a", "b"}));
  Status status = TryOpen({Describe("a", L1Kind::kBraidedSkipList)});
  EXPECT_CODE(status, kInvalidArgument);
  EXPECT_NE(status.ToString().find("Column families not opened: b"), std::string::npos) << status.ToString();
  EXPECT_CODE(TryOpen({}), kInvalidArgument);
  EXPECT_CODE(TryOpen({Describe("a", L1Kind::kNvTree), Describe("b", L1Kind::kNvTree)}), kInvalidArgument);
  EXPECT_CODE(TryOpen({Describe("a", L1Kind::kBraidedSkipList, ReverseBytewiseComparator()), Describe("b", L1Kind::kNvTree)}),
              kInvalidArgument);
  EXPECT_CODE(TryOpen({Describe("a", L1Kind::kBraidedSkipList), Describe("b", L1Kind::kNvTree), Describe("b", L1Kind::kNvTree)}),
              kInvalidArgument);
  options_.create_missing_column_families = false;
  EXPECT_CODE(TryOpen({Describe("a", L1Kind::kBraidedSkipList), Describe("b", L1Kind::kNvTree), Describe("c", L1Kind::kNvTree)}),
              kInvalidArgument);
  options_.create_missing_column_families = true;
  Open({Describe("b", L1Kind::kNvTree), Describe("c", L1Kind::kNvTree), Describe("default", TestedL1()),
        Describe("a", L1Kind::kBraidedSkipList)});
  ASSERT_EQ(handles_.size(), 4u);
  EXPECT_EQ(handles_[1]->GetName(), "c");
  EXPECT_EQ(handles_[2]->GetID(), 0u);
  EXPECT_EQ(Get(handles_[3].get(), "k"), "v");
  EXPECT_EQ(Get(handles_[0].get(), "k"), "w");
  EXPECT_EQ(Get(handles_[1].get(), "k"), "-");
}

TEST_F(DbColumnFamilyTest, HandlesOfAllThatAreThereCanBeHad) {
  const Handle a = Create("a");
  const Handle b = Create("b");
  ASSERT_OK(db_->Put({}, b.get(), "k", "v"));
  ASSERT_OK(db_->DropColumnFamily(a.get()));
  std::vector<Handle> all;
  ASSERT_OK(db_->GetColumnFamilies(&all));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->GetName(), "default");
  EXPECT_EQ(all[1]->GetName(), "b");
  EXPECT_EQ(Get(all[1].get(), "k"), "v");
}

TEST_F(DbColumnFamilyTest, MisuseIsAnError) {
  const Handle a = Create("a");
  Handle other;
  EXPECT_CODE(db_->CreateColumnFamily({}, "a", &other), kInvalidArgument);
  EXPECT_CODE(db_->CreateColumnFamily({}, "default", &other), kInvalidArgument);
  EXPECT_CODE(db_->CreateColumnFamily({}, "", &other), kInvalidArgument);
  EXPECT_CODE(db_->CreateColumnFamily({}, std::string(256, 'x'), &other), kInvalidArgument);
  EXPECT_CODE(db_->DropColumnFamily(db_->DefaultColumnFamily()), kInvalidArgument);
  EXPECT_CODE(db_->Put({}, nullptr, "k", "v"), kInvalidArgument);
  EXPECT_CODE(db_->NewIterator({}, nullptr)->status(), kInvalidArgument);
  WriteBatch batch;
  batch.Put("k", "v");
  batch.PutCF(77, "k", "v");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_EQ(Get(db_->DefaultColumnFamily(), "k"), "-") << "all of a batch or nothing";
  std::unique_ptr<DB> another;
  ASSERT_OK(DB::Open(options_, directory_.File("another"), &another));
  EXPECT_CODE(another->Put({}, a.get(), "k", "v"), kInvalidArgument);
  std::string value;
  EXPECT_CODE(another->Get({}, a.get(), "k", &value), kInvalidArgument);
}

TEST_F(DbColumnFamilyTest, OrdersOfTheirOwn) {
  ColumnFamilyOptions reverse;
  reverse.comparator = ReverseBytewiseComparator();
  Handle a;
  ASSERT_OK(db_->CreateColumnFamily(reverse, "reverse", &a));
  for (const char* key : {"b", "c", "a"}) ASSERT_OK(db_->Put({}, a.get(), key, key));
  for (int step = 0; step < 2; ++step) {
    const auto iterator = db_->NewIterator({}, a.get());
    std::string keys;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) keys += iterator->key();
    EXPECT_EQ(keys, "cba");
    ASSERT_OK(db_->CompactRange({}, a.get(), nullptr, nullptr));
  }
}

TEST_F(DbColumnFamilyTest, DroppedOnesAreReadUntilTheirHandlesGo) {
  Handle a = Create("a", TestedL1());
  for (int i = 0; i < 20000; ++i) ASSERT_OK(db_->Put({}, a.get(), "key" + std::to_string(i), std::string(100, 'x')));
  ASSERT_OK(db_->CompactRange({}, a.get(), nullptr, nullptr));
  for (int i = 0; i < 1000; ++i) ASSERT_OK(db_->Put({}, a.get(), "key" + std::to_string(i), "newer"));
  ASSERT_OK(db_->Put({}, "kept", "value"));
  const uint64_t before = Property("braiddb.pm-bytes-live");
  ASSERT_OK(db_->DropColumnFamily(a.get()));
  EXPECT_CODE(db_->DropColumnFamily(a.get()), kInvalidArgument);
  EXPECT_CODE(db_->Put({}, a.get(), "k", "v"), kInvalidArgument);
  EXPECT_EQ(Get(a.get(), "key1"), "newer");
  auto iterator = db_->NewIterator({}, a.get());
  a.reset();
  iterator->SeekToFirst();
  size_t keys = 0;
  for (; iterator->Valid(); iterator->Next()) ++keys;
  EXPECT_EQ(keys, 20000u);
  iterator.reset();
  // Its space comes back, and its name can be used again.
  EXPECT_TRUE(WaitUntil([&] { return Property("braiddb.pm-bytes-live") <= before / 10; }));
  a = Create("a", TestedL1());
  EXPECT_EQ(Get(a.get(), "key1"), "-");
  EXPECT_EQ(Scan(a.get()).size(), 0u);
  EXPECT_EQ(Get(db_->DefaultColumnFamily(), "kept"), "value");
}

TEST_F(DbColumnFamilyTest, ADropThatWasNotFinishedGoesOnAtTheNextOpen) {
  Handle a = Create("a", TestedL1());
  const Handle b = Create("b");
  for (int i = 0; i < 5000; ++i) ASSERT_OK(db_->Put({}, a.get(), "key" + std::to_string(i), std::string(100, 'x')));
  ASSERT_OK(db_->Put({}, b.get(), "k", "v"));
  // Before the drop: that flushes, and a merge of the table into sorted runs, which copies, may be done at once.
  const uint64_t before = Property("braiddb.pm-bytes-live");
  ASSERT_OK(db_->DropColumnFamily(a.get()));  // the handle is there until the close
  const_cast<Handle&>(b).reset();
  a.reset();
  Close();
  EXPECT_EQ(Names(), (std::vector<std::string>{"default", "b"}));
  Open({Describe("b", L1Kind::kBraidedSkipList)});
  EXPECT_TRUE(WaitUntil([&] { return Property("braiddb.pm-bytes-live") <= before / 10; }));
  EXPECT_EQ(Get(handles_[0].get(), "k"), "v");
}

// Random updates of several families, alone and in batches, against maps; with flushes, merges, snapshots and opens between.
TEST_F(DbColumnFamilyTest, UpdatesOfMissingFamiliesCanBeSkipped) {
  WriteOptions ignoring;
  ignoring.ignore_missing_column_families = true;
  const Handle kept = Create("kept");
  Handle dropped = Create("dropped");
  const uint32_t id = dropped->GetID();
  ASSERT_OK(db_->DropColumnFamily(dropped.get()));
  WriteBatch batch;
  batch.PutCF(id, "x", "1");
  batch.Put("a", "1");
  batch.DeleteCF(id, "x");
  batch.MergeCF(id, "x", "1");
  batch.Put(kept.get(), "b", "2");
  batch.DeleteRangeCF(id, "a", "z");
  batch.PutCF(id, "x", "1");
  WriteBatch with_range = batch;
  with_range.DeleteRangeCF(0, "a", "b");
  WriteBatch only;
  only.PutCF(id, "x", "1");
  only.DeleteRangeCF(id, "a", "z");
  const auto check = [&] {
    EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
    EXPECT_EQ(Get(db_->DefaultColumnFamily(), "a"), "-");
    ASSERT_OK(db_->Write(ignoring, only));
    ASSERT_OK(db_->Write(ignoring, batch));
    EXPECT_EQ(Get(db_->DefaultColumnFamily(), "a"), "1");
    EXPECT_EQ(Get(kept.get(), "b"), "2");
    ASSERT_OK(db_->Delete({}, kept.get(), "b"));
    ASSERT_OK(db_->Write(ignoring, with_range));
    EXPECT_EQ(Get(db_->DefaultColumnFamily(), "a"), "-");
    EXPECT_EQ(Get(kept.get(), "b"), "2");
  };
  {
    SCOPED_TRACE("there is a handle");
    check();
    EXPECT_CODE(db_->Put({}, dropped.get(), "x", "1"), kInvalidArgument);
    EXPECT_OK(db_->Put(ignoring, dropped.get(), "x", "1"));
    EXPECT_OK(db_->Delete(ignoring, dropped.get(), "x"));
    EXPECT_EQ(Get(dropped.get(), "x"), "-");
    EXPECT_CODE(db_->Put(ignoring, nullptr, "x", "1"), kInvalidArgument);
  }
  dropped.reset();
  SCOPED_TRACE("it is forgotten");
  ASSERT_OK(db_->WaitForCompaction());
  check();
  // Other errors are none of a missing family.
  batch.Put(std::string(kMaxKeySize + 1, 'k'), "v");
  EXPECT_CODE(db_->Write(ignoring, batch), kInvalidArgument);
  EXPECT_EQ(Get(db_->DefaultColumnFamily(), "a"), "-");
}

TEST_F(DbColumnFamilyTest, AFamilyMayBeDroppedBesideWritesThatSkipIt) {
  WriteOptions ignoring;
  ignoring.ignore_missing_column_families = true;
  for (int round = 0; round < 20; ++round) {
    const Handle family = Create("family");
    std::atomic<bool> ends{false};
    std::atomic<int> written{0};
    std::thread writer([&] {
      for (int i = 0; !ends; ++i) {
        WriteBatch batch;
        batch.Put("k", std::to_string(i));
        batch.Put(family.get(), "k", std::to_string(i));
        if (i % 3 == 0) batch.DeleteRange(family.get(), "a", "b");
        EXPECT_OK(db_->Write(ignoring, batch));
        WriteBatch merges;
        for (int merge = 0; merge < 20; ++merge) merges.MergeCF(family->GetID(), "m", "1");
        EXPECT_CODE(db_->Write({}, merges), kInvalidArgument);  // without an operator, or because the family was dropped
        EXPECT_EQ(Get(db_->DefaultColumnFamily(), "k"), std::to_string(i));
        EXPECT_OK(db_->Put(ignoring, family.get(), "l", "v"));
        ++written;
      }
    });
    while (written < 10) std::this_thread::yield();
    EXPECT_OK(db_->DropColumnFamily(family.get()));
    for (const int until = written + 10; written < until;) std::this_thread::yield();
    ends = true;
    writer.join();
  }
}

TEST_F(DbColumnFamilyTest, AgreeWithMaps) {
  Close();
  constexpr size_t kFamilies = 4;
  const std::vector<ColumnFamilyDescriptor> families = {
      Describe("default", TestedL1()), Describe("list", L1Kind::kBraidedSkipList), Describe("tree", L1Kind::kNvTree),
      Describe("reverse", TestedL1(), ReverseBytewiseComparator())};
  Open(families);
  std::vector<Content> expected(kFamilies);
  Random random(TestedL1() == L1Kind::kNvTree ? 1 : 2);
  const auto key = [&random] { return "key" + std::to_string(random.Uniform(400)); };
  for (int step = 0; step < 20000; ++step) {
    const size_t family = random.Uniform(kFamilies);
    ColumnFamilyHandle* const handle = handles_[family].get();
    const uint64_t draw = random.Uniform(1000);
    if (draw < 600) {
      const std::string k = key();
      const std::string value = std::to_string(step) + std::string(random.Uniform(200), 'v');
      ASSERT_OK(db_->Put({}, handle, k, value));
      expected[family][k] = value;
    } else if (draw < 750) {
      const std::string k = key();
      ASSERT_OK(db_->Delete({}, handle, k));
      expected[family].erase(k);
    } else if (draw < 850) {
      WriteBatch batch;
      for (int i = 0; i < 6; ++i) {
        const size_t to = random.Uniform(kFamilies);
        const std::string k = key();
        if (random.OneIn(4)) {
          batch.Delete(handles_[to].get(), k);
          expected[to].erase(k);
        } else {
          batch.Put(handles_[to].get(), k, std::to_string(step));
          expected[to][k] = std::to_string(step);
        }
      }
      ASSERT_OK(db_->Write({}, batch));
    } else if (draw < 985) {
      const std::string k = key();
      const auto there = expected[family].find(k);
      ASSERT_EQ(Get(handle, k), there == expected[family].end() ? "-" : there->second);
    } else if (draw < 990) {
      ASSERT_EQ(Scan(handle), expected[family]) << families[family].name;
    } else if (draw < 995) {
      ASSERT_OK(db_->Flush());
    } else if (draw < 998) {
      ASSERT_OK(db_->CompactRange({}, handle, nullptr, nullptr));
    } else {
      Close();
      Open(families);
    }
  }
  for (size_t i = 0; i < kFamilies; ++i) EXPECT_EQ(Scan(handles_[i].get()), expected[i]) << families[i].name;
}

// Writers of batches over two families, readers that must never see one without the other, and families that come and go.
TEST_F(DbColumnFamilyTest, BatchesAreAtomicAcrossFamiliesThatComeAndGo) {
  const Handle a = Create("a", TestedL1());
  const Handle b = Create("b");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      const std::string key = "k" + std::to_string(writer);
      for (int i = 0; !stop.load(); ++i) {
        WriteBatch batch;
        batch.Put(a.get(), key, std::to_string(i));
        batch.Put(key, std::to_string(i));
        batch.Put(b.get(), key, std::to_string(i));
        ASSERT_OK(db_->Write({}, batch));
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop.load()) {
      const Snapshot* const snapshot = db_->GetSnapshot();
      ReadOptions options;
      options.snapshot = snapshot;
      std::vector<std::string> values;
      const std::vector<Status> statuses =
          db_->MultiGet(options, {a.get(), db_->DefaultColumnFamily(), b.get()}, {"k0", "k0", "k0"}, &values);
      EXPECT_EQ(values[0], values[1]);
      EXPECT_EQ(values[0], values[2]);
      std::string of_a, of_b;
      EXPECT_EQ(db_->Get(options, b.get(), "k1", &of_b).code(), db_->Get(options, a.get(), "k1", &of_a).code());
      EXPECT_EQ(of_a, of_b);
      db_->ReleaseSnapshot(snapshot);
    }
  });
  for (int round = 0; round < 10; ++round) {
    Handle temporary = Create("temporary", round % 2 == 0 ? L1Kind::kNvTree : L1Kind::kBraidedSkipList);
    for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Put({}, temporary.get(), std::to_string(i), "x"));
    if (round % 3 == 0) {
      ASSERT_OK(db_->CompactRange({}, temporary.get(), nullptr, nullptr));
    }
    ASSERT_EQ(Scan(temporary.get()).size(), 500u);
    ASSERT_OK(db_->DropColumnFamily(temporary.get()));
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

// Where there are as many as there can be, a creation waits until ids of dropped ones can be given again.
TEST_F(DbColumnFamilyTest, ACreationWaitsForDroppedOnes) {
  std::vector<Handle> handles;
  Status status;
  while (status.ok()) {
    Handle handle;
    status = db_->CreateColumnFamily({}, "family" + std::to_string(handles.size()), &handle);
    if (status.ok()) handles.push_back(std::move(handle));
  }
  EXPECT_CODE(status, kNoSpace) << "none was dropped, so there is nothing to wait for";
  EXPECT_GT(handles.size(), 100u);
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(db_->Put({}, handles.back().get(), "key", "value"));
    ASSERT_OK(db_->DropColumnFamily(handles.back().get()));
    handles.pop_back();
  }
  // The longest wait of a creation is five seconds. On a loaded machine the ids may come later; then the creation is made again.
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kAlmostAll{4};
  for (int i = 0; i < 50; ++i) {
    handles.emplace_back();
    EXPECT_TRUE(WaitUntil([&] {
      const auto start = Clock::now();
      status = db_->CreateColumnFamily({}, "new" + std::to_string(i), &handles.back());
      EXPECT_TRUE(status.ok() || Clock::now() - start > kAlmostAll) << "it did not wait";
      return status.ok() || HasFailure();
    })) << status.ToString();
  }
  // One that has a handle is not waited for.
  ASSERT_OK(db_->DropColumnFamily(handles[0].get()));
  const auto start = Clock::now();
  Handle none;
  EXPECT_CODE(db_->CreateColumnFamily({}, "one more", &none), kNoSpace);
  EXPECT_LT(Clock::now() - start, kAlmostAll);
  handles.clear();
}

// A batch that was made before a family was dropped does not write to one that was created since.
TEST_F(DbColumnFamilyTest, IdsOfDroppedFamiliesAreGivenAgainLate) {
  uint32_t last = 0;
  WriteBatch batch;
  for (int i = 0; i < 10; ++i) {
    Handle handle = Create("family" + std::to_string(i));
    EXPECT_GT(handle->GetID(), last);
    last = handle->GetID();
    if (i == 0) batch.Put(handle.get(), "key", "of a family that is gone");
    ASSERT_OK(db_->DropColumnFamily(handle.get()));
    handle.reset();
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db_->WaitForCompaction());
  }
  Handle more = Create("more");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_TRUE(Scan(more.get()).empty());
  more.reset();
}

// The database's own records are no updates of a user's batch: an open would take others for damage.
TEST_F(DbColumnFamilyTest, BatchesCannotWriteToTheFamilyOfDeletedRanges) {
  const Handle family = Create("family");
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "b"));
  const uint32_t hidden = family->GetID() + 1;
  WriteBatch put, deletion, merge;
  put.PutCF(hidden, "key", "value");
  deletion.DeleteCF(hidden, "key");
  merge.MergeCF(hidden, "key", "operand");
  for (const WriteBatch* batch : {&put, &deletion, &merge}) {
    EXPECT_TRUE(db_->Write({}, *batch).IsInvalidArgument());
  }
  Close();
  Open({Describe("family", L1Kind::kBraidedSkipList)});
}

// Readers of properties while families come and go.
TEST_F(DbColumnFamilyTest, DramIsCountedBesideDrops) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      uint64_t bytes = 0;
      while (!stop.load()) ASSERT_TRUE(db_->GetIntProperty("braiddb.dram-bytes", &bytes));
    });
  }
  for (int i = 0; i < 300 / kSlowdown; ++i) {
    Handle family = Create("f");
    ASSERT_OK(db_->Put({}, family.get(), "key", "value"));
    ASSERT_OK(db_->DropColumnFamily(family.get()));
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
}

// A drop waits for a merge of its family, and others do not wait for the drop. Drops of other families do not wait.
TEST_F(DbColumnFamilyTest, ADropWaitsForAMergeOfItsFamilyOnly) {
  Handle family = Create("family"), other = Create("other");
  ASSERT_OK(db_->Put({}, family.get(), "key", "value"));
  ASSERT_OK(db_->Put({}, other.get(), "key", "value"));
  std::atomic<bool> merges{false};
  std::atomic<bool> may_go_on{false};
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
    merges.store(true);
    while (!may_go_on.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  SyncPoints::Instance().Enable();
  std::thread compaction([&] { EXPECT_OK(db_->CompactRange({}, family.get(), nullptr, nullptr)); });
  while (!merges.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::thread drop_other([&] { EXPECT_OK(db_->DropColumnFamily(other.get())); });
  drop_other.join();
  std::atomic<bool> dropped{false};
  std::thread drop([&] {
    EXPECT_OK(db_->DropColumnFamily(family.get()));
    dropped.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_FALSE(dropped.load());
  std::atomic<bool> listed{false};
  std::thread list([&] {
    std::vector<Handle> handles;
    EXPECT_OK(db_->GetColumnFamilies(&handles));
    listed.store(true);
  });
  EXPECT_TRUE(WaitUntil([&] { return listed.load(); })) << "it waits for the drop";
  may_go_on.store(true);
  for (std::thread* thread : {&compaction, &drop, &list}) thread->join();
  SyncPoints::Instance().Clear();
  EXPECT_TRUE(dropped.load());
  family.reset();
  other.reset();
  // Both are gone for good, and the names are free.
  std::vector<std::string> names;
  db_.reset();
  ASSERT_OK(DB::ListColumnFamilies(options_, directory_.File("db"), &names));
  EXPECT_EQ(names, std::vector<std::string>{"default"});
}

// Families are dropped beside merges of others, and the database is killed at once.
TEST_F(DbColumnFamilyTest, ADropBesideAMergeSurvivesAKill) {
  for (const bool merge_ends : {false, true}) {
    const std::string path = directory_.File(merge_ends ? "ended" : "killed");
    const int ended = RunInChild([&]() -> int {
      const auto db = OpenOrFail(options_, path);
      Handle big, small;
      if (!db->CreateColumnFamily(ColumnFamilyOptions(options_), "big", &big).ok()) return 1;
      if (!db->CreateColumnFamily(ColumnFamilyOptions(options_), "small", &small).ok()) return 1;
      for (int i = 0; i < 500; ++i) {
        if (!db->Put({}, big.get(), NumberedKey(i), "value").ok() || !db->Put({}, small.get(), NumberedKey(i), "value").ok())
          return 1;
      }
      Status dropped;
      SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
        std::thread([&] { dropped = db->DropColumnFamily(small.get()); }).join();
        if (!merge_ends) _exit(dropped.ok() ? 0 : 1);
      });
      SyncPoints::Instance().Enable();
      if (!db->CompactRange({}, big.get(), nullptr, nullptr).ok()) return 1;
      _exit(dropped.ok() ? 0 : 1);
    });
    ASSERT_EQ(ended, 0);
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, path, &report));
    ASSERT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
    std::vector<std::string> names;
    ASSERT_OK(DB::ListColumnFamilies(options_, path, &names));
    EXPECT_EQ(names, (std::vector<std::string>{"default", "big"}));
    const std::vector<ColumnFamilyDescriptor> families = {{"default", ColumnFamilyOptions(options_)},
                                                          {"big", ColumnFamilyOptions(options_)}};
    std::vector<Handle> handles;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options_, path, families, &handles, &db));
    ASSERT_OK(db->CompactRange({}, handles[1].get(), nullptr, nullptr));
    for (int i = 0; i < 500; ++i) {
      std::string value;
      ASSERT_OK(db->Get({}, handles[1].get(), NumberedKey(i), &value));
    }
    handles.clear();
  }
}

}  // namespace
}  // namespace braiddb::test
