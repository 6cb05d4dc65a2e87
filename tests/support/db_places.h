// DbPlacesTest: a database whose data lies in one place, or in several, as the case says: memtables, L0, the last level.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/model/reference_iterator.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "util/sync_point.h"

namespace braiddb::test {

// Where the data lies when the iterator is made.
// kL0Wide: in more tables than an iterator fetches entries of at once, each with an order of its own. kL0Merged: in tables whose
// orders are merged. kL0Reopened: in tables of which those from before an open are lists, and the others have their order in
// DRAM.
enum class Place {
  kMemtable,
  kImmutable,
  kL0,
  kL0Many,
  kL0Wide,
  kL0Merged,
  kL0Reopened,
  kL1,
  kAllLevels,
  kAllLevelsWithTombstones
};

struct PlaceCase {
  const char* name;
  Place place;
  uint32_t regions;
};

inline void PrintTo(const PlaceCase& test, std::ostream* out) { *out << test.name; }

// Holds flushes just before a flushed table takes the memtable's place, so that immutable memtables stay.
class FlushGate {
 public:
  ~FlushGate() {
    Open();
    SyncPoints::Instance().Clear();
  }
  void Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    SyncPoints::Instance().SetCallback("DBImpl::FlushOne:Linked", [this](void*) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !closed_; });
    });
    SyncPoints::Instance().Enable();
  }
  void Open() {
    std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
};

class DbPlacesTest : public testing::TestWithParam<PlaceCase> {
 protected:
  void SetUp() override {
    options_ = TinyOptions(GetParam().regions);
    options_.disable_auto_compaction = true;  // data stays where the test puts it
    options_.max_immutable_memtables = 1000;
    if (GetParam().place == Place::kL0Wide) options_.merge_operator = std::make_shared<AppendOperator>();  // orders stay apart
    Open();
  }
  void TearDown() override { gate_.Open(); }
  void Open() {
    gate_.Open();
    db_.reset();
    ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put({}, key, value));
    content_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_OK(db_->Delete({}, key));
    content_.erase(key);
  }
  Status Flush() {
    gate_.Open();
    return db_->Flush();
  }
  Status Merge() {
    gate_.Open();
    return db_->CompactRange({}, nullptr, nullptr);
  }

  // Writes `keys` (in the order given) so that they end up in the place of this case.
  void Load(const std::vector<std::string>& keys) {
    keys_ = keys;
    if (GetParam().place == Place::kImmutable) gate_.Close();
    Random random(keys.size());
    const bool all = GetParam().place == Place::kAllLevels || GetParam().place == Place::kAllLevelsWithTombstones;
    if (!all) {
      for (size_t i = 0; i < keys.size(); ++i) {
        Put(keys[i], PatternedValue(i, 10 + random.Uniform(100)));
        if (IsInTables() && i % FlushEvery() == FlushEvery() - 1) {
          ASSERT_OK(Flush());
        }
        if (GetParam().place == Place::kL0Reopened && i == keys.size() / 2) {
          ASSERT_OK(Flush());
          db_.reset();
          SyncPoints::Instance().SetCallback("DBImpl::IndexRestoredTables",
                                             [](void* is_put_off) { *static_cast<bool*>(is_put_off) = true; });
          SyncPoints::Instance().Enable();
          db_ = OpenOrFail(options_, directory_.File("db"));
          ASSERT_NE(db_, nullptr);
        }
      }
    } else {
      // Four layers of versions; each covers a random third of the keys, the lowest all of them.
      for (int layer = 0; layer < 4; ++layer) {
        for (size_t i = 0; i < keys.size(); ++i) {
          if (layer > 0 && !random.OneIn(3)) continue;
          if (GetParam().place == Place::kAllLevelsWithTombstones && layer > 0 && random.OneIn(2)) {
            Delete(keys[i]);
          } else {
            Put(keys[i], PatternedValue(i * 10 + layer, 10 + random.Uniform(100)));
          }
        }
        if (layer == 0) {
          ASSERT_OK(Merge());
        }
        if (layer == 1 || layer == 2) {
          ASSERT_OK(Flush());
        }
      }
    }
    if (GetParam().place == Place::kImmutable) RotateWithoutFlush();
    if (GetParam().place == Place::kL0) {
      ASSERT_OK(Flush());
    }
    if (GetParam().place == Place::kL1) {
      ASSERT_OK(Merge());
    }
    if (keys.size() < 100) return;  // too few to be spread
    if (GetParam().place == Place::kImmutable) {
      ASSERT_GT(IntProperty(db_.get(), "braiddb.num-immutable-mem-table"), 0u);
    }
    if (IsInTables()) {
      ASSERT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 1u);
    }
    if (all) {
      ASSERT_GE(IntProperty(db_.get(), "braiddb.num-l0-tables"), 2u);
    }
  }

  bool IsInTables() const {
    const Place place = GetParam().place;
    return place == Place::kL0Many || place == Place::kL0Wide || place == Place::kL0Merged || place == Place::kL0Reopened;
  }
  size_t FlushEvery() const { return GetParam().place == Place::kL0Wide || GetParam().place == Place::kL0Merged ? 5 : 37; }

  // Fills up the memtable with versions of one key, which in the end is deleted or as before.
  void RotateWithoutFlush() {
    const std::string filler = "filler that goes";
    const uint64_t rotations = db_->GetStatistics().rotations;
    for (int i = 0; db_->GetStatistics().rotations < rotations + 1 && i < 10'000; ++i) {
      ASSERT_OK(db_->Put({}, filler, PatternedValue(i, 1000)));
    }
    ASSERT_OK(db_->Delete({}, filler));
  }

  // Numbered keys in a scattered order.
  static std::vector<std::string> ScatteredKeys(int count) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) keys.push_back(NumberedKey(i * 389 % count * 2));
    return keys;
  }

  ReferenceIterator Expected(const ReadOptions& options = {}) const {
    return ReferenceIterator(VisiblePairs(content_, options, options_.comparator), options_.comparator);
  }

  FlushGate gate_;
  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> content_;
};

inline auto AllPlaces() {
  return testing::Values(
      PlaceCase{"Memtable1", Place::kMemtable, 1}, PlaceCase{"Memtable2", Place::kMemtable, 2},
      PlaceCase{"Immutable2", Place::kImmutable, 2}, PlaceCase{"L0In1", Place::kL0, 1}, PlaceCase{"L0In2", Place::kL0, 2},
      PlaceCase{"L0Many2", Place::kL0Many, 2}, PlaceCase{"L0Wide2", Place::kL0Wide, 2},
      PlaceCase{"L0Merged1", Place::kL0Merged, 1}, PlaceCase{"L0Merged2", Place::kL0Merged, 2},
      PlaceCase{"L0Reopened2", Place::kL0Reopened, 2}, PlaceCase{"L1In1", Place::kL1, 1}, PlaceCase{"L1In2", Place::kL1, 2},
      PlaceCase{"AllLevels1", Place::kAllLevels, 1}, PlaceCase{"AllLevels2", Place::kAllLevels, 2},
      PlaceCase{"Tombstones1", Place::kAllLevelsWithTombstones, 1}, PlaceCase{"Tombstones3", Place::kAllLevelsWithTombstones, 3});
}
inline std::string NameOfPlace(const testing::TestParamInfo<PlaceCase>& test) { return test.param.name; }

}  // namespace braiddb::test
