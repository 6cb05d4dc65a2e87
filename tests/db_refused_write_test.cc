// A write that is refused after its log space was taken gives the space back.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "braiddb/db.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

constexpr uint64_t kMiB = 1ull << 20;

class RefusedWriteTest : public testing::Test {
 protected:
  void Open(uint64_t max_region_size) {
    Options options;
    options.create_if_missing = true;
    options.regions = 1;
    options.max_region_size = max_region_size;
    const Status status = DB::Open(options, directory_.Sub("db"), &db_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  test::PmemTempDir directory_;
  std::unique_ptr<DB> db_;
};

TEST_F(RefusedWriteTest, LargePutsToADroppedFamilyLeakNothing) {
  Open(128 * kMiB);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_TRUE(db_->CreateColumnFamily(ColumnFamilyOptions(), "dropped", &family).ok());
  ASSERT_TRUE(db_->Put(WriteOptions(), "small", "value").ok());
  ASSERT_TRUE(db_->DropColumnFamily(family.get()).ok());
  const std::string value(4 * kMiB, 'v');
  for (int i = 0; i < 100; ++i) {
    const Status status = db_->Put(WriteOptions(), family.get(), "key", value);
    ASSERT_TRUE(!status.ok() && !status.IsNoSpace()) << i << ": " << status.ToString();
  }
  for (int i = 0; i < 5; ++i) {
    const Status status = db_->Put(WriteOptions(), "key" + std::to_string(i), value);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace braiddb
