// Many column families: the MANIFEST grows with them, and merges go on whatever it lists.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;

class DbManyFamiliesTest : public testing::Test {
 protected:
  void Open(int families) {
    std::vector<ColumnFamilyDescriptor> descriptors;
    for (int i = 0; i < families; ++i) descriptors.push_back({"f" + std::to_string(i), ColumnFamilyOptions(options_)});
    options_.create_missing_column_families = true;
    ASSERT_OK(DB::Open(options_, directory_.File("db"), descriptors, &handles_, &db_));
  }
  void Close() {
    handles_.clear();
    if (db_ != nullptr) {
      EXPECT_OK(db_->Close());
    }
    db_.reset();
  }
  void TearDown() override { Close(); }
  uint64_t Property(const char* name) {
    uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty(name, &value)) << name;
    return value;
  }
  // One key in each family, and a flush.
  void WriteAll(int round) {
    for (const Handle& handle : handles_) ASSERT_OK(db_->Put({}, handle.get(), "key", std::to_string(round)));
    ASSERT_OK(db_->Flush());
  }
  void ExpectAll(int round) {
    std::string value;
    for (const Handle& handle : handles_) {
      ASSERT_OK(db_->Get({}, handle.get(), "key", &value));
      EXPECT_EQ(value, std::to_string(round));
    }
  }

  TestDirectory directory_;
  Options options_ = TinyOptions(1);
  std::vector<Handle> handles_;
  std::unique_ptr<DB> db_;
};

// More families than the first MANIFEST has room for, each with tables: across opens, checks and reads of a live database.
TEST_F(DbManyFamiliesTest, TheManifestGrowsWithThem) {
  options_.disable_auto_compaction = true;
  for (const int families : {3, 40, 200}) {
    Open(families);
    for (int round = 0; round < 3; ++round) WriteAll(round);
    std::vector<std::string> names;
    ASSERT_OK(DB::ListColumnFamilies(options_, directory_.File("db"), &names));
    EXPECT_EQ(names.size(), static_cast<size_t>(families) + 1);
    ExpectAll(2);
    Close();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound());
  }
  Open(200);
  ExpectAll(2);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ExpectAll(2);
}

// Each memtable reserves address space for what it holds. An iterator keeps the memtables of its time.
TEST_F(DbManyFamiliesTest, KeptMemtablesTakeLittleAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space, too";
#endif
  constexpr int kFamilies = 100;
  constexpr int kFlushes = 5;
  options_.disable_auto_compaction = true;
  Open(kFamilies);
  WriteAll(0);
  const auto mapped_kib = [] {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
  };
  const uint64_t before = mapped_kib();
  std::vector<std::unique_ptr<Iterator>> kept;
  for (int round = 1; round <= kFlushes; ++round) {
    for (const Handle& handle : handles_) ASSERT_OK(db_->Put({}, handle.get(), "key", std::to_string(round)));
    kept.emplace_back(db_->NewIterator({}, handles_[0].get()));
    ASSERT_OK(db_->Flush());
  }
  EXPECT_LT((mapped_kib() - before) / (kFamilies * kFlushes), 1024u) << "KiB for each memtable";
  EXPECT_GT((mapped_kib() - before) / (kFamilies * kFlushes), 16u) << "the memtables are kept";
}

// The family with the most tables has none that the MANIFEST lists: others are merged first.
TEST_F(DbManyFamiliesTest, MergesGoOnWhenTheManifestListsAsManyAsItCan) {
  options_.disable_auto_compaction = true;
  Open(300);
  for (int round = 0; round < 8; ++round) WriteAll(round);
  for (int round = 0; round < 12; ++round) {
    ASSERT_OK(db_->Put({}, "key", std::to_string(round)));
    ASSERT_OK(db_->Flush());
  }
  auto compacted = std::async(std::launch::async, [this] { return db_->CompactRange({}, nullptr, nullptr); });
  ASSERT_EQ(compacted.wait_for(std::chrono::seconds(60)), std::future_status::ready) << "CompactRange does not return";
  ASSERT_OK(compacted.get());
  ExpectAll(7);
}

// A relocation makes a table of copies for each family, when checkpoints have filled the MANIFEST.
TEST_F(DbManyFamiliesTest, RelocationsFindRoomInAFullManifest) {
  options_.space_slack = 1ull << 40;
  Open(300);
  const std::string value(200, 'v');
  for (int round = 0; round < 2; ++round) {
    for (int key = round; key < 20; key += 1 + round) {
      for (const Handle& handle : handles_) ASSERT_OK(db_->Put({}, handle.get(), NumberedKey(key), value));
    }
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  Close();
  options_.space_slack = 64 << 10;
  options_.disable_auto_compaction = true;
  Open(300);
  for (int round = 0; round < 8; ++round) WriteAll(round);
  ChangedOptions changed;
  changed.disable_auto_compaction = false;
  ASSERT_OK(db_->SetOptions(db_->DefaultColumnFamily(), changed));
  ASSERT_OK(db_->WaitForCompaction());
  ExpectAll(7);
}

// Relocations, checkpoints and merges of many families under writes. Each flush makes a table of each family, so that L0 grows
// beyond what a small MANIFEST lists.
TEST_F(DbManyFamiliesTest, OneWriterOverwritesManyFamilies) {
  options_.memtable_size = 256 << 10;
  options_.space_slack = 1 << 20;
  Open(64);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  Random random(1);
  const std::string value(100, 'v');
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key" + std::to_string(random.Uniform(1000));
      ASSERT_OK(db_->Put({}, handles_[random.Uniform(handles_.size())].get(), key, value));
    }
  }
  ASSERT_OK(db_->WaitForCompaction());
}

}  // namespace
}  // namespace braiddb::test
