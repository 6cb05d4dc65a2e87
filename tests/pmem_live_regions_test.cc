// Regions that this process maps while another owner has them open to write.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/pool_format.h"
#include "pmem/region.h"
#include "tests/support/fork_child.h"
#include "tests/support/region_set_test.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kMark = 0x6c69'7665'6c69'7665;
constexpr uint64_t kNotReached = 3;  // exit code of a child

class LiveRegionsTest : public RegionSetTest {
 protected:
  std::unique_ptr<RegionSet> OpenLive(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::OpenLive(options, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  static Status TryOpenLive(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    return RegionSet::OpenLive(options, &set);
  }
  // Grows all regions by the smallest part.
  static void Grow(RegionSet* writer) {
    const Status status = writer->ReserveBytes(writer->ReservedBytes(0) + 2 * kMiB);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  static uint64_t* WordAt(const RegionSet& set, uint32_t region, uint64_t offset) {
    return set.Resolve<uint64_t>(PmPtr(region, offset));
  }
  // What a test compares of all files: bytes, inode, times of modification and of change.
  static std::map<std::string, std::string> FilesOf(const std::string& path) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      struct stat st;
      if (lstat(entry.path().c_str(), &st) != 0) continue;
      files[entry.path()] = std::to_string(st.st_ino) + " " + std::to_string(st.st_mtim.tv_sec) + "." +
                            std::to_string(st.st_mtim.tv_nsec) + " " + std::to_string(st.st_ctim.tv_nsec) + " " +
                            (entry.is_regular_file() ? ReadFile(entry.path()) : "");
    }
    return files;
  }
};

TEST_F(LiveRegionsTest, StoresOfTheWriterAreSeen) {
  const auto writer = Create(options_);
  ASSERT_NE(writer, nullptr);
  void* object = nullptr;
  ASSERT_TRUE(writer->AllocateMetadata(1, MetadataSlot::kL1, 4096, &object).ok());
  const auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  EXPECT_TRUE(live->is_live());
  EXPECT_FALSE(writer->is_live());
  EXPECT_EQ(live->count(), 2u);
  EXPECT_EQ(live->database_id(), writer->database_id());
  uint64_t bytes = 0;
  void* const seen = live->Metadata(1, MetadataSlot::kL1, &bytes);
  ASSERT_NE(seen, nullptr);
  EXPECT_NE(seen, object);
  EXPECT_EQ(bytes, 4096u);
  const PmPtr place = writer->Find(object);
  EXPECT_EQ(live->Find(seen), place);
  EXPECT_EQ(live->Find(object), PmPtr());
  EXPECT_TRUE(live->Contains(place, bytes));
  EXPECT_TRUE(live->Holds(place));
  for (uint64_t i = 1; i < 100; ++i) {
    StoreRelease(static_cast<uint64_t*>(object), i);
    EXPECT_EQ(LoadAcquire(live->Resolve<uint64_t>(place)), i);
  }
  EXPECT_EQ(live->Metadata(0, MetadataSlot::kL1), nullptr);
  ASSERT_TRUE(writer->AllocateMetadata(0, MetadataSlot::kL1, 128, &object).ok());
  EXPECT_NE(live->Metadata(0, MetadataSlot::kL1), nullptr);
  ASSERT_TRUE(writer->FreeMetadata(0, MetadataSlot::kL1).ok());
  EXPECT_EQ(live->Metadata(0, MetadataSlot::kL1), nullptr);
  for (uint32_t region : {0, 1}) EXPECT_EQ(reinterpret_cast<uintptr_t>(live->base(region)) % (2 * kMiB), 0u);
}

TEST_F(LiveRegionsTest, WhatStoresIsRefused) {
  const auto writer = Create(options_);
  void* object = nullptr;
  ASSERT_TRUE(writer->AllocateMetadata(0, MetadataSlot::kL1, 4096, &object).ok());
  const auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  EXPECT_TRUE(live->AllocateMetadata(0, MetadataSlot::kManifest, 64, &object).IsReadOnly());
  EXPECT_TRUE(live->FreeMetadata(0, MetadataSlot::kL1).IsReadOnly());
  EXPECT_TRUE(live->ReserveBytes(64 * kMiB).IsReadOnly());
  Region* const region = live->impl()->region(0);
  uint64_t first = 0;
  EXPECT_TRUE(region->RaiseGenerationLimit(1, &first).IsReadOnly());
  EXPECT_TRUE(region->RaiseGenerationLimit(0, &first).ok());
  EXPECT_NE(first, 0u);
  EXPECT_EQ(region->Headroom(), 0u);
  EXPECT_FALSE(region->MayGiveBack());
  ObjectId id{};
  EXPECT_TRUE(region->AllocateObject(&id, 64, PoolObject::kMetadata).IsReadOnly());
  EXPECT_NE(live->Metadata(0, MetadataSlot::kL1), nullptr);
  EXPECT_TRUE(writer->MapNewParts().ok());
  EXPECT_TRUE(writer->CheckInPlace().ok());
}

TEST_F(LiveRegionsTest, GrowthIsFollowed) {
  const auto writer = Create(options_);
  const auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  const uint8_t* const bases[] = {live->base(0), live->base(1)};
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t end = live->ReservedBytes(0);
    ASSERT_EQ(end, writer->ReservedBytes(0));
    Grow(writer.get());
    ASSERT_GT(writer->ReservedBytes(0), end);
    for (uint32_t region : {0, 1}) {
      const uint64_t at = end + kMiB;
      StoreRelaxed(WordAt(*writer, region, at), kMark + i);
      EXPECT_EQ(LoadRelaxed(WordAt(*live, region, at)), 0u);
      EXPECT_FALSE(live->Holds(PmPtr(region, at)));
      EXPECT_FALSE(live->Contains(PmPtr(region, at), 8));
    }
    const Status status = live->MapNewParts();
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (uint32_t region : {0, 1}) {
      const uint64_t at = end + kMiB;
      EXPECT_EQ(LoadRelaxed(WordAt(*live, region, at)), kMark + i);
      EXPECT_TRUE(live->Holds(PmPtr(region, at)));
      EXPECT_EQ(live->Find(WordAt(*live, region, at)), PmPtr(region, at));
      EXPECT_EQ(live->base(region), bases[region]);
    }
    ASSERT_TRUE(live->MapNewParts().ok());
    EXPECT_EQ(live->MappedBytes(), writer->MappedBytes());
  }
  // Several parts at once.
  for (int i = 0; i < 5; ++i) Grow(writer.get());
  ASSERT_TRUE(live->MapNewParts().ok());
  EXPECT_EQ(live->MappedBytes(), writer->MappedBytes());
  const auto again = OpenLive(options_);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(LoadRelaxed(WordAt(*again, 0, 2 * kMiB + kMiB)), kMark);
}

// The mapping has zeros up to the largest size of the region, and in a guard behind that.
TEST_F(LiveRegionsTest, WhatLiesBehindTheRegionReadsAsZeros) {
  const auto writer = Create(options_);
  const auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  for (uint32_t region : {0, 1}) {
    const LiveParts& parts = *live->impl()->region(region)->live_parts();
    EXPECT_EQ(parts.reserved_bytes(), options_.max_region_size);
    EXPECT_GE(parts.guard_bytes(), 64 * kMiB);
    const uint64_t end = parts.reserved_bytes() + parts.guard_bytes();
    for (uint64_t at = live->ReservedBytes(region); at < end; at += 16 * kMiB) {
      EXPECT_EQ(*WordAt(*live, region, at), 0u);
    }
    EXPECT_EQ(*WordAt(*live, region, end - 8), 0u);
    EXPECT_FALSE(live->Holds(PmPtr(region, live->ReservedBytes(region))));
  }
  EXPECT_FALSE(live->Holds(PmPtr(2, 4096)));
  EXPECT_FALSE(live->damage_seen());
  live->NoteDamage();
  EXPECT_TRUE(live->damage_seen());
  live->ClearDamage();
  EXPECT_FALSE(live->damage_seen());
}

TEST_F(LiveRegionsTest, AWriterInAnotherProcessIsFollowed) {
  int to_writer[2], from_writer[2];
  ASSERT_EQ(pipe(to_writer), 0);
  ASSERT_EQ(pipe(from_writer), 0);
  const pid_t child = ForkChild();
  if (child == 0) {  // each byte that arrives is a step; each end of a step is answered
    close(to_writer[1]);
    std::unique_ptr<RegionSet> writer;
    char step = 0;
    if (!RegionSet::Create(options_, &writer).ok()) LeaveChild(1);
    while (write(from_writer[1], &step, 1) == 1 && read(to_writer[0], &step, 1) == 1) {
      const uint64_t end = writer->ReservedBytes(0);
      if (!writer->ReserveBytes(end + 2 * kMiB).ok()) LeaveChild(2);
      StoreRelease(WordAt(*writer, 0, end + 4096), kMark + static_cast<uint64_t>(step));
    }
    LeaveChild(0);  // without a close, as a killed process
  }
  close(to_writer[0]);
  close(from_writer[1]);
  char step = 0;
  ASSERT_EQ(read(from_writer[0], &step, 1), 1);
  const auto live = OpenLive(options_);
  if (live == nullptr) close(to_writer[1]);
  ASSERT_NE(live, nullptr);
  const WriterRuns runs = live->ReadWriterRuns();
  for (step = 1; step <= 20; ++step) {
    ASSERT_EQ(write(to_writer[1], &step, 1), 1);
    char answer = 0;
    ASSERT_EQ(read(from_writer[0], &answer, 1), 1);
    const uint64_t at = live->ReservedBytes(0) + 4096;
    EXPECT_EQ(LoadAcquire(WordAt(*live, 0, at)), 0u);
    ASSERT_TRUE(live->MapNewParts().ok());
    EXPECT_EQ(LoadAcquire(WordAt(*live, 0, at)), kMark + static_cast<uint64_t>(step));
  }
  close(to_writer[1]);
  close(from_writer[0]);
  int code = 0;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(live->WriterChanged(runs)) << "a writer that is gone is no new writer";
  EXPECT_TRUE(live->MapNewParts().ok());
  const auto next = Open(options_);
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(live->WriterChanged(runs));
}

TEST_F(LiveRegionsTest, AnotherOpenForWritingIsNoticed) {
  auto writer = Create(options_);
  const auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  WriterRuns runs = live->ReadWriterRuns();
  EXPECT_FALSE(live->WriterChanged(runs));
  Grow(writer.get());
  writer.reset();
  EXPECT_FALSE(live->WriterChanged(runs));
  for (int i = 0; i < 3; ++i) {
    writer = Open(options_);
    ASSERT_NE(writer, nullptr);
    EXPECT_TRUE(live->WriterChanged(runs));
    runs = live->ReadWriterRuns();
    EXPECT_FALSE(live->WriterChanged(runs));
    writer.reset();
    EXPECT_FALSE(live->WriterChanged(runs));
  }
  std::unique_ptr<RegionSet> reader;
  ASSERT_TRUE(RegionSet::OpenReadOnly(options_, &reader).ok());
  EXPECT_FALSE(live->WriterChanged(runs)) << "an open for reading only changes nothing";
  EXPECT_TRUE(live->MapNewParts().ok());
  EXPECT_GT(live->ReservedBytes(0), 2 * kMiB);
}

TEST_F(LiveRegionsTest, NoLockIsTakenAndNoFileChanges) {
  Create(options_).reset();
  const auto before = FilesOf(dir_.Sub("db"));
  auto live = OpenLive(options_);
  ASSERT_NE(live, nullptr);
  EXPECT_TRUE(live->MapNewParts().ok());
  EXPECT_TRUE(live->CheckInPlace().ok());
  volatile uint64_t sum = 0;
  for (uint64_t at = 0; at < 4096; at += 8) sum = sum + *WordAt(*live, 0, at);
  EXPECT_EQ(FilesOf(dir_.Sub("db")), before);
  const auto second = OpenLive(options_);
  auto writer = Open(options_);
  ASSERT_NE(writer, nullptr);
  Grow(writer.get());
  EXPECT_TRUE(TryOpen(options_).IsBusy());
  writer.reset();
  const auto grown = FilesOf(dir_.Sub("db"));
  EXPECT_TRUE(live->MapNewParts().ok());
  live.reset();
  EXPECT_EQ(FilesOf(dir_.Sub("db")), grown);
  EXPECT_TRUE(RegionSet::Destroy(options_).ok());
  EXPECT_TRUE(second->CheckInPlace().IsNotFound());
  EXPECT_TRUE(TryOpenLive(options_).IsNotFound());
}

TEST_F(LiveRegionsTest, DamageIsAnErrorAndNoSignal) {
  RegionSetOptions other = PmemOptions(dir_.Sub("other"), 2);
  const auto list_of = [&](uint32_t region) {
    PartList list;
    EXPECT_TRUE(PartList::Parse(ReadFile(RegionPath(region) + "/PARTS"), "PARTS", &list).ok());
    return list;
  };
  const struct {
    Status::Code code;
    const char* text;
    std::function<void()> damage;
  } kCases[] = {
      {Status::Code::kOk, "", [] {}},
      {Status::Code::kCorruption, "000001.pmem is missing", [&] { fs::remove(PartPath(0, 1)); }},
      {Status::Code::kCorruption, "000001.pmem is missing", [&] { fs::remove(PartPath(1, 1)); }},
      {Status::Code::kCorruption, "has 4096 bytes, recorded are 2097152", [&] { fs::resize_file(PartPath(0, 1), 4096); }},
      {Status::Code::kCorruption, "has 0 bytes", [&] { fs::resize_file(PartPath(0, 0), 0); }},
      {Status::Code::kCorruption, "has 1000 bytes", [&] { fs::resize_file(PartPath(0, 0), 1000); }},
      {Status::Code::kCorruption, "has 4194304 bytes", [&] { fs::resize_file(PartPath(0, 1), 4 * kMiB); }},
      {Status::Code::kCorruption, "not a regular file",
       [&] {
         fs::remove(PartPath(0, 1));
         mkfifo(PartPath(0, 1).c_str(), 0600);
       }},
      {Status::Code::kCorruption, "not a regular file",
       [&] {
         fs::remove(PartPath(0, 0));
         mkfifo(PartPath(0, 0).c_str(), 0600);
       }},
      {Status::Code::kCorruption, "not a regular file",
       [&] {
         fs::rename(PartPath(0, 1), dir_.Sub("elsewhere"));
         fs::create_symlink(dir_.Sub("elsewhere"), PartPath(0, 1));
       }},
      {Status::Code::kCorruption, "not a regular file",
       [&] {
         fs::remove(PartPath(0, 0));
         fs::create_symlink("/dev/zero", PartPath(0, 0));
       }},
      {Status::Code::kCorruption, "PARTS is missing", [&] { fs::remove(RegionPath(0) + "/PARTS"); }},
      {Status::Code::kCorruption, "checksum", [&] { Overwrite(RegionPath(1) + "/PARTS", 30, "z"); }},
      {Status::Code::kCorruption, "PARTS is empty", [&] { WriteFile(RegionPath(1) + "/PARTS", ""); }},
      {Status::Code::kCorruption, "impossible size",
       [&] {
         PartList list = list_of(0);
         list.parts.push_back(uint64_t{1} << 47);
         WriteFile(RegionPath(0) + "/PARTS", list.ToText());
       }},
      {Status::Code::kCorruption, "impossible size",
       [&] {
         PartList list = list_of(0);
         list.parts[0] += 100;
         WriteFile(RegionPath(0) + "/PARTS", list.ToText());
       }},
      {Status::Code::kCorruption, "larger than its parts",  // a part that the list has lost
       [&] {
         PartList list = list_of(0);
         list.parts.pop_back();
         WriteFile(RegionPath(0) + "/PARTS", list.ToText());
       }},
      {Status::Code::kOk, "",  // an announced part that the heap includes
       [&] {
         PartList list = list_of(0);
         list.next = list.parts.back();
         list.parts.pop_back();
         WriteFile(RegionPath(0) + "/PARTS", list.ToText());
       }},
      {Status::Code::kOk, "",  // an announced part that the heap does not include
       [&] {
         PartList list = list_of(0);
         list.next = 2 * kMiB;
         WriteFile(RegionPath(0) + "/PARTS", list.ToText());
       }},
      {Status::Code::kCorruption, "no pool signature", [&] { Overwrite(PartPath(0, 0), 0, std::string(8192, '\0')); }},
      {Status::Code::kCorruption, "pool header", [&] { Overwrite(PartPath(0, 0), 30, "zzzz"); }},
      {Status::Code::kCorruption, "larger than its parts",
       [&] { Overwrite(PartPath(1, 0), kPoolHeapSizeOffset, std::string(8, '\x7f')); }},
      {Status::Code::kCorruption, "does not end", [&] { Overwrite(PartPath(1, 0), kPoolHeapSizeOffset, std::string(8, '\0')); }},
      {Status::Code::kCorruption, "root pointer", [&] { Overwrite(PartPath(1, 0), kPoolRootOffset, std::string(8, '\x11')); }},
      {Status::Code::kCorruption, "region 1 is missing", [&] { fs::remove_all(RegionPath(1)); }},
      {Status::Code::kCorruption, "another database",
       [&] {
         ASSERT_NE(Create(other), nullptr);
         fs::remove_all(RegionPath(1));
         fs::rename(dir_.Sub("other/region-1"), RegionPath(1));
       }},
      {Status::Code::kCorruption, "another database",
       [&] {  // the parts, without the list
         ASSERT_NE(Create(other), nullptr);
         fs::remove(PartPath(1, 0));
         fs::rename(dir_.Sub("other/region-1/000000.pmem"), PartPath(1, 0));
         PartList list = list_of(1);
         list.parts.pop_back();
         WriteFile(RegionPath(1) + "/PARTS", list.ToText());
       }},
      {Status::Code::kCorruption, "another one than",
       [&] {
         fs::rename(RegionPath(0), dir_.Sub("x"));
         fs::rename(RegionPath(1), RegionPath(0));
         fs::rename(dir_.Sub("x"), RegionPath(1));
       }},
      {Status::Code::kNotFound, "no database", [&] { fs::remove_all(dir_.Sub("db")); }},
      {Status::Code::kNotFound, "no database", [&] { WriteFile(RegionPath(0) + "/CREATING", "x"); }},
  };
  for (const auto& c : kCases) {
    fs::remove_all(dir_.Sub("db"));
    fs::remove_all(dir_.Sub("other"));
    fs::remove(dir_.Sub("elsewhere"));
    auto writer = Create(options_);
    ASSERT_NE(writer, nullptr);
    Grow(writer.get());
    writer.reset();
    c.damage();
    const Status status = TryOpenLive(options_);
    EXPECT_EQ(status.code(), c.code) << status.ToString() << ", expected: " << c.text;
    EXPECT_NE(status.ToString().find(c.text), std::string::npos) << status.ToString() << ", expected: " << c.text;
  }
}

TEST_F(LiveRegionsTest, OptionsMustFitTheDatabase) {
  const auto writer = Create(options_);
  RegionSetOptions options = options_;
  options.database_id = writer->database_id() + 1;
  EXPECT_TRUE(TryOpenLive(options).IsInvalidArgument());
  options.database_id = writer->database_id();
  EXPECT_TRUE(TryOpenLive(options).ok());
  options.regions = 3;
  EXPECT_TRUE(TryOpenLive(options).IsInvalidArgument());
  options.regions = 0;
  EXPECT_TRUE(TryOpenLive(options).ok());
  options.region_paths = {RegionPath(0)};
  EXPECT_TRUE(TryOpenLive(options).IsInvalidArgument());
  options.region_paths = {RegionPath(0), "/dev/null"};
  EXPECT_FALSE(TryOpenLive(options).ok());
  options.region_paths = {RegionPath(0), RegionPath(1)};
  options.max_region_size = 0;
  EXPECT_TRUE(TryOpenLive(options).ok());
}

TEST_F(LiveRegionsTest, ANewPartIsCheckedBeforeItIsMapped) {
  const auto writer = Create(options_);
  const auto live = OpenLive(options_);
  Grow(writer.get());
  const std::string part = PartPath(0, 1);
  fs::rename(part, dir_.Sub("away"));
  Status status = live->MapNewParts();
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  EXPECT_NE(status.ToString().find("000001.pmem is missing"), std::string::npos) << status.ToString();
  EXPECT_EQ(live->ReservedBytes(0), 2 * kMiB);
  EXPECT_EQ(live->ReservedBytes(1), 4 * kMiB) << "the other region follows";
  WriteFile(part, "short");
  status = live->MapNewParts();
  EXPECT_NE(status.ToString().find("has 5 bytes"), std::string::npos) << status.ToString();
  EXPECT_EQ(*WordAt(*live, 0, 3 * kMiB), 0u);
  fs::rename(dir_.Sub("away"), part);
  EXPECT_TRUE(live->MapNewParts().ok());
  EXPECT_EQ(live->ReservedBytes(0), 4 * kMiB);
}

TEST_F(LiveRegionsTest, FilesInThePlaceOfOthersAreNoticed) {
  auto writer = Create(options_);
  const auto live = OpenLive(options_);
  Grow(writer.get());
  fs::copy(dir_.Sub("db"), dir_.Sub("copy"), fs::copy_options::recursive);
  fs::rename(dir_.Sub("db"), dir_.Sub("old"));
  EXPECT_TRUE(live->CheckInPlace().IsNotFound());
  fs::rename(dir_.Sub("copy"), dir_.Sub("db"));
  EXPECT_TRUE(live->CheckInPlace().IsNotFound());
  const Status status = live->MapNewParts();
  EXPECT_TRUE(status.IsNotFound()) << status.ToString();
  EXPECT_EQ(live->ReservedBytes(0), 2 * kMiB);
}

TEST_F(LiveRegionsTest, ARegionThatOutgrowsItsAddressSpaceIsOpenedAgain) {
  const auto writer = Create(options_);
  RegionSetOptions small = options_;
  small.max_region_size = kMinRegionSize;
  const auto live = OpenLive(small);
  ASSERT_NE(live, nullptr);
  ASSERT_TRUE(writer->ReserveBytes(kMinRegionSize).ok());
  EXPECT_TRUE(live->MapNewParts().ok());
  EXPECT_EQ(live->MappedBytes(), writer->MappedBytes());
  Grow(writer.get());
  const Status status = live->MapNewParts();
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.ToString().find("open it again"), std::string::npos);
  EXPECT_EQ(*WordAt(*live, 0, live->ReservedBytes(0) + kMiB), 0u);
  const auto again = OpenLive(small);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->MappedBytes(), writer->MappedBytes());
}

TEST_F(LiveRegionsTest, ReadPermissionIsEnough) {
  auto writer = Create(options_);
  Grow(writer.get());
  StoreRelease(WordAt(*writer, 0, 3 * kMiB), kMark);
  const auto open = [&] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) return 99;
    std::unique_ptr<RegionSet> live;
    const Status status = RegionSet::OpenLive(options_, &live);
    if (!status.ok()) return static_cast<int>(status.code());
    return *WordAt(*live, 0, 3 * kMiB) == kMark ? 0 : static_cast<int>(kNotReached);
  };
  const auto set_modes = [&](mode_t directory, mode_t file) {
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
      chmod(entry.path().c_str(), entry.is_directory() ? directory : file);
    chmod(dir_.path().c_str(), directory);
  };
  set_modes(0555, 0444);
  EXPECT_EQ(RunInChild(open), 0);
  set_modes(0755, 0644);
  chmod(PartPath(1, 1).c_str(), 0000);
  EXPECT_EQ(RunInChild(open), static_cast<int>(Status::Code::kIOError));
  set_modes(0755, 0644);
}

TEST_F(LiveRegionsTest, AChildOfAForkReadsOn) {
  const auto writer = Create(options_);
  const auto live = OpenLive(options_);
  Grow(writer.get());
  ASSERT_TRUE(live->MapNewParts().ok());
  StoreRelease(WordAt(*writer, 0, 3 * kMiB), kMark);
  EXPECT_EQ(RunInChild([&] { return LoadAcquire(WordAt(*live, 0, 3 * kMiB)) == kMark ? 0 : 1; }), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need address space themselves
TEST_F(LiveRegionsTest, LittleAddressSpaceIsEnough) {
  const auto writer = Create(options_);
  for (const uint64_t max_region_size : {uint64_t{0}, uint64_t{1} << 40}) {
    EXPECT_EQ(RunInChild([&] {
                const rlimit limit{1500 * kMiB, 1500 * kMiB};
                if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
                RegionSetOptions options = options_;
                options.max_region_size = max_region_size;
                std::unique_ptr<RegionSet> live;
                if (!RegionSet::OpenLive(options, &live).ok()) return 2;
                return live->MappedBytes() == writer->MappedBytes() ? 0 : static_cast<int>(kNotReached);
              }),
              0)
        << max_region_size;
  }
}
#endif

TEST_F(LiveRegionsTest, OpensBesideAWriterThatGrows) {
  options_ = PmemOptions(dir_.Sub("db"), 2, 512 * kMiB);
  auto writer = Create(options_);
  ASSERT_NE(writer, nullptr);
  const auto follower = OpenLive(options_);
  std::atomic<bool> stops{false};
  std::atomic<int> opens{0};
  std::atomic<bool> has_grown{false};
  std::thread grows([&] {
    for (int i = 0; i < 100 && !stops; ++i) {
      const uint64_t end = writer->ReservedBytes(0);
      if (!writer->ReserveBytes(end + 2 * kMiB).ok()) break;
      StoreRelaxed(WordAt(*writer, 0, end + kMiB), kMark);
      const int wanted = 2 * i;  // so that growths and opens alternate, whatever the speed of either
      while (opens.load() < wanted && !stops) std::this_thread::yield();
    }
    has_grown = true;
  });
  std::thread reads([&] {  // a reader beside the mapping of new parts
    while (!stops) {
      for (uint64_t at = kMiB; at < 200 * kMiB; at += 2 * kMiB) {
        const bool is_held = follower->Holds(PmPtr(0, at));
        const uint64_t word = LoadRelaxed(WordAt(*follower, 0, at));
        if (word != 0 && word != kMark && is_held && at > 4 * kMiB) ADD_FAILURE() << "byte " << at << " is " << word;
      }
    }
  });
  for (; opens < 200 || !has_grown; ++opens) {
    std::unique_ptr<RegionSet> live;
    const Status status = RegionSet::OpenLive(options_, &live);
    if (!status.ok()) ADD_FAILURE() << status.ToString();
    if (!status.ok()) break;
    EXPECT_GE(live->ReservedBytes(0), follower->ReservedBytes(0));
    const Status mapped = follower->MapNewParts();
    EXPECT_TRUE(mapped.ok()) << mapped.ToString();
    EXPECT_GE(follower->ReservedBytes(0), live->ReservedBytes(0));
  }
  stops = true;
  grows.join();
  reads.join();
  EXPECT_TRUE(follower->MapNewParts().ok());
  EXPECT_EQ(follower->MappedBytes(), writer->MappedBytes());
  EXPECT_GT(follower->ReservedBytes(0), 100 * kMiB);
}

// A slot is empty or has its object, whatever the writer does at that moment.
TEST_F(LiveRegionsTest, MetadataIsFoundBesideAWriterThatFreesIt) {
  const auto writer = Create(options_);
  const auto live = OpenLive(options_);
  std::atomic<bool> stops{false};
  std::thread changes([&] {
    for (uint64_t i = 0; i < 5000; ++i) {
      void* object = nullptr;
      const uint64_t bytes = 64 * (1 + i % 5);
      if (!writer->AllocateMetadata(0, MetadataSlot::kMergeJournal, bytes, &object).ok()) break;
      if (!writer->FreeMetadata(0, MetadataSlot::kMergeJournal).ok()) break;
    }
    stops = true;
  });
  uint64_t found = 0;
  while (!stops || found == 0) {
    uint64_t bytes = 0;
    const void* const object = live->Metadata(0, MetadataSlot::kMergeJournal, &bytes);
    if (object != nullptr) {
      EXPECT_TRUE(bytes % 64 == 0 && bytes >= 64 && bytes <= 320) << bytes;
      EXPECT_TRUE(live->Contains(live->Find(object), bytes));
    }
    ++found;
    const Status status = TryOpenLive(options_);
    ASSERT_TRUE(status.ok() || (stops = true, false)) << status.ToString();
  }
  changes.join();
}

}  // namespace
}  // namespace braiddb::test
