// Syncs that PMDK asks for fail, at every place: an error and no abort, and media are as if the process had been killed there.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <libpmemobj.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"
#include "tests/support/pmem_temp_dir.h"
#include "util/sync_point.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> calls_left{0};
std::atomic<int64_t> calls_of_pmdk{0};
std::atomic<uint64_t> synced_bytes{0};

}  // namespace

// In place of the C library's, also for PMDK. From the chosen call on, no sync works.
extern "C" int msync(void* address, size_t bytes, int flags) {
  static const auto real = reinterpret_cast<decltype(&msync)>(dlsym(RTLD_NEXT, "msync"));
  synced_bytes += bytes;
  Dl_info caller;
  if (dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr &&
      std::string_view(caller.dli_fname).find("libpmem") != std::string_view::npos) {
    ++calls_of_pmdk;
  }
  if (armed && calls_left-- <= 0) {
    errno = EIO;
    return -1;
  }
  return real(address, bytes, flags);
}

namespace braiddb::test {
namespace {

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kSmallSegment = 256ull << 10;

class PmdkSyncsTest : public testing::Test {
 protected:
  PmdkSyncsTest() { options_.persist_mode = PersistMode::kPage; }
  ~PmdkSyncsTest() override { armed = false; }

  static void FailFrom(int64_t call) {
    calls_left = call;
    armed = true;
  }
  // Returns whether a call failed since.
  static bool Stop() {
    armed = false;
    return calls_left < 0;
  }
  void Reopen() {
    const Status status = Store::Open(options_, kSmallSegment, &store_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void ExpectSound() {
    Region* const region = store_.regions->impl()->region(0);
    EXPECT_EQ(PoolObjects(region), AccountedObjects(region));
    store_ = Store();
    EXPECT_TRUE(PoolIsConsistent(dir_.Sub("db/region-0/region.set")));
  }
  void Destroy() {
    store_ = Store();
    ASSERT_TRUE(RegionSet::Destroy(options_).ok());
  }
  // Takes, grows and gives back.
  Status Work() {
    SegmentAllocator* const allocator = store_.allocator.get();
    Segment *small = nullptr, *large = nullptr;
    Status status = allocator->Allocate(0, 1, &small);
    if (status.ok()) status = allocator->Allocate(0, 9 * kMiB, &large);
    if (status.ok()) status = allocator->Release(large);
    if (status.ok()) status = allocator->Release(small);
    return status;
  }
  std::string FirstPart() const { return ReadFileOrDie(dir_.Sub("db/region-0/000000.pmem")); }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"));
  Store store_;
};

TEST_F(PmdkSyncsTest, OfACreation) {
  bool failed = true;
  for (int64_t call = 0; failed; ++call) {
    SCOPED_TRACE(call);
    FailFrom(call);
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Create(options_, &set);
    failed = Stop();
    EXPECT_EQ(status.ok(), !failed) << status.ToString();
    if (failed) {
      EXPECT_TRUE(status.IsIOError()) << status.ToString();
      EXPECT_NE(status.message().find("msync"), std::string_view::npos) << status.ToString();
    } else {
      EXPECT_GT(call, 10) << "PMDK's syncs are among them";
    }
    set.reset();
    EXPECT_EQ(RegionSet::Exists(options_), !failed);
  }
  EXPECT_EQ(calls_of_pmdk, 0) << "all of them go through Persistence";
  Reopen();
  ExpectSound();
}

TEST_F(PmdkSyncsTest, OfAllocationsAndGrowth) {
  bool failed = true;
  for (int64_t call = 0; failed; ++call) {
    SCOPED_TRACE(call);
    Reopen();
    FailFrom(call);
    const Status status = Work();
    failed = Stop();
    EXPECT_EQ(status.ok(), !failed) << status.ToString();
    if (failed) {
      EXPECT_TRUE(status.IsIOError()) << status.ToString();
      EXPECT_TRUE(store_.regions->persistence()->failed());
      Segment* segment = nullptr;
      EXPECT_TRUE(store_.allocator->Allocate(0, 1, &segment).IsIOError());
    }
    Reopen();
    EXPECT_TRUE(Work().ok());
    ExpectSound();
    Destroy();
  }
  EXPECT_EQ(calls_of_pmdk, 0);
}

TEST_F(PmdkSyncsTest, OfAnOpen) {
  bool failed = true;
  for (int64_t call = 0; failed; ++call) {
    SCOPED_TRACE(call);
    Reopen();
    store_ = Store();
    FailFrom(call);
    const Status status = Store::Open(options_, kSmallSegment, &store_);
    failed = Stop();
    EXPECT_EQ(status.ok(), !failed) << status.ToString();
    EXPECT_EQ(status.IsIOError(), failed) << status.ToString();
    EXPECT_TRUE(failed || call > 0);
    Reopen();
    EXPECT_TRUE(Work().ok());
    ExpectSound();
    Destroy();
  }
}

// The canary of the rest of an operation: what PMDK stores after its first sync that failed is on no medium.
TEST_F(PmdkSyncsTest, NothingReachesMediaAfterAFailedSync) {
  Reopen();
  Region* const region = store_.regions->impl()->region(0);
  void* object = nullptr;
  ASSERT_TRUE(store_.regions->AllocateMetadata(0, MetadataSlot::kL1, 1000, &object).ok());
  FailFrom(1);  // the first is of the size of the object, the second PMDK's
  EXPECT_TRUE(store_.regions->AllocateMetadata(0, MetadataSlot::kMergeJournal, 1000, &object).IsIOError());
  region->FreeObject(&region->root()->metadata[static_cast<uint32_t>(MetadataSlot::kL1)]);  // does nothing
  const std::string before = FirstPart();
  EXPECT_NE(std::memcmp(before.data() + 4096, region->base() + 4096, before.size() - 4096), 0) << "this process sees it";
  std::memset(region->base() + before.size() - 4096, 'x', 4096);
  store_ = Store();
  Stop();
  EXPECT_TRUE(FirstPart() == before);
  Reopen();
  EXPECT_NE(store_.regions->Metadata(0, MetadataSlot::kL1), nullptr);
  ExpectSound();
}

// A pool of the program's own is no business of ours.
TEST_F(PmdkSyncsTest, OtherPoolsOfTheProgramSyncByThemselves) {
  Reopen();
  const int64_t before = calls_of_pmdk;
  PMEMobjpool* const pool = pmemobj_create(dir_.Sub("own").c_str(), "own", 2 * PMEMOBJ_MIN_POOL, 0600);
  ASSERT_NE(pool, nullptr);
  pmemobj_close(pool);
  EXPECT_GT(calls_of_pmdk, before);
}

// PMDK asks for a sync of a page with each of its steps. Until the database is there, they are put off, and made once for each
// range of pages.
TEST_F(PmdkSyncsTest, ACreationOfADatabaseSyncsOnce) {
  Options options = TinyOptions(1);
  options.persist_mode = PersistMode::kPage;
  const std::string path = dir_.Sub("whole");
  std::unique_ptr<DB> db;
  // From this sync on none works: either no database is there, or its creation was complete.
  int64_t syncs = 0;
  for (;; ++syncs) {
    FailFrom(syncs);
    const Status status = DB::Open(options, path, &db);
    db.reset();
    (void)Stop();
    if (std::filesystem::exists(path + "/DATABASE")) break;
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_FALSE(std::filesystem::exists(path + "/region-0")) << syncs;
    ASSERT_LT(syncs, 1000);
  }
  EXPECT_GT(syncs, 0) << "a creation syncs";
  EXPECT_LE(syncs, 12);
  EXPECT_OK(DB::Open(options, path, &db));
}

TEST_F(PmdkSyncsTest, OfACheckpoint) {
  Options options = TinyOptions(1);
  options.persist_mode = PersistMode::kPage;
  auto db = OpenOrFail(options, dir_.Sub("source"));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "key", "value"));
  const TestDirectory disk(TestDirectory::Medium::kDisk);
  const std::string copy = disk.File("copy");
  int failures = 0;
  for (int64_t call = 0; call < 20; ++call) {
    SCOPED_TRACE(call);
    FailFrom(call);
    const Status status = CreateCheckpoint(db.get(), copy);
    const bool failed = Stop();
    EXPECT_FALSE(failed && status.ok());
    failures += failed ? 1 : 0;
    if (status.ok()) {
      EXPECT_OK(DB::Destroy(TinyOptions(1), copy));
    }
    EXPECT_FALSE(std::filesystem::exists(copy));
  }
  EXPECT_GT(failures, 3);
  EXPECT_EQ(GetOrText(db.get(), "key"), "value");
}

// An open segment that goes on to another thread: what its owner wrote without sync is durable before the next owner's synced
// write is, since a replay ends at the first entry that was lost. [CC-65]
TEST(TakenSegmentTest, WhatTheOwnerWroteIsSyncedFirst) {
  Options options = TinyOptions(1);
  options.persist_mode = PersistMode::kPage;
  options.max_region_size = 32ull << 20;
  options.segment_size = 256 << 10;
  options.disable_auto_compaction = true;
  options.memtable_size = 64 << 20;  // no flush syncs
  options.memtable_max_entries = 1 << 20;
  TestDirectory directory;
  const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  constexpr size_t kUnsynced = 40'000;
  WriteOptions unsynced;
  unsynced.sync = false;
  // Threads that live at the same time have a segment each, which together take nearly all of the region.
  constexpr int kThreads = 90;
  std::latch all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_OK(db->Put(unsynced, NumberedKey(i), PatternedValue(i, kUnsynced)));
      all.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  int keys = kThreads;
  std::atomic<bool> is_taken{false};
  SyncPoints::Instance().SetCallback("DBImpl::TakeOpenSegment:Disowned", [&](void*) {
    is_taken = true;
    synced_bytes = 0;
  });
  SyncPoints::Instance().Enable();
  for (; !is_taken && keys < 100'000; ++keys) {
    synced_bytes = 0;
    ASSERT_OK(db->Put({}, NumberedKey(keys), PatternedValue(keys, 100)));
  }
  ASSERT_TRUE(is_taken) << "the region was never full";
  EXPECT_GE(synced_bytes, kUnsynced);
  synced_bytes = 0;
  ASSERT_OK(db->Put({}, NumberedKey(keys), PatternedValue(keys, 100)));
  EXPECT_LE(synced_bytes, kUnsynced / 2) << "a write syncs its own pages, so the other bytes were the owner's";
  SyncPoints::Instance().Clear();
}

}  // namespace
}  // namespace braiddb::test
