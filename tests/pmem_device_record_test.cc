// Unsafe shutdowns and memory modules that are exchanged: told when the region was in use, and acknowledged by a check.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "pmem/device_record.h"
#include "pmem/device_record_for_test.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fake_system.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

constexpr char kFirst[] = "8680-56341200";
constexpr char kSecond[] = "8680-57341200";

class DeviceRecordTest : public testing::Test {
 protected:
  DeviceRecordTest() {
    fs::create_directories(directory_.File("root"));
    fs::create_directories(directory_.File("data"));
    system_ = std::make_unique<FakeSystem>(directory_.File("root"));
    system_->AddBlockDevice("pmem0", "259:0", "ndbus0/region0/namespace0.0", "0");
    system_->Mount("259:0", fs::canonical(directory_.File("data")), "ext4", "/dev/pmem0", "rw", "rw,dax=always");
    SetModule(0, "nmem0", kFirst, "2");
    SetDeviceRootForTest(system_->root());
  }
  ~DeviceRecordTest() override { SetDeviceRootForTest(""); }

  void SetModule(int place, const std::string& name, const std::string& identity, const std::string& count) const {
    system_->Write("/sys/devices/ndbus0/region0/mapping" + std::to_string(place), name + ",0,8589934592,0\n");
    const std::string module = "/sys/devices/ndbus0/" + name + "/nfit/";
    system_->Write(module + "id", identity + "\n");
    fs::remove(system_->root() + module + "dirty_shutdown");
    if (!count.empty()) system_->Write(module + "dirty_shutdown", count + "\n");
  }

  Options MakeOptions() const {
    Options options = TinyOptions(1);
    options.max_region_size = 256ull << 20;
    return options;
  }
  void Write(int from, int count) {
    auto db = OpenOrFail(MakeOptions(), path_);
    ASSERT_NE(db, nullptr);
    for (int i = from; i < from + count; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), std::string(700'000, 'v')));
    EXPECT_OK(db->Close());
  }
  // A process makes the database, grows it, and is killed.
  void WriteAndDie() {
    ASSERT_EQ(RunInChild([&] {
                std::unique_ptr<DB> db;
                if (!DB::Open(MakeOptions(), path_, &db).ok()) return 1;
                for (int i = 0; i < 30; ++i) {
                  if (!db->Put({}, NumberedKey(i), std::string(700'000, 'v')).ok()) return 2;
                }
                _exit(0);
              }),
              0);
  }
  Status TryOpen() const {
    std::unique_ptr<DB> db;
    return DB::Open(MakeOptions(), path_, &db);
  }
  Status TryOpenForReadOnly() const {
    std::unique_ptr<DB> db;
    return DB::OpenForReadOnly(MakeOptions(), path_, &db);
  }
  std::string Record() const { return ReadFileOrDie(path_ + "/region-0/DEVICES"); }
  bool HasRecord() const { return fs::exists(path_ + "/region-0/DEVICES"); }

  void ExpectRefused(const std::string& name, const std::string& text) {
    for (const Status& status : {TryOpen(), TryOpenForReadOnly()}) {
      EXPECT_CODE(status, kCorruption);
      EXPECT_NE(status.message().find(name), std::string_view::npos) << status.ToString();
      EXPECT_NE(status.message().find(text), std::string_view::npos) << status.ToString();
      EXPECT_NE(status.message().find("--acknowledge-unsafe-shutdown"), std::string_view::npos) << status.ToString();
    }
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, path_, &report));
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_NE(report.findings[0].what.find(text), std::string::npos) << report.findings[0].what;
  }
  void ExpectAcknowledged() {
    CheckOptions options;
    options.acknowledge_unsafe_shutdown = true;
    CheckReport report;
    ASSERT_OK(CheckDatabase(options, path_, &report));
    EXPECT_TRUE(report.sound());
    EXPECT_TRUE(ChecksAsSound(path_));
    EXPECT_OK(TryOpenForReadOnly());
    auto db = OpenOrFail(MakeOptions(), path_);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(GetOrText(db.get(), NumberedKey(i)).size(), 700'000u) << i;
    EXPECT_OK(db->Close());
  }

  const TestDirectory directory_;
  const std::string path_ = directory_.File("data") + "/db";
  std::unique_ptr<FakeSystem> system_;
};

TEST_F(DeviceRecordTest, TheRecordSaysWhetherTheRegionIsInUse) {
  {
    auto db = OpenOrFail(MakeOptions(), path_);
    ASSERT_NE(db, nullptr);
    EXPECT_NE(Record().find("state in-use\nmodule nmem0 2 8680-56341200\n"), std::string::npos) << Record();
    EXPECT_OK(db->Close());
  }
  EXPECT_NE(Record().find("state closed\n"), std::string::npos) << Record();
  EXPECT_OK(DB::Destroy(MakeOptions(), path_));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(DeviceRecordTest, AKillLosesNothing) {
  WriteAndDie();
  EXPECT_NE(Record().find("in-use"), std::string::npos);
  EXPECT_TRUE(ChecksAsSound(path_));
  EXPECT_OK(TryOpenForReadOnly());
  Write(30, 1);
}

TEST_F(DeviceRecordTest, AnUnsafeShutdownInUseIsTold) {
  WriteAndDie();
  SetModule(0, "nmem0", kFirst, "3");
  ExpectRefused("nmem0 (8680-56341200) of pmem0 counts 3 unsafe shutdowns, and 2", "unsafe shutdowns");
  ExpectRefused("nmem0", "unsafe shutdowns");
  ExpectAcknowledged();
}

TEST_F(DeviceRecordTest, AnUnsafeShutdownOfAClosedRegionIsNothing) {
  Write(0, 30);
  SetModule(0, "nmem0", kFirst, "3");
  EXPECT_TRUE(ChecksAsSound(path_));
  Write(30, 1);
  EXPECT_NE(Record().find("nmem0 3 "), std::string::npos) << Record();
}

TEST_F(DeviceRecordTest, AnyModuleOfAnInterleavedSetCounts) {
  SetModule(1, "nmem1", kSecond, "0");
  WriteAndDie();
  SetModule(0, "nmem1", kFirst, "2");  // the system names them the other way round
  SetModule(1, "nmem0", kSecond, "1");
  ExpectRefused("nmem0 (8680-57341200)", "counts 1 unsafe shutdowns, and 0");
  ExpectAcknowledged();
}

TEST_F(DeviceRecordTest, AnotherModuleIsToldIfTheRegionWasInUse) {
  WriteAndDie();
  SetModule(0, "nmem0", kSecond, "2");
  ExpectRefused("nmem0 (8680-56341200)", "nmem0 (8680-57341200) of pmem0 now");
  ExpectAcknowledged();
  SetModule(0, "nmem0", kFirst, "9");
  Write(30, 1);  // it was closed: it may move
}

TEST_F(DeviceRecordTest, ModulesThatAreAddedToAnOpenRegionAreRecordedBeforeItGrows) {
  ASSERT_EQ(RunInChild([&] {
              std::unique_ptr<DB> db;
              if (!DB::Open(MakeOptions(), path_, &db).ok()) return 1;
              SetModule(1, "nmem1", kSecond, "5");
              for (int i = 0; i < 30; ++i) {
                if (!db->Put({}, NumberedKey(i), std::string(700'000, 'v')).ok()) return 2;
              }
              _exit(0);
            }),
            0);
  EXPECT_NE(Record().find("nmem1 5 "), std::string::npos) << Record();
  SetModule(1, "nmem1", kSecond, "6");
  ExpectRefused("nmem1", "counts 6 unsafe shutdowns, and 5");
}

TEST_F(DeviceRecordTest, AnUnknownCountSaysNothing) {
  SetModule(0, "nmem0", kFirst, "");
  WriteAndDie();
  EXPECT_NE(Record().find("nmem0 - 8680"), std::string::npos) << Record();
  SetModule(0, "nmem0", kFirst, "3");
  Write(30, 1);
}

TEST_F(DeviceRecordTest, OldDatabasesGetARecord) {
  Write(0, 30);
  fs::remove(path_ + "/region-0/DEVICES");
  SetModule(0, "nmem0", kFirst, "7");
  EXPECT_TRUE(ChecksAsSound(path_));
  Write(30, 1);
  EXPECT_NE(Record().find("nmem0 7 "), std::string::npos);
}

TEST_F(DeviceRecordTest, ADamagedRecordIsToldAndAcknowledged) {
  Write(0, 30);
  const std::string record = Record();
  for (const size_t cut : {size_t{0}, record.size() / 2, record.size() - 1}) {
    WriteFileOrDie(path_ + "/region-0/DEVICES", record.substr(0, cut));
    ExpectRefused("DEVICES", "damaged");
    ExpectAcknowledged();
  }
}

TEST_F(DeviceRecordTest, MediaWithoutModulesHaveNoRecord) {
  Write(0, 30);
  SetDeviceRootForTest("");  // this machine, and no persistent memory
  Write(30, 1);
  EXPECT_FALSE(HasRecord()) << "closed on a module, moved elsewhere";
}

TEST_F(DeviceRecordTest, WithoutTheSystemsListsNothingIsTold) {
  WriteAndDie();
  const std::string record = Record();
  SetDeviceRootForTest(directory_.File("nowhere"));
  Write(30, 1);
  EXPECT_EQ(Record(), record);
}

TEST_F(DeviceRecordTest, RepairNeedsNoAcknowledgement) {
  WriteAndDie();
  SetModule(0, "nmem0", kFirst, "3");
  RepairOptions options;
  options.target = MakeOptions();
  RepairReport report;
  ASSERT_OK(RepairDatabase(options, path_, path_ + "-saved", &report));
  EXPECT_EQ(report.keys, 30u);
}

TEST(DeviceRecordFormatTest, WhatIsNotWrittenByItIsDamage) {
  DeviceRecord record;
  record.in_use = true;
  record.modules = {{"nmem0", 2, "a b"}, {"nmem1", std::nullopt, "c"}};
  DeviceRecord parsed;
  ASSERT_OK(DeviceRecord::Parse(record.ToText(), "x", &parsed));
  EXPECT_TRUE(parsed.in_use);
  EXPECT_EQ(parsed.modules, record.modules);
  const std::string text = record.ToText();
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_CODE(DeviceRecord::Parse(damaged, "x", &parsed), kCorruption) << i;
    EXPECT_CODE(DeviceRecord::Parse(text.substr(0, i), "x", &parsed), kCorruption) << i;
  }
}

}  // namespace
}  // namespace braiddb::test
