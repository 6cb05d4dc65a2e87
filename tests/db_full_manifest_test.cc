// A MANIFEST without room for more tables: what was flushed is durable all the same, and a family can be dropped.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "lsm/manifest.h"
#include "pmem/persistence.h"
#include "pmem/segment_allocator.h"
#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// What is durable of the lines that were flushed since it began to watch: a line is durable, as it was then, when the thread that
// flushed it has fenced.
class Durable final : public PersistObserver {
 public:
  explicit Durable(Persistence* persistence) : persistence_(persistence) { persistence_->SetObserver(this); }
  ~Durable() override { persistence_->SetObserver(nullptr); }
  void OnFlush(const void* address, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t line = begin / kCacheLine; line <= (begin + bytes - 1) / kCacheLine; ++line)
      pending_[std::this_thread::get_id()].insert(line);
  }
  void OnDrain() override {
    const std::lock_guard lock(mutex_);
    for (const uintptr_t line : pending_[std::this_thread::get_id()])
      memcpy(lines_[line].data(), reinterpret_cast<const void*>(line * kCacheLine), kCacheLine);
    pending_[std::this_thread::get_id()].clear();
  }
  // The number of whole lines of this memory that are not durable as they are now.
  int Missing(const uint8_t* data, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    int missing = 0;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kCacheLine;
    for (uintptr_t line = (reinterpret_cast<uintptr_t>(data) + kCacheLine - 1) / kCacheLine; line < end; ++line) {
      const auto found = lines_.find(line);
      const bool is_there = found != lines_.end() &&
                            memcmp(found->second.data(), reinterpret_cast<const void*>(line * kCacheLine), kCacheLine) == 0;
      missing += !is_there;
    }
    return missing;
  }

 private:
  Persistence* const persistence_;
  std::mutex mutex_;
  std::map<std::thread::id, std::set<uintptr_t>> pending_;
  std::map<uintptr_t, std::array<uint8_t, kCacheLine>> lines_;
};

class DbFullManifestTest : public DbOpenTest {
 protected:
  DbFullManifestTest() {
    options_.disable_auto_compaction = true;
    options_.checkpoint_tables = 1;
    options_.max_region_size = 256ull << 20;
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }
  // Flushes more tables than the MANIFEST lists.
  void FillManifest(DB* db) {
    for (uint32_t i = 0; i < kMaxManifestTables + 3 * kMaxTablesPerFamily; ++i) {
      ASSERT_OK(db->Put({}, NumberedKey(static_cast<int>(i)), "v"));
      ASSERT_OK(db->Flush());
    }
  }
  struct Piece {
    const uint8_t* data;
    uint64_t bytes;
  };
  static std::vector<Piece> LogOf(DB* db) {
    std::vector<Piece> pieces;
    SegmentsOf(db)->ForEachLog([&](const Segment* segment) {
      if (segment->state() == SegmentState::kOpen || segment->state() == SegmentState::kSealed)
        pieces.push_back({segment->data(), segment->used_bytes.load()});
    });
    return pieces;
  }

  Options options_ = TinyOptions(1);
};

// Writes without sync, on a disk. The writing thread ends.
TEST_F(DbFullManifestTest, AFlushAndACloseAreDurable) {
  options_.persist_mode = PersistMode::kPage;
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    ASSERT_OK(DB::Destroy(options_, path_));
    auto db = OpenOrFail(options_, path_);
    ASSERT_NE(db, nullptr);
    Durable durable(RegionsOf(db.get())->persistence());
    ASSERT_NO_FATAL_FAILURE(FillManifest(db.get()));
    std::thread([&] {
      WriteOptions unsynced;
      unsynced.sync = false;
      for (int i = 0; i < 1000; ++i) ASSERT_OK(db->Put(unsynced, "w" + NumberedKey(i), PatternedValue(i, 50)));
    }).join();
    const std::vector<Piece> log = LogOf(db.get());
    ASSERT_OK(closes ? db->Close() : db->Flush());
    for (const Piece& piece : log) EXPECT_EQ(durable.Missing(piece.data, piece.bytes), 0);
  }
}

// A replay goes by the number of a family. So nothing that a replay finds may belong to a family that is forgotten.
TEST_F(DbFullManifestTest, NothingOfADroppedFamilyComesBack) {
  std::atomic<bool> is_forgotten{false};
  SyncPoints::Instance().SetCallback("DBImpl::ForgetPurged:Done", [&](void*) { is_forgotten = true; });
  SyncPoints::Instance().Enable();
  auto db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  std::unique_ptr<ColumnFamilyHandle> first, second;
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "first", &first));
  ASSERT_NO_FATAL_FAILURE(FillManifest(db.get()));
  for (int i = 0; i < 100; ++i) ASSERT_OK(db->Put({}, first.get(), NumberedKey(i), "of the first family"));
  ASSERT_OK(db->Flush());
  const uint32_t id = first->GetID();
  ASSERT_OK(db->DropColumnFamily(first.get()));
  first.reset();
  ASSERT_TRUE(WaitUntil([&] { return is_forgotten.load(); }));
  ASSERT_OK(db->Close());
  db.reset();
  db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "second", &second));
  ASSERT_EQ(second->GetID(), id);
  second.reset();
  ASSERT_OK(db->Close());
  db.reset();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::Open(options_, path_, {{"default", ColumnFamilyOptions(options_)}, {"second", ColumnFamilyOptions(options_)}},
                     &handles, &db));
  const auto iterator = db->NewIterator({}, handles[1].get());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid()) << iterator->key();
  std::string value;
  EXPECT_OK(db->Get({}, handles[0].get(), NumberedKey(0), &value));
}

// A segment whose entries are all dead waits for a reader. When the reader has left, the segment may be in use again at once. So
// the purge of a dropped family leaves it alone.
TEST_F(DbFullManifestTest, APurgeWalksNoRetiredSegment) {
  std::atomic<int> walked{0};
  std::atomic<int> retired{0};
  std::atomic<bool> goes_on{false};
  std::atomic<bool> is_forgotten{false};
  SyncPoints& points = SyncPoints::Instance();
  // The purge walks one segment in each round. It waits behind the first one.
  points.SetCallback("DBImpl::CompactUntilStopped:Next", [&](void*) {
    while (walked > 0 && !goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  points.SetCallback("DBImpl::PurgeOneSegment:Walk", [&](void* arg) {
    const auto* const segment = static_cast<Segment*>(arg);
    ++walked;
    if (segment->state() == SegmentState::kSealed && segment->entries.load() == 0) ++retired;
  });
  points.SetCallback("DBImpl::ForgetPurged:Done", [&](void*) { is_forgotten = true; });
  points.Enable();
  auto db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "family", &family));
  for (int i = 0; i < 3000; ++i) {
    ASSERT_OK(db->Put({}, family.get(), NumberedKey(i), "v"));
    ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 200)));
  }
  ASSERT_OK(db->Put({}, "pinned", "p"));
  ASSERT_OK(db->CompactRange({}, family.get(), nullptr, nullptr));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  // All of that is replaced: in the family before the drop, in the default family by the merge behind it.
  for (int i = 0; i < 3000; ++i) ASSERT_OK(db->Put({}, family.get(), NumberedKey(i), "w"));
  ASSERT_OK(db->CompactRange({}, family.get(), nullptr, nullptr));
  for (int i = 0; i < 3000; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 201)));
  ASSERT_OK(db->Flush());
  ASSERT_OK(db->DropColumnFamily(family.get()));
  family.reset();
  ASSERT_TRUE(WaitUntil([&] { return walked > 0; }));
  PinnableSlice pinned;
  ASSERT_OK(db->Get({}, "pinned", &pinned));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  goes_on = true;
  ASSERT_TRUE(WaitUntil([&] { return is_forgotten.load(); }));
  EXPECT_GT(walked.load(), 0);
  EXPECT_EQ(retired.load(), 0);
  points.Clear();
}

}  // namespace
}  // namespace braiddb::test
