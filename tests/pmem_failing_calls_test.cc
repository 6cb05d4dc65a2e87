// Every call of the system that regions make fails once: a clear error each, nothing lost, and it works again afterwards.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "pmem/part_list.h"
#include "pmem/persist_mode.h"
#include "pmem/region.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"
#include "tests/support/failing_calls.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;
using test::FailingCalls;
using test::PmemOptions;
using test::PmemTempDir;

constexpr uint64_t kMiB = 1ull << 20;

class FailingCallsTest : public testing::Test {
 protected:
  std::unique_ptr<RegionSet> Create() {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Create(options_, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  std::unique_ptr<RegionSet> Open() {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Open(options_, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }

  // `prepare`, `work`, `verify` for each call that `work` makes, with that call failing. `work` may succeed where a call is of no
  // importance. Stops when `work` makes no more calls.
  struct Steps {
    std::function<void()> prepare;
    std::function<Status()> work;
    std::function<void(const Status&)> verify;
  };
  void ForEachCall(const Steps& steps) {
    int refused = 0;
    for (int64_t call = 0;; ++call) {
      ASSERT_NO_FATAL_FAILURE(steps.prepare());
      const int error = call % 2 == 0 ? EIO : ENOSPC;
      FailingCalls::Arm(call, error);
      const Status status = steps.work();
      FailingCalls::Stop();
      SCOPED_TRACE("call " + std::to_string(call) + ", " + FailingCalls::failed_name() + ", " + std::strerror(error));
      if (!status.ok()) {
        ++refused;
        EXPECT_NE(status.message().find(dir_.path()), std::string_view::npos) << "names no path: " << status.ToString();
        EXPECT_FALSE(status.IsNotFound()) << status.ToString();
      }
      ASSERT_NO_FATAL_FAILURE(steps.verify(status));
      if (HasFailure()) return;
      if (FailingCalls::failed() == 0) {
        EXPECT_TRUE(status.ok()) << status.ToString();
        break;
      }
    }
    EXPECT_GT(refused, 4);
  }

  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  std::string RegionPath(uint32_t region) const { return dir_.Sub("db/region-" + std::to_string(region)); }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"), 2);
};

TEST_F(FailingCallsTest, ACreationLeavesNothingOrCanBeDoneAgain) {
  std::unique_ptr<RegionSet> set;
  ForEachCall({.prepare = [] {},
               .work = [&] { return RegionSet::Create(options_, &set); },
               .verify =
                   [&](const Status& status) {
                     EXPECT_EQ(status.ok(), set != nullptr);
                     EXPECT_EQ(fs::exists(dir_.Sub("db")), status.ok()) << status.ToString();
                     set.reset();
                     if (!status.ok()) Create();
                     EXPECT_NE(Open(), nullptr);
                     ASSERT_TRUE(RegionSet::Destroy(options_).ok());
                     fs::remove(dir_.Sub("db"));
                   }});
}

// With all that an open may find to finish.
TEST_F(FailingCallsTest, AnOpenChangesNothingOrFinishes) {
  void* object = nullptr;
  auto set = Create();
  ASSERT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());  // a second part
  std::memset(object, 7, 6 * kMiB);
  set.reset();
  PartList list;
  const std::string text = ReadFile(RegionPath(0) + "/PARTS");
  ASSERT_TRUE(PartList::Parse(text, "PARTS", &list).ok());
  list.next = 8 * kMiB;
  ForEachCall({.prepare =
                   [&] {
                     WriteFile(RegionPath(0) + "/PARTS", list.ToText());
                     WriteFile(RegionPath(0) + "/000002.pmem", "x");
                     WriteFile(RegionPath(1) + "/PARTS.tmp", "x");
                     WriteFile(RegionPath(1) + "/CREATING", "");
                     fs::remove(RegionPath(1) + "/region.set");
                   },
               .work = [&] { return RegionSet::Open(options_, &set); },
               .verify =
                   [&](const Status& status) {
                     if (status.ok()) {
                       EXPECT_FALSE(fs::exists(RegionPath(0) + "/000002.pmem"));
                     }
                     set.reset();
                     set = Open();
                     ASSERT_NE(set, nullptr);
                     EXPECT_EQ(ReadFile(RegionPath(0) + "/PARTS"), text);
                     EXPECT_EQ(static_cast<uint8_t*>(set->Metadata(0, MetadataSlot::kL1))[6 * kMiB - 1], 7);
                     set.reset();
                   }});
}

// Blocks cannot be given to a file that is in use then: the first part has no holes.
TEST_F(FailingCallsTest, WithoutFallocateTheFirstPartIsWhole) {
  options_.regions = 1;
  FailingCalls::Arm(0, EOPNOTSUPP, FailingCalls::kForEver, "fallocate");
  auto set = Create();
  FailingCalls::Stop();
  ASSERT_NE(set, nullptr);
  const std::string part = RegionPath(0) + "/000000.pmem";
  struct stat file;
  ASSERT_EQ(stat(part.c_str(), &file), 0);
  EXPECT_GE(file.st_blocks * 512, file.st_size);
  FailingCalls::Arm(0, EOPNOTSUPP, FailingCalls::kForEver, "fallocate");
  void* object = nullptr;
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, kMiB / 2, &object).ok());
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, 4 * kMiB, &object).ok()) << "a second part";
  set.reset();
  // A copy with holes gets all blocks before the part is mapped.
  const std::string bytes = ReadFile(part);
  WriteFile(part, "");
  fs::resize_file(part, bytes.size());
  std::fstream out(part, std::ios::binary | std::ios::in | std::ios::out);
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    if (bytes.find_first_not_of('\0', at) >= at + 4096) continue;
    out.seekp(static_cast<std::streamoff>(at));
    out.write(&bytes[at], 4096);
  }
  out.close();
  set = Open();
  FailingCalls::Stop();
  ASSERT_NE(set, nullptr);
  ASSERT_EQ(stat(part.c_str(), &file), 0);
  EXPECT_GE(file.st_blocks * 512, file.st_size);
}

TEST_F(FailingCallsTest, AGrowthChangesNothingOrIsThere) {
  options_.regions = 1;
  std::unique_ptr<RegionSet> set;
  void* object = nullptr;
  ForEachCall({.prepare = [&] { ASSERT_NE(set = Create(), nullptr); },
               .work = [&] { return set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object); },
               .verify =
                   [&](const Status& status) {
                     // Unless PMDK's own list of parts is in doubt, it works as soon as the cause is gone.
                     if (!status.ok() && FailingCalls::failed_name() != "mmap" &&
                         FailingCalls::failed_name() != "pmemobj_ctl_exec") {
                       EXPECT_EQ(set->Metadata(0, MetadataSlot::kL1), nullptr);
                       Status again = set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object);
                       if (again.IsNoSpace()) again = Status::OK();  // PMDK refused the part inside
                       EXPECT_TRUE(again.ok()) << again.ToString();
                     }
                     if (set->Metadata(0, MetadataSlot::kL1) != nullptr) std::memset(object, 7, 6 * kMiB);
                     const bool there = set->Metadata(0, MetadataSlot::kL1) != nullptr;
                     set.reset();
                     set = Open();
                     ASSERT_NE(set, nullptr);
                     if (there) {
                       EXPECT_EQ(static_cast<uint8_t*>(set->Metadata(0, MetadataSlot::kL1))[6 * kMiB - 1], 7);
                     } else {
                       EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());
                     }
                     set.reset();
                     ASSERT_TRUE(RegionSet::Destroy(options_).ok());
                   }});
}

TEST_F(FailingCallsTest, ADestructionCanBeDoneAgain) {
  ForEachCall({.prepare = [&] { Create(); },
               .work = [&] { return RegionSet::Destroy(options_); },
               .verify =
                   [&](const Status&) {
                     // Region 0 goes last: something is left for as long as the database does not count as gone.
                     if (!RegionSet::Exists(options_)) {
                       EXPECT_FALSE(fs::exists(RegionPath(1)));
                       EXPECT_FALSE(fs::exists(RegionPath(0) + "/PARTS"));
                     }
                     EXPECT_TRUE(RegionSet::Destroy(options_).ok());
                     EXPECT_FALSE(RegionSet::Exists(options_));
                   }});
}

TEST_F(FailingCallsTest, AnImageIsWholeOrAnError) {
  void* object = nullptr;
  ASSERT_TRUE(Create()->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());
  const std::string part = ReadFile(RegionPath(0) + "/000001.pmem");
  std::unique_ptr<RegionImage> image;
  std::string reports;
  const auto report = [&](const std::string& file, const std::string& what) { reports += file + " " + what + "\n"; };
  ForEachCall({.prepare = [&] { reports.clear(), image.reset(); },
               .work = [&] { return RegionImage::Map(RegionPath(0), report, &image); },
               .verify =
                   [&](const Status& status) {
                     EXPECT_EQ(status.ok(), image != nullptr);
                     if (!status.ok()) return;
                     EXPECT_EQ(reports, "");
                     ASSERT_EQ(image->bytes(), 10 * kMiB);
                     EXPECT_EQ(std::memcmp(image->base() + 2 * kMiB, part.data(), part.size()), 0);
                   }});
}

// A lock that is refused once may have been about to end; one that is refused for long is held.
TEST_F(FailingCallsTest, WhatIsInUseIsBusy) {
  Create();
  const auto ignore = [](const std::string&, const std::string&) {};
  for (const bool for_long : {false, true}) {
    const int64_t times = for_long ? FailingCalls::kForEver : 1;
    for (const char* call : {"flock", "pmemobj_open"}) {  // PMDK locks the parts as well
      std::unique_ptr<RegionSet> set;
      FailingCalls::Arm(0, EWOULDBLOCK, times, call);
      EXPECT_EQ(RegionSet::Open(options_, &set).IsBusy(), for_long) << call;
      EXPECT_EQ(set == nullptr, for_long);
    }
    std::unique_ptr<RegionImage> image;
    FailingCalls::Arm(0, EWOULDBLOCK, times, "flock");
    EXPECT_EQ(RegionImage::Map(RegionPath(0), ignore, &image).IsBusy(), for_long);
  }
  FailingCalls::Stop();
}

// Each error of the system comes with what to do about it.
TEST_F(FailingCallsTest, ErrorsSayWhatToDo) {
  Create();
  const struct {
    int error;
    const char* advice;
  } kCases[] = {{EACCES, "permission"}, {EPERM, "permission"}, {EROFS, "read-write"}, {ENOSPC, "free space"},
                {EDQUOT, "quota"},      {EMFILE, "ulimit -n"}, {ENFILE, "ulimit -n"}, {ENOMEM, "max_region_size"},
                {ENOTDIR, "a file"},    {EIO, "Input/output"}};
  for (const auto& test : kCases) {
    FailingCalls::Arm(0, test.error, FailingCalls::kForEver, "open");
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Open(options_, &set);
    FailingCalls::Stop();
    EXPECT_NE(status.message().find(test.advice), std::string_view::npos) << status.ToString();
    EXPECT_EQ(status.IsNoSpace(), test.error == ENOSPC || test.error == EDQUOT) << status.ToString();
  }
}

// A system call that a signal interrupts is made again.
TEST_F(FailingCallsTest, InterruptedCallsAreMadeAgain) {
  for (const char* name : {"read", "write"}) {
    FailingCalls::Arm(0, EINTR, 1, name);
    Create();
    EXPECT_EQ(FailingCalls::failed(), name == std::string("write") ? 1 : FailingCalls::failed());
    FailingCalls::Arm(0, EINTR, 1, name);
    EXPECT_NE(Open(), nullptr);
    FailingCalls::Stop();
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
  }
}

// EINVAL: a file system whose directories need no sync.
TEST_F(FailingCallsTest, DirectoriesThatCannotBeSyncedAreNoError) {
  for (int64_t call = 0; call < 30; ++call) {
    FailingCalls::Arm(call, EINVAL, 1, "fsync");
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Create(options_, &set);
    FailingCalls::Stop();
    set.reset();
    EXPECT_TRUE(!status.ok() || Open() != nullptr);
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
  }
}

TEST_F(FailingCallsTest, APoolThatPmdkCannotGrowIsFullUntilTheNextOpen) {
  options_.regions = 1;
  auto set = Create();
  void* object = nullptr;
  FailingCalls::Arm(0, ENOMEM, 1, "pmemobj_ctl_exec");
  Status status = set->AllocateMetadata(0, MetadataSlot::kL1, 20 * kMiB, &object);
  FailingCalls::Stop();
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.message().find("close and open the database"), std::string_view::npos) << status.ToString();
  const Status again = set->AllocateMetadata(0, MetadataSlot::kL1, 20 * kMiB, &object);
  EXPECT_EQ(again.ToString(), status.ToString()) << "the reason";
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kManifest, kMiB / 2, &object).ok()) << "what it has can be used";
  set.reset();
  set = Open();
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 20 * kMiB, &object).ok());
}

TEST_F(FailingCallsTest, WhatPmdkRefusesIsAnError) {
  options_.regions = 1;
  auto set = Create();
  void* object = nullptr;
  FailingCalls::Arm(0, EIO, 1, "pmemobj_xalloc");
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 100, &object).IsIOError());
  // A pool that grows and grows and has no room: as fragmented as that.
  FailingCalls::Arm(0, ENOMEM, FailingCalls::kForEver, "pmemobj_xalloc");
  const Status status = set->AllocateMetadata(0, MetadataSlot::kL1, 100, &object);
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.message().find("fragmented"), std::string_view::npos) << status.ToString();
  FailingCalls::Stop();
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 100, &object).ok());
}

TEST_F(FailingCallsTest, TheMediumMustBeFound) {
  const std::string file = dir_.Sub("probe");
  WriteFile(file, "x");
  PersistMode mode = PersistMode::kAuto;
  for (const char* name : {"open", "fstatfs"}) {
    FailingCalls::Arm(0, EACCES, 1, name);
    const Status status = ResolvePersistMode(file, PersistMode::kAuto, &mode);
    EXPECT_TRUE(status.IsIOError()) << name << ": " << status.ToString();
    EXPECT_NE(status.message().find(file), std::string_view::npos);
  }
  FailingCalls::Stop();
}

// How much fits is not known then: the system is asked again when it grows.
TEST_F(FailingCallsTest, AFileSystemThatDoesNotSayHowLargeItIs) {
  options_.regions = 1;
  options_.max_region_size = 0;
  FailingCalls::Arm(0, EIO, FailingCalls::kForEver, "statvfs");
  auto set = Create();
  void* object = nullptr;
  ASSERT_NE(set, nullptr);
  EXPECT_TRUE(set->AllocateMetadata(0, MetadataSlot::kL1, 6 * kMiB, &object).ok());
  FailingCalls::Stop();
}

}  // namespace
}  // namespace braiddb
