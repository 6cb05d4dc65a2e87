// Fixtures of tests of copies: a database with 450 keys, and one with families of other orders and last levels.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {

class BackupTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = TinyOptions(2);
    options_.create_if_missing = true;
    ASSERT_OK(DB::Open(options_, directory_.Sub("db"), &db_));
    for (int i = 0; i < 500; ++i) {
      const std::string key = NumberedKey(i * 7 % 500);
      expected_[key] = PatternedValue(i, i % 50 == 0 ? 100'000 : 100);
      ASSERT_OK(db_->Put({}, key, expected_[key]));
    }
    for (int i = 0; i < 500; i += 10) {
      ASSERT_OK(db_->Delete({}, NumberedKey(i)));
      expected_.erase(NumberedKey(i));
    }
    expected_[""] = "";
    ASSERT_OK(db_->Put({}, "", ""));
  }
  std::unique_ptr<DB> OpenAt(const std::string& path, Options options) {
    options.create_if_missing = false;
    options.error_if_exists = false;
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options, path, &db));
    return db;
  }
  std::unique_ptr<DB> OpenCopy() { return OpenAt(directory_.Sub("copy"), options_); }
  std::unique_ptr<BackupEngine> OpenEngine() {
    std::unique_ptr<BackupEngine> engine;
    EXPECT_OK(BackupEngine::Open(directory_.Sub("backups"), &engine));
    return engine;
  }
  std::string Sub(const std::string& name) { return directory_.Sub(name); }
  // Changes one byte of a file.
  static void Damage(const std::string& path, uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  PmemTempDir directory_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> expected_;
};

// A comparator of the program's own.
class ByLength final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  const char* Name() const override { return "test.ByLength"; }
};

class FamilyCopyTest : public BackupTest {
 protected:
  using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;
  static std::vector<ColumnFamilyDescriptor> Families(const Options& options) {
    std::vector<ColumnFamilyDescriptor> families = {{"default", ColumnFamilyOptions(options)}, {"tree", {}}, {"by length", {}}};
    families[1].options.l1 = L1Kind::kNvTree;
    families[1].options.nv_leaf_size = 1024;
    families[1].options.comparator = ReverseBytewiseComparator();
    families[2].options.comparator = &ByLengthOrder();
    return families;
  }
  static const Comparator& ByLengthOrder() {
    static const ByLength order;
    return order;
  }
  static std::string KeysOf(DB* db, ColumnFamilyHandle* family) {
    std::string keys;
    const auto iterator = db->NewIterator({}, family);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      keys += std::string(iterator->key()) + "=" + std::string(iterator->value()) + " ";
    EXPECT_OK(iterator->status());
    return keys;
  }
  // Ids 1 and 3, since the one between is gone; a copy gives others.
  void Fill() {
    Handles made(3);
    const auto families = Families(options_);
    ASSERT_OK(db_->CreateColumnFamily(families[1].options, "tree", &made[0]));
    ASSERT_OK(db_->CreateColumnFamily({}, "gone", &made[1]));
    ASSERT_OK(db_->CreateColumnFamily(families[2].options, "by length", &made[2]));
    ASSERT_OK(db_->DropColumnFamily(made[1].get()));
    WriteBatch batch;
    for (const char* key : {"a", "b", "cc"}) batch.Put(made[0].get(), key, "t");
    for (const char* key : {"ccc", "b", "aa"}) batch.Put(made[2].get(), key, "l");
    ASSERT_OK(db_->Write({}, batch));
    handles_ = std::move(made);
  }
  void ExpectAll(const std::string& path) {
    Handles handles;
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(options_, path, Families(options_), &handles, &copy));
    EXPECT_EQ(KeysOf(copy.get(), handles[1].get()), "cc=t b=t a=t ");
    EXPECT_EQ(KeysOf(copy.get(), handles[2].get()), "b=l aa=l ccc=l ");
    EXPECT_EQ(handles[1]->GetOptions().l1, L1Kind::kNvTree);
    const auto iterator = copy->NewIterator({});
    auto wanted = expected_.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++wanted) {
      ASSERT_NE(wanted, expected_.end());
      ASSERT_EQ(iterator->key(), wanted->first);
      ASSERT_EQ(iterator->value(), wanted->second);
    }
    EXPECT_EQ(wanted, expected_.end());
    handles.clear();
    EXPECT_OK(copy->Close());
  }
  void TearDown() override { handles_.clear(); }

  Handles handles_;
};

}  // namespace braiddb::test
