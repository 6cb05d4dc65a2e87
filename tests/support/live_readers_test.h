// Test support: a writer and live readers of one database.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {

struct LiveCase {
  const char* name;
  MemtableKind memtable;
  uint32_t regions;
};
inline constexpr LiveCase kLiveCases[] = {
    {"hash", MemtableKind::kHash, 1}, {"skiplist", MemtableKind::kSkipList, 1}, {"regions", MemtableKind::kHash, 2}};

class LiveReadersTest : public DbOpenTest, public testing::WithParamInterface<LiveCase> {
 protected:
  void SetUp() override {
    options_ = TinyOptions(GetParam().regions);
    options_.l1 = L1Kind::kBraidedSkipList;
    options_.memtable = GetParam().memtable;
    options_.merge_operator = std::make_shared<AppendOperator>();
  }
  std::unique_ptr<DB> OpenReader() {
    std::unique_ptr<DB> reader;
    const Status status = DB::OpenForReadOnly(options_, path_, &reader);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return reader;
  }
  // With the default family and one more.
  Status OpenReaderOf(const std::string& family, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles,
                      std::unique_ptr<DB>* reader) {
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)},
                                                       {family, ColumnFamilyOptions(options_)}};
    return DB::OpenForReadOnly(options_, path_, families, handles, reader);
  }

  Options options_;
};

}  // namespace braiddb::test
