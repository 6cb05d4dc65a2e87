// The list of column families of a database that is open, while its MANIFEST changes all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;

class ListFamiliesTest : public DbOpenTest {
 protected:
  std::vector<std::string> List() {
    std::vector<std::string> names;
    EXPECT_OK(DB::ListColumnFamilies(TinyOptions(), path_, &names));
    return names;
  }
};

std::string NameOf(int number) { return "family" + std::to_string(number); }

// Nothing that was there before a call is missing, and nothing is there that never was, here and in another process.
TEST_F(ListFamiliesTest, WhileFamiliesAndTablesComeAndGo) {
  const Options options = TinyOptions();
  auto db = OpenOrFail(options, path_);
  ASSERT_NE(db, nullptr);
  const int families = 120 / kSlowdown;
  constexpr int kLists = 10;  // at least, if need be with more families
  constexpr int kMostFamilies = 900;
  std::atomic<int> created{0}, lists{0};
  std::atomic<bool> stop{false};
  std::thread creator([&] {
    for (int i = 0; i < families || (lists < kLists && i < kMostFamilies); ++i) {
      Handle stays, goes;
      EXPECT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options), NameOf(i), &stays));
      created.store(i + 1);
      EXPECT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options), "goes", &goes));
      EXPECT_OK(db->DropColumnFamily(goes.get()));
      if (i >= families) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the lists are late
    }
    EXPECT_TRUE(WaitUntil([&] { return lists >= kLists || HasFailure(); }));
    stop = true;
  });
  std::thread committer([&] {
    for (int i = 0; !stop; ++i) {
      EXPECT_OK(db->Put({}, NumberedKey(i), "value"));
      EXPECT_OK(db->Flush());
    }
  });
  const auto check = [&](const std::vector<std::string>& names, int least) {
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names.front(), "default");
    for (int i = 0; i < least; ++i) ASSERT_EQ(std::count(names.begin(), names.end(), NameOf(i)), 1) << i;
    for (const std::string& name : names) EXPECT_TRUE(name == "default" || name == "goes" || name.starts_with("family")) << name;
  };
  while (!stop) {
    const int least = created.load();
    check(List(), least);
    ++lists;
  }
  creator.join();
  committer.join();
  EXPECT_GE(lists, kLists);
  const auto list_elsewhere = [&] {
    std::vector<std::string> names;
    if (!DB::ListColumnFamilies(options, path_, &names).ok()) return 1000;
    return static_cast<int>(names.size());
  };
  EXPECT_EQ(RunInChild(list_elsewhere), created + 1);
  db.reset();
  EXPECT_EQ(List().size(), static_cast<size_t>(created) + 1);
}

// Two commits come between the reader's copies of the selector and of the slot, or of parts of it: it reads again.
TEST_F(ListFamiliesTest, ATornCopyIsReadAgain) {
  auto db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  int copies = 0;
  SyncPoints::Instance().SetCallback("ReadManifest:Copied", [&](void* copy) {
    if (++copies < 4) static_cast<uint64_t*>(copy)[1] += 1000;  // the selector of a later time
  });
  SyncPoints::Instance().Enable();
  EXPECT_EQ(List(), (std::vector<std::string>{"default"}));
  SyncPoints::Instance().Clear();
  EXPECT_EQ(copies, 4);
}

TEST_F(ListFamiliesTest, WhatIsNotThereOrDamagedIsAnError) {
  std::vector<std::string> names;
  EXPECT_CODE(DB::ListColumnFamilies(TinyOptions(), path_, &names), kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
  Fill(TinyOptions(), 10);
  const auto change_all_parts = [this](const auto& change) {
    std::map<std::string, std::string> pristine;
    for (const std::string& name : RegionFiles(path_)) {
      if (!name.ends_with(".pmem")) continue;
      pristine[path_ + "/" + name] = ReadFileOrDie(path_ + "/" + name);
      WriteFileOrDie(path_ + "/" + name, change(pristine[path_ + "/" + name]));
    }
    return pristine;
  };
  const std::function<std::string(std::string)> kDamages[] = {
      [](std::string bytes) {
        for (size_t at = 0; (at = bytes.find("BRAIDMNF", at)) != std::string::npos; ++at) bytes[at] = 'X';
        return bytes;
      },
      [](const std::string& bytes) { return bytes.substr(0, 4096); },
      [](const std::string& bytes) { return std::string(bytes.size(), 'x'); },
  };
  for (const auto& damage : kDamages) {
    const auto pristine = change_all_parts(damage);
    EXPECT_CODE(DB::ListColumnFamilies(TinyOptions(), path_, &names), kCorruption);
    for (const auto& [path, bytes] : pristine) WriteFileOrDie(path, bytes);
    EXPECT_OK(DB::ListColumnFamilies(TinyOptions(), path_, &names));
  }
}

}  // namespace
}  // namespace braiddb::test
