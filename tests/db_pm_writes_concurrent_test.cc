// Options::count_pm_writes: what puts write, by figures that were worked out by hand; all that a database does, against a model.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "log/log_entry.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

struct Counts {
  uint64_t lines = 0;
  uint64_t xp_lines = 0;
  uint64_t fences = 0;
  bool operator==(const Counts&) const = default;
  Counts operator-(const Counts& other) const { return {lines - other.lines, xp_lines - other.xp_lines, fences - other.fences}; }
};
void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.lines << " lines, " << counts.xp_lines << " XPLines, " << counts.fences << " fences";
}

// The same in the simplest way: a set of XPLines for each thread, and one lock. Remembers the last flush.
class Model final : public PersistObserver {
 public:
  void OnFlush(const void* address, size_t bytes) override {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(address);
    std::set<uintptr_t>& unfenced = unfenced_[std::this_thread::get_id()];
    for (uintptr_t line = begin / 64; line <= (begin + bytes - 1) / 64; ++line) {
      ++counts_.lines;
      unfenced.insert(line / 4);
    }
    last_flush_ = {begin, bytes};
  }
  void OnDrain() override {
    const std::lock_guard lock(mutex_);
    std::set<uintptr_t>& unfenced = unfenced_[std::this_thread::get_id()];
    ++counts_.fences;
    counts_.xp_lines += unfenced.size();
    unfenced.clear();
  }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  std::pair<uintptr_t, size_t> last_flush() const {
    const std::lock_guard lock(mutex_);
    return last_flush_;
  }

 private:
  mutable std::mutex mutex_;
  Counts counts_;
  std::map<std::thread::id, std::set<uintptr_t>> unfenced_;
  std::pair<uintptr_t, size_t> last_flush_;
};

class DbPmWritesTest : public testing::Test {
 protected:
  DbPmWritesTest() {
    options_.l1 = TestedL1();
    options_.create_if_missing = true;
    options_.count_pm_writes = true;
    options_.persist_mode = PersistMode::kEmulated;
    options_.regions = 1;
    options_.disable_auto_compaction = true;
  }

  // With the model beside the counts, which have seen more by then.
  void Open() {
    SetPoolsMappedHook([this](RegionSet* regions) {
      const PmWrites before = regions->persistence()->writes();
      before_ = {before.lines, before.xp_lines, before.fences};
      model_before_ = model_.counts();
      regions->persistence()->SetObserver(&model_);
    });
    db_ = OpenOrFail(options_, directory_.File("db"));
    SetPoolsMappedHook(nullptr);
  }
  Counts Counted() const {
    const Statistics statistics = db_->GetStatistics();
    return {statistics.pm_written_lines, statistics.pm_written_xplines, statistics.pm_fences};
  }
  uint64_t Segments() const { return db_->GetStatistics().segments_allocated; }
  template <class Work>
  Counts CountOf(const Work& work) {
    const Counts before = Counted();
    work();
    return Counted() - before;
  }

  // As soon as nothing goes on in the background any more.
  void ExpectWhatTheModelHas() const {
    const auto modelled = [this] { return model_.counts() - model_before_; };
    (void)WaitUntil([&] { return Counted() - before_ == modelled(); });
    EXPECT_EQ(Counted() - before_, modelled());
  }

  const TestDirectory directory_;
  Options options_;
  Model model_;  // outlives the database
  Counts before_, model_before_;
  std::unique_ptr<DB> db_;
};

TEST_F(DbPmWritesTest, IsOffByDefault) {
  EXPECT_FALSE(Options().count_pm_writes);
  options_.count_pm_writes = Options().count_pm_writes;
  db_ = OpenOrFail(options_, directory_.File("db"));
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(Counted(), Counts());
  EXPECT_FALSE(RegionsOf(db_.get())->persistence()->counts_writes());
  // Any open may choose.
  db_.reset();
  options_.count_pm_writes = true;
  db_ = OpenOrFail(options_, directory_.File("db"));
  ASSERT_OK(db_->Put({}, "key", "value"));
  EXPECT_NE(Counted(), Counts());
  std::string text;
  ASSERT_TRUE(db_->GetProperty("braiddb.stats", &text));
  EXPECT_NE(text.find("\nbraiddb.pm.fences COUNT : " + std::to_string(Counted().fences) + "\n"), std::string::npos) << text;
}

// A key of 16 bytes and a value of 100 in an entry of height 1: 24 of the header, 8 of its pointer, the 116, and 4 to a multiple
// of 8, so 152 bytes. By where in an XPLine it begins, its lines and the XPLines that they are in:
constexpr struct {
  uint64_t begin;  // mod 256
  Counts counts;
} kByHand[] = {
    {0, {3, 1, 1}},    // [0, 152): lines 0 to 2
    {24, {3, 1, 1}},   // [24, 176)
    {64, {3, 1, 1}},   // [64, 216): lines 1 to 3
    {88, {3, 1, 1}},   // [88, 240)
    {128, {3, 2, 1}},  // [128, 280): lines 2 to 4, and 4 is in the next XPLine
    {152, {3, 2, 1}},  // [152, 304)
    {192, {3, 2, 1}},  // [192, 344): lines 3 to 5
    {216, {3, 2, 1}},  // [216, 368)
};

TEST_F(DbPmWritesTest, APutIsItsLinesItsXpLinesAndOneFence) {
  Open();
  ASSERT_OK(db_->Put({}, "first", "opens a segment"));
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::string key = "sixteen_" + std::to_string(10'000'000 + i);
    ASSERT_EQ(key.size(), 16u);
    const uint64_t segments = Segments();
    const Counts counts = CountOf([&] { ASSERT_OK(db_->Put({}, key, std::string(100, 'v'))); });
    if (Segments() != segments) continue;  // one was opened
    const auto [address, bytes] = model_.last_flush();
    const auto* const entry = reinterpret_cast<const LogEntry*>(address);
    ASSERT_EQ(std::string(entry->key()), key);
    const uint64_t begin = address % 256;
    const uint64_t size = 24 + 8 * uint64_t{entry->height()} + 16 + 100 + 4;
    ASSERT_EQ(bytes, size);
    ASSERT_EQ(counts, (Counts{(begin % 64 + size + 63) / 64, (begin + size + 255) / 256, 1})) << begin << " " << size;
    if (entry->height() != 1) continue;
    for (const auto& known : kByHand) {
      if (known.begin != begin) continue;
      ASSERT_EQ(counts, known.counts) << begin;
      seen.insert(begin);
    }
  }
  EXPECT_EQ(seen.size(), std::size(kByHand));
}

// Keys and values of 8 bytes: 48 bytes with height 1, in a line of their own.
TEST_F(DbPmWritesTest, ASmallPutIsALineAndABatchOneFence) {
  Open();
  ASSERT_OK(db_->Put({}, "first", "opens a segment"));
  uint64_t ones = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const Counts counts = CountOf([&] { ASSERT_OK(db_->Put({}, std::to_string(10'000'000 + i), "12345678")); });
    const uintptr_t address = model_.last_flush().first;
    if (reinterpret_cast<const LogEntry*>(address)->height() != 1 || address % 64 != 0) continue;
    ++ones;
    ASSERT_EQ(counts, (Counts{1, 1, 1}));
  }
  EXPECT_GT(ones, 20u);
  WriteBatch batch;
  for (uint64_t i = 0; i < 100; ++i) batch.Put(NumberedKey(i), "value");
  const Counts counts = CountOf([&] { ASSERT_OK(db_->Write({}, batch)); });
  const auto [begin, bytes] = model_.last_flush();
  const uintptr_t end = begin + bytes;
  EXPECT_EQ(counts, (Counts{(end + 63) / 64 - begin / 64, (end + 255) / 256 - begin / 256, 1}));
  EXPECT_EQ(CountOf([&] { EXPECT_EQ(GetOrText(db_.get(), NumberedKey(7)), "value"); }), Counts());
}

// Writers in both regions that come and end, flushes, checkpoints, merges, relocations: every thread's writes, each once.
TEST_F(DbPmWritesTest, EverythingIsCountedWhoeverWritesIt) {
  const bool create = options_.create_if_missing;
  options_ = TinyOptions(2);
  options_.create_if_missing = create;
  options_.persist_mode = PersistMode::kEmulated;
  options_.count_pm_writes = true;
  options_.compaction_threads = 2;
  Open();
  const uint64_t writes = 6000 / kSlowdown;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    for (Counts last; !done;) {
      const Counts now = Counted();
      EXPECT_TRUE(now.lines >= last.lines && now.xp_lines >= last.xp_lines && now.fences >= last.fences);
      last = now;
    }
  });
  for (int wave = 0; wave < 3; ++wave) {
    std::vector<std::thread> writers;
    for (int t = 0; t < 3; ++t) {
      writers.emplace_back([&, t, wave] {
        Random random(static_cast<uint64_t>(10 * wave + t));
        for (uint64_t i = 0; i < writes; ++i) {
          ASSERT_OK(db_->Put({}, NumberedKey(random.Uniform(2000)), std::string(random.Skewed(300), 'v')));
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  }
  done = true;
  reader.join();
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_GT(db_->GetStatistics().merged_entries, 0u);
  ExpectWhatTheModelHas();
  EXPECT_GT(Counted().fences, 9 * writes);
}

// What the open itself writes is among it, and nothing is from the life before.
TEST_F(DbPmWritesTest, AnOpenBeginsAnew) {
  Open();
  for (int i = 0; i < 3000; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  const uint64_t fences = Counted().fences;
  EXPECT_GE(fences, 3000u);
  ASSERT_OK(db_->Close());
  db_.reset();
  Open();
  EXPECT_LT(Counted().fences, fences / 2);
  EXPECT_GT(Counted().fences, 0u);
  ExpectWhatTheModelHas();
}

TEST_F(DbPmWritesTest, PagesAreNotCounted) {
  const TestDirectory disk(TestDirectory::Medium::kDisk);
  options_.persist_mode = PersistMode::kPage;
  db_ = OpenOrFail(options_, disk.File("db"));
  WriteOptions lazy;
  lazy.sync = false;
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put(lazy, NumberedKey(i), "value"));
  ASSERT_OK(db_->Put({}, "key", "value"));
  EXPECT_EQ(Counted(), Counts());
  EXPECT_FALSE(RegionsOf(db_.get())->persistence()->counts_writes());
}

TEST_F(DbPmWritesTest, ReadersCountNothing) {
  Open();
  ASSERT_OK(db_->Put({}, "key", "value"));
  ASSERT_OK(db_->Close());
  db_.reset();
  ASSERT_OK(DB::OpenForReadOnly(options_, directory_.File("db"), &db_));
  EXPECT_EQ(GetOrText(db_.get(), "key"), "value");
  EXPECT_EQ(Counted(), Counts());
}

}  // namespace
}  // namespace braiddb::test
