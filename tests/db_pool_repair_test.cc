// What an open does to PMDK's header before PMDK sees it: the shutdown state goes, an odd run id becomes even.
#include <gtest/gtest.h>
#include <libpmemobj.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"
#include "tests/support/pool_header.h"

namespace braiddb::test {
namespace {

class DbPoolRepairTest : public DbOpenTest {
 protected:
  void SetUp() override {
    DbOpenTest::SetUp();
    auto db = OpenOrFail(MakeOptions(), path_);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < 30; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), std::string(700'000, 'v')));
    ASSERT_OK(db->Close());
    ASSERT_TRUE(std::filesystem::exists(path_ + "/region-0/000001.pmem")) << "a part was added to the open pool";
  }
  Options MakeOptions() const {
    Options options = TinyOptions(1);
    options.max_region_size = 256ull << 20;
    return options;
  }
  std::string part() const { return path_ + "/region-0/000000.pmem"; }

  void ExpectWhole(DB* db) {
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(GetOrText(db, NumberedKey(i)).size(), 700'000u) << i;
  }
  void ExpectOpens() {
    auto db = OpenOrFail(MakeOptions(), path_);
    ExpectWhole(db.get());
    EXPECT_OK(db->Close());
    const PoolHeader header(part());
    EXPECT_TRUE(header.view().HeaderIsSound());
    EXPECT_FALSE(header.view().ShutdownStateIsThere());
    EXPECT_FALSE(header.view().RunIdIsOdd());
  }
  // Whether PMDK by itself would open the pool.
  bool PmdkOpens() const {
    PMEMobjpool* const pool = pmemobj_open((path_ + "/region-0/region.set").c_str(), kFewLanesLayout);
    if (pool != nullptr) pmemobj_close(pool);
    return pool != nullptr;
  }
  static void SetPmdkDefault(int on) { ASSERT_EQ(pmemobj_ctl_set(nullptr, "sds.at_create", &on), 0); }
  static int PmdkDefault() {
    int on = -1;
    EXPECT_EQ(pmemobj_ctl_get(nullptr, "sds.at_create", &on), 0);
    return on;
  }
};

TEST_F(DbPoolRepairTest, ANewPoolHasNoShutdownState) {
  for (const int on : {0, 1}) {
    SetPmdkDefault(on);
    ASSERT_OK(DB::Destroy(MakeOptions(), path_));
    SetUp();
    EXPECT_EQ(PmdkDefault(), on) << "the program's own choice stays";
    EXPECT_FALSE(PoolHeader(part()).view().ShutdownStateIsThere());
  }
}

// As a DAX device leaves it: the process was killed after the region grew, so the sum lacks the new part.
TEST_F(DbPoolRepairTest, ADatabaseThatPmdkTakesForDamagedOpens) {
  PoolHeader header(part());
  header.SetShutdownState(7, 0x1234);
  header.Write();
  EXPECT_FALSE(PmdkOpens()) << "the canary";
  EXPECT_TRUE(ChecksAsSound(path_));
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::OpenForReadOnly(MakeOptions(), path_, &db));
    ExpectWhole(db.get());
  }
  EXPECT_EQ(PoolHeader(part()).bytes(), header.bytes()) << "only an open that writes changes it";
  RepairReport report;
  RepairOptions options;
  options.target = MakeOptions();
  ASSERT_OK(RepairDatabase(options, path_, path_ + "-saved", &report));
  EXPECT_EQ(report.keys, 30u);
  EXPECT_TRUE(report.damage.empty());
  ExpectOpens();
  const PoolHeader opened(part());
  EXPECT_EQ(opened.bytes().substr(kPoolShutdownStateOffset, kPoolShutdownStateBytes), std::string(kPoolShutdownStateBytes, '\0'));
  EXPECT_TRUE(PmdkOpens());
}

// A crash leaves any of the stores of the conversion, and any words of the shutdown state.
TEST_F(DbPoolRepairTest, ACrashAtAnyStoreOfTheConversion) {
  const PoolHeader after(part());
  PoolHeader before = after;
  before.SetShutdownState(7, 0x1234);
  bool pmdk_refuses_a_half = false;
  for (uint32_t stored = 0; stored < 32; ++stored) {
    SCOPED_TRACE(stored);
    PoolHeader header = before;
    if ((stored & 1) != 0) header.Take(after, kPoolFeaturesOffset, 4);
    if ((stored & 2) != 0) header.Take(after, kPoolHeaderChecksumOffset, 8);
    if ((stored & 4) != 0) header.Take(after, kPoolShutdownStateOffset, 8);
    if ((stored & 8) != 0) header.Take(after, kPoolShutdownStateOffset + 16, 8);
    if ((stored & 16) != 0) header.Take(after, kPoolShutdownStateOffset + 56, 8);
    header.Write();
    if ((stored & 3) == 1 || (stored & 3) == 2) pmdk_refuses_a_half |= !PmdkOpens();
    EXPECT_TRUE(ChecksAsSound(path_));
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::OpenForReadOnly(MakeOptions(), path_, &db));
    db.reset();
    ExpectOpens();
  }
  EXPECT_TRUE(pmdk_refuses_a_half) << "the canary";
}

TEST_F(DbPoolRepairTest, ACallOfTheConversionFails) {
  const PoolHeader sound(part());
  const auto open_while_calls_fail = [&](int64_t first, const char* function) {
    PoolHeader header = sound;
    header.SetShutdownState(7, 0x1234);
    header.Set(kPoolRunIdOffset, header.Get(kPoolRunIdOffset) + 1);
    header.Write();
    FailingCalls::Arm(first, EIO, FailingCalls::kForEver, function);
    std::unique_ptr<DB> db;
    Status status = DB::Open(MakeOptions(), path_, &db);
    FailingCalls::Stop();
    if (!status.ok()) {
      EXPECT_CODE(status, kIOError);
      EXPECT_NE(status.message().find("000000.pmem"), std::string_view::npos) << status.ToString();
      ExpectOpens();
    }
    return status;
  };
  int64_t call = 0;
  while (!open_while_calls_fail(call, "pwrite").ok()) ++call;
  EXPECT_EQ(call, 4) << "three for the shutdown state, one for the run id";
  EXPECT_FALSE(open_while_calls_fail(0, "fsync").ok());
}

TEST_F(DbPoolRepairTest, AnOddRunIdIsFoundAndRepaired) {
  PoolHeader header(part());
  header.Set(kPoolRunIdOffset, header.Get(kPoolRunIdOffset) | 1);
  header.Write();
  EXPECT_FALSE(PmdkOpens()) << "the canary";
  CheckReport report;
  ASSERT_OK(CheckDatabase({}, path_, &report));
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_NE(report.findings[0].what.find("run id"), std::string::npos);
  EXPECT_NE(report.findings[0].where.find("byte 6152"), std::string::npos);
  std::unique_ptr<DB> db;
  EXPECT_OK(DB::OpenForReadOnly(MakeOptions(), path_, &db));
  db.reset();
  ExpectOpens();
  EXPECT_TRUE(ChecksAsSound(path_));
}

// A damaged word of the first pages: what an open refuses, the check finds, and every refusal says why.
TEST_F(DbPoolRepairTest, CheckFindsWhatAnOpenRefuses) {
  const PoolHeader sound(part());
  for (uint64_t offset = 0; offset < PoolHeader::kBytes; offset += 8) {
    // Words that are used, and some of the others.
    if (sound.Get(offset) == 0 && offset % 256 != 0 && offset != kPoolShutdownStateOffset) continue;
    SCOPED_TRACE(offset);
    PoolHeader header = sound;
    header.Set(offset, sound.Get(offset) ^ uint64_t{1} << (offset * 7 % 61));
    header.Write();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, path_, &report));
    std::unique_ptr<DB> db;
    const Status status = DB::Open(MakeOptions(), path_, &db);
    EXPECT_FALSE(!status.ok() && report.sound()) << status.ToString();
    EXPECT_EQ(status.ToString().find("Success"), std::string::npos) << status.ToString();
    db.reset();
    sound.Write();
  }
}

}  // namespace
}  // namespace braiddb::test
