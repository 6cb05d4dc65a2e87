// PerfContext and histograms: what calls count, at which level, and that nothing is counted without.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/perf_context.h"
#include "braiddb/transaction.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

// Tables of families with an order of their own have no index.
class Descending final : public Comparator {
 public:
  const char* Name() const override { return "descending"; }
  int Compare(Slice a, Slice b) const override { return b.compare(a); }
};

class DbPerfContextTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;
    options_.lookup_cache_size = 0;
    options_.memtable_size = 1 << 20;
    options_.memtable_max_entries = 1 << 16;
    options_.merge_operator = std::make_shared<AppendOperator>();
    Reopen();
  }
  void TearDown() override { SetPerfLevel(PerfLevel::kDisable); }

  static PerfContext& Counters() { return *GetPerfContext(); }
  static void CountFrom(PerfLevel level) {
    SetPerfLevel(level);
    Counters().Reset();
  }
  static bool AllZero() { return Counters().ToString(true).empty(); }
  void MergeKeys(int count) {
    for (int i = 0; i < count; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "merged"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  void WaitForFilter() {
    while (IntProperty(db_.get(), "braiddb.filter-bytes") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  HistogramData Histogram(HistogramKind kind) {
    Histograms all;
    EXPECT_TRUE(db_->GetHistograms(&all));
    return all.Get(kind);
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbPerfContextTest, testing::Values(1u, 2u));

TEST_P(DbPerfContextTest, NothingIsCountedUnlessWanted) {
  for (const PerfLevel level : {PerfLevel::kUninitialized, PerfLevel::kDisable}) {
    CountFrom(level);
    EXPECT_EQ(GetPerfLevel(), level);
    ASSERT_OK(db_->Put({}, "a", "1"));
    ASSERT_OK(db_->Merge({}, "a", "2"));
    EXPECT_EQ(GetOrText(db_.get(), "a"), "12");
    EXPECT_EQ(ScanForward(db_.get()).size(), 1u);
    ASSERT_OK(db_->Flush());
    EXPECT_TRUE(AllZero()) << Counters().ToString(true);
  }
}

TEST_P(DbPerfContextTest, CountsAndNoTimes) {
  CountFrom(PerfLevel::kEnableCount);
  ASSERT_OK(db_->Put({}, "a", "1"));
  EXPECT_EQ(GetOrText(db_.get(), "a"), "1");
  EXPECT_EQ(Counters().get_from_memtable_count, 1u);
  EXPECT_EQ(Counters().get_read_bytes, 1u);
  EXPECT_EQ(Counters().get_from_memtable_time, 0u);
  EXPECT_EQ(Counters().write_wal_time, 0u);
  EXPECT_EQ(Counters().write_pre_and_post_process_time, 0u);
}

TEST_P(DbPerfContextTest, LookupsByLevel) {
  for (int i = 0; i < 1000; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Put({}, "new", "value"));
  WaitForFilter();
  CountFrom(PerfLevel::kEnableTime);
  EXPECT_EQ(GetOrText(db_.get(), "new"), "value");
  EXPECT_EQ(Counters().user_key_comparison_count, 0u) << "a memtable had it";
  EXPECT_GT(Counters().get_from_memtable_time, 0u);
  EXPECT_EQ(Counters().get_from_output_files_time, 0u);
  EXPECT_EQ(GetOrText(db_.get(), NumberedKey(500)), "value");
  EXPECT_GT(Counters().get_from_output_files_time, 0u);
  EXPECT_GT(Counters().get_post_process_time, 0u);
  EXPECT_EQ(Counters().get_read_bytes, 10u);
  EXPECT_EQ(Counters().get_from_memtable_count, 2u);
  EXPECT_EQ(Counters().block_cache_hit_count, 0u);
  EXPECT_EQ(Counters().bloom_sst_hit_count, 1u);

  // Most of these end at the filter.
  for (int i = 2000; i < 2100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>");
  EXPECT_EQ(Counters().bloom_sst_hit_count + Counters().bloom_sst_miss_count, 101u);
  EXPECT_GT(Counters().bloom_sst_miss_count, 80u);
  EXPECT_EQ(Counters().get_read_bytes, 10u);

  std::vector<std::string> values;
  for (const Status& status : db_->MultiGet({}, {"key000001", "key000002", "none"}, &values)) EXPECT_FALSE(status.IsCorruption());
  EXPECT_EQ(Counters().multiget_read_bytes, 10u);
  EXPECT_EQ(Counters().get_read_bytes, 10u);
  EXPECT_GT(Counters().get_snapshot_time, 0u);

  // Many: one that the index in DRAM leads to straight away is compared with no entry.
  Counters().Reset();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "value");
  EXPECT_GT(Counters().user_key_comparison_count, 0u);
}

// A key of each level, and a missing one: which structures its get searches.
TEST_P(DbPerfContextTest, EachSearchedStructureIsCounted) {
  constexpr int kKeys = 1000;
  MergeKeys(kKeys);
  WaitForFilter();
  ASSERT_OK(db_->Put({}, "in L0", "flushed"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Put({}, "in memory", "put"));

  CountFrom(PerfLevel::kEnableTime);
  EXPECT_EQ(GetOrText(db_.get(), "in memory"), "put");
  EXPECT_EQ(Counters().get_from_memtable_count, 1u);
  EXPECT_EQ(Counters().l0_index_search_count + Counters().last_level_search_count, 0u);

  Counters().Reset();
  EXPECT_EQ(GetOrText(db_.get(), "in L0"), "flushed");
  EXPECT_EQ(Counters().get_from_memtable_count, 1u);
  EXPECT_EQ(Counters().l0_index_search_count, 1u);
  EXPECT_EQ(Counters().l0_list_search_count, 0u);
  EXPECT_EQ(Counters().last_level_search_count, 0u);
  EXPECT_GT(Counters().get_from_l0_time, 0u);
  EXPECT_EQ(Counters().get_from_last_level_time, 0u);

  Counters().Reset();
  EXPECT_EQ(GetOrText(db_.get(), NumberedKey(500)), "merged");
  EXPECT_EQ(Counters().get_from_memtable_count, 1u);
  EXPECT_EQ(Counters().last_level_search_count, 1u);
  EXPECT_GT(Counters().get_from_last_level_time, 0u);
  EXPECT_GE(Counters().get_from_output_files_time, Counters().get_from_l0_time + Counters().get_from_last_level_time);

  // One after the other, so that the thread expects to find none.
  Counters().Reset();
  for (int i = kKeys; i < kKeys + 100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>");
  EXPECT_EQ(Counters().get_from_memtable_count, 100u);
  EXPECT_EQ(Counters().bloom_sst_hit_count + Counters().bloom_sst_miss_count, 100u);
  EXPECT_EQ(Counters().last_level_search_count, Counters().bloom_sst_hit_count);
  EXPECT_EQ(Counters().lookup_cache_search_count + Counters().lookup_cache_fill_count, 0u) << "there is no cache";
  EXPECT_EQ(Counters().get_repeated_count, 0u);
}

// What is measured is what runs: a thread that mostly finds nothing checks the filters before the cache. Each get counts once.
TEST_P(DbPerfContextTest, AMeasuredThreadExpectsMissesAsOthersDo) {
  if (GetParam() > 1) GTEST_SKIP() << "with one region only";
  MergeKeys(1000);
  options_.lookup_cache_size = 1 << 20;
  Reopen();  // with an empty cache
  ASSERT_OK(db_->Put({}, "in L0", "flushed"));
  ASSERT_OK(db_->Flush());
  WaitForFilter();
  std::thread([&] {
    CountFrom(PerfLevel::kEnableTime);
    for (int i = 2000; i < 2100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>");
    EXPECT_LT(Counters().lookup_cache_search_count, 50u);
    EXPECT_EQ(Counters().get_from_memtable_count, 100u);
    EXPECT_EQ(Counters().bloom_sst_hit_count + Counters().bloom_sst_miss_count, 100u);
    EXPECT_GT(Counters().get_from_l0_time, 0u);
    EXPECT_GE(Counters().get_from_output_files_time, Counters().get_from_l0_time + Counters().get_from_last_level_time);
    Counters().Reset();
    EXPECT_EQ(GetOrText(db_.get(), NumberedKey(5)), "merged");
    EXPECT_EQ(Counters().get_from_memtable_count, 1u);
    EXPECT_EQ(Counters().bloom_sst_hit_count, 1u);
    EXPECT_LE(Counters().l0_index_search_count, 1u);
    EXPECT_EQ(Counters().last_level_search_count, 1u);
  }).join();
}

TEST_P(DbPerfContextTest, WithoutTablesNoTimeIsSpentInL0) {
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  CountFrom(PerfLevel::kEnableTime);
  for (int i = 0; i < 200; ++i) (void)GetOrText(db_.get(), NumberedKey(i));
  EXPECT_EQ(Counters().get_from_l0_time, 0u);
  EXPECT_EQ(Counters().l0_index_search_count + Counters().l0_list_search_count, 0u);
}

TEST_P(DbPerfContextTest, SearchesForOperandsAreCounted) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Merge({}, "a", "2"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Merge({}, "a", "3"));
  CountFrom(PerfLevel::kEnableTime);
  EXPECT_EQ(GetOrText(db_.get(), "a"), "123");
  EXPECT_EQ(Counters().get_repeated_count, 1u);
  EXPECT_EQ(Counters().get_from_memtable_count, 2u) << "the get, and its repetition";
  EXPECT_EQ(Counters().l0_index_search_count, 1u);
  EXPECT_EQ(Counters().last_level_search_count, 1u);
  EXPECT_GE(Counters().get_from_output_files_time, Counters().get_from_l0_time + Counters().get_from_last_level_time);
}

TEST_P(DbPerfContextTest, RefusedFillsAreNotCounted) {
  options_.lookup_cache_size = 1 << 20;
  Reopen();
  ASSERT_OK(db_->Put({}, "a", "old"));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(db_->Put({}, "a", "new"));
  ReadOptions as_of;
  as_of.snapshot = snapshot;
  CountFrom(PerfLevel::kEnableCount);
  std::string value;
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(db_->Get(as_of, "a", &value));
    EXPECT_EQ(value, "old");
  }
  EXPECT_EQ(Counters().lookup_cache_search_count, 10u);
  EXPECT_EQ(Counters().lookup_cache_fill_count, 0u) << "the cache has newest versions only";
  db_->ReleaseSnapshot(snapshot);
}

TEST_P(DbPerfContextTest, TablesWithoutAnIndexAreCounted) {
  static const Descending descending;
  options_.comparator = &descending;
  db_.reset();
  ASSERT_OK(DB::Open(options_, directory_.File("ordered"), &db_));
  for (const char* value : {"1", "2", "3"}) {
    ASSERT_OK(db_->Put({}, "a", value));
    ASSERT_OK(db_->Flush());
  }
  CountFrom(PerfLevel::kEnableCount);
  EXPECT_EQ(GetOrText(db_.get(), "b"), "<not found>");
  EXPECT_EQ(Counters().l0_list_search_count, 3u);
  EXPECT_EQ(Counters().l0_index_search_count, 0u);
  EXPECT_EQ(Counters().last_level_search_count, 1u);
}

TEST_P(DbPerfContextTest, ReadsFillTheLookupCache) {
  options_.lookup_cache_size = 1 << 20;
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  Reopen();
  CountFrom(PerfLevel::kEnableCount);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(50)), "value");
  EXPECT_EQ(Counters().lookup_cache_search_count, 3u);
  EXPECT_EQ(Counters().lookup_cache_fill_count, 1u);
  EXPECT_EQ(Counters().block_cache_hit_count, 2u);
  EXPECT_EQ(Counters().last_level_search_count, 1u);
}

TEST_P(DbPerfContextTest, TheLookupCacheHits) {
  options_.lookup_cache_size = 1 << 20;
  Reopen();
  ASSERT_OK(db_->Put({}, "a", "1"));
  CountFrom(PerfLevel::kEnableCount);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(GetOrText(db_.get(), "a"), "1");
  EXPECT_EQ(Counters().block_cache_hit_count, 5u);
  EXPECT_EQ(Counters().user_key_comparison_count, 5u);
  EXPECT_EQ(Counters().get_from_memtable_count, 0u);
}

TEST_P(DbPerfContextTest, Writes) {
  CountFrom(PerfLevel::kEnableTimeExceptForMutex);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Delete("b");
  ASSERT_OK(db_->Write({}, batch));
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(Counters().write_wal_time, 0u);
  EXPECT_GT(Counters().write_memtable_time, 0u);
  EXPECT_GT(Counters().write_pre_and_post_process_time, 0u);
  EXPECT_EQ(Counters().db_mutex_lock_nanos, 0u);
  EXPECT_LE(Counters().write_wal_time + Counters().write_memtable_time + Counters().write_delay_time +
                Counters().write_pre_and_post_process_time,
            static_cast<uint64_t>(took));
}

TEST_P(DbPerfContextTest, Iterators) {
  for (int i = 0; i < 10; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "old"));
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 10; i += 2) ASSERT_OK(db_->Put({}, NumberedKey(i), "new"));
  ASSERT_OK(db_->Delete({}, NumberedKey(3)));
  ASSERT_OK(db_->Delete({}, NumberedKey(5)));
  const auto iterator = db_->NewIterator({});
  CountFrom(PerfLevel::kEnableTime);
  uint64_t bytes = 0;
  int keys = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    bytes += iterator->key().size() + iterator->value().size();
    ++keys;
  }
  EXPECT_EQ(keys, 8);
  EXPECT_EQ(Counters().iter_read_bytes, bytes);
  EXPECT_EQ(Counters().internal_delete_skipped_count, 2u);
  // The eight that were shown, one version below each of the five, and what the two tombstones hid.
  EXPECT_EQ(Counters().internal_key_skipped_count, 8u + 5u + 2u);
  EXPECT_EQ(Counters().internal_recent_skipped_count, 0u);
  EXPECT_GT(Counters().find_next_user_entry_time, 0u);
  EXPECT_EQ(Counters().seek_internal_seek_time, 0u) << "it went to the first";

  Counters().Reset();
  iterator->Seek(NumberedKey(7));
  ASSERT_TRUE(iterator->Valid());
  EXPECT_GE(Counters().seek_on_memtable_count, 1u);
  EXPECT_EQ(Counters().seek_child_seek_count, 2u) << "a table and the last level";
  EXPECT_GT(Counters().seek_internal_seek_time, 0u);
  EXPECT_GE(Counters().seek_internal_seek_time, Counters().seek_child_seek_time + Counters().seek_on_memtable_time);

  // What is newer than the iterator is passed over.
  ASSERT_OK(db_->Put({}, NumberedKey(8), "newer"));
  Counters().Reset();
  iterator->Seek(NumberedKey(8));
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "new");
  EXPECT_LE(Counters().internal_recent_skipped_count, 1u) << "none, where the iterator's memtable was sorted before";
}

TEST_P(DbPerfContextTest, Operands) {
  CountFrom(PerfLevel::kEnableTime);
  for (int i = 0; i < 7; ++i) ASSERT_OK(db_->Merge({}, "a", "x"));
  EXPECT_EQ(GetOrText(db_.get(), "a"), "xxxxxxx");
  EXPECT_EQ(Counters().internal_merge_count, 7u);
  EXPECT_GT(Counters().merge_operator_time_nanos, 0u);
  EXPECT_EQ(ScanForward(db_.get()).size(), 1u);
  EXPECT_EQ(Counters().internal_merge_count, 14u);
}

TEST_P(DbPerfContextTest, EachThreadHasItsOwn) {
  CountFrom(PerfLevel::kEnableCount);
  ASSERT_OK(db_->Put({}, "a", "1"));
  std::thread([this] {
    EXPECT_EQ(GetPerfLevel(), PerfLevel::kUninitialized);
    EXPECT_EQ(GetOrText(db_.get(), "a"), "1");
    EXPECT_TRUE(AllZero());
    CountFrom(PerfLevel::kEnableCount);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(GetOrText(db_.get(), "a"), "1");
    EXPECT_EQ(Counters().get_read_bytes, 3u);
  }).join();
  EXPECT_EQ(Counters().get_read_bytes, 0u);
}

TEST_P(DbPerfContextTest, LocksThatAreWaitedFor) {
  db_.reset();
  std::unique_ptr<TransactionDB> db;
  ASSERT_OK(TransactionDB::Open(options_, {}, directory_.File("db"), &db));
  CountFrom(PerfLevel::kEnableTime);
  std::unique_ptr<Transaction> first = db->BeginTransaction({}, {});
  ASSERT_OK(first->Put("a", "1"));
  EXPECT_EQ(Counters().key_lock_wait_count, 0u);
  TransactionOptions impatient;
  impatient.lock_timeout_ms = 5;
  std::unique_ptr<Transaction> second = db->BeginTransaction({}, impatient);
  EXPECT_TRUE(second->Put("a", "2").IsTimedOut());
  EXPECT_EQ(Counters().key_lock_wait_count, 1u);
  EXPECT_GE(Counters().key_lock_wait_time, 1'000'000u);
}

TEST_P(DbPerfContextTest, TheTextHasNamesAndNumbers) {
  Counters().Reset();
  EXPECT_EQ(Counters().ToString(true), "");
  Counters().get_read_bytes = 12;
  Counters().write_wal_time = 34;
  EXPECT_EQ(Counters().ToString(true), "get_read_bytes = 12, write_wal_time = 34, ");
  EXPECT_NE(Counters().ToString().find("block_cache_hit_count = 0, "), std::string::npos);
}

// ---- Histograms

TEST_P(DbPerfContextTest, ThereAreNoHistogramsUnlessWanted) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  Histograms all;
  EXPECT_FALSE(db_->GetHistograms(&all));
}

TEST_P(DbPerfContextTest, HistogramsOfCallsAndBackgroundWork) {
  options_.histograms = true;
  Reopen();
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(static_cast<uint64_t>(i), 100)));
  for (int i = 0; i < 50; ++i) EXPECT_NE(GetOrText(db_.get(), NumberedKey(i)), "<not found>");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(GetOrText(db_.get(), "none"), "<not found>");
  std::vector<std::string> values;
  (void)db_->MultiGet({}, {NumberedKey(1), NumberedKey(2)}, &values);
  const auto iterator = db_->NewIterator({});
  for (int i = 0; i < 5; ++i) iterator->Seek(NumberedKey(i));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  std::thread([this] { EXPECT_NE(GetOrText(db_.get(), NumberedKey(1)), "<not found>"); }).join();

  EXPECT_EQ(Histogram(HistogramKind::kWriteMicros).count, 100u);
  EXPECT_EQ(Histogram(HistogramKind::kGetMicros).count, 71u) << "those of another thread, too";
  EXPECT_EQ(Histogram(HistogramKind::kMultiGetMicros).count, 1u);
  EXPECT_EQ(Histogram(HistogramKind::kSeekMicros).count, 5u);
  EXPECT_GE(Histogram(HistogramKind::kFlushMicros).count, 1u);
  EXPECT_EQ(Histogram(HistogramKind::kCompactionMicros).count, 1u);
  EXPECT_EQ(Histogram(HistogramKind::kMergedTables).minimum, 1);
  const HistogramData read = Histogram(HistogramKind::kBytesPerRead);
  EXPECT_EQ(read.count, 51u);
  EXPECT_EQ(read.sum, 5100);
  EXPECT_EQ(read.minimum, 100);
  EXPECT_EQ(read.maximum, 100);
  EXPECT_NEAR(read.median, 100, 6);
  EXPECT_EQ(read.average, 100);
  EXPECT_EQ(Histogram(HistogramKind::kBytesPerMultiGet).sum, 200);
  EXPECT_EQ(Histogram(HistogramKind::kBytesPerWrite).sum, static_cast<double>(db_->GetStatistics().log_bytes));
  const HistogramData get = Histogram(HistogramKind::kGetMicros);
  EXPECT_GT(get.minimum, 0);
  EXPECT_LE(get.minimum, get.median);
  EXPECT_LE(get.median, get.percentile99);
  EXPECT_LE(get.percentile99, get.maximum);

  Histograms all, sum;
  ASSERT_TRUE(db_->GetHistograms(&all));
  sum.Merge(all);
  sum.Merge(all);
  EXPECT_EQ(sum.Get(HistogramKind::kBytesPerRead).count, 102u);
  EXPECT_NE(all.ToString().find("rocksdb.bytes.per.read P50 : 100"), std::string::npos) << all.ToString();
}

TEST_P(DbPerfContextTest, DeletionsOfRangesAreWrites) {
  options_.histograms = true;
  Reopen();
  ASSERT_OK(db_->Put({}, "a", "1"));
  CountFrom(PerfLevel::kEnableTime);
  ASSERT_OK(db_->DeleteRange({}, "a", "b"));
  EXPECT_GT(Counters().write_wal_time, 0u);
  EXPECT_GT(Counters().write_memtable_time, 0u);
  EXPECT_GT(Counters().write_pre_and_post_process_time, 0u);
  WriteBatch batch;
  batch.DeleteRange("b", "d");
  batch.Put("c", "2");
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_EQ(Histogram(HistogramKind::kWriteMicros).count, 3u);
  EXPECT_EQ(Histogram(HistogramKind::kBytesPerWrite).sum, static_cast<double>(db_->GetStatistics().log_bytes));
  EXPECT_EQ(GetOrText(db_.get(), "a"), "<not found>");
  EXPECT_EQ(GetOrText(db_.get(), "c"), "2");
}

TEST_P(DbPerfContextTest, OperandsPerReadAreAHistogram) {
  options_.histograms = true;
  Reopen();
  for (int i = 0; i < 9; ++i) ASSERT_OK(db_->Merge({}, "a", "x"));
  EXPECT_EQ(GetOrText(db_.get(), "a"), "xxxxxxxxx");
  EXPECT_EQ(Histogram(HistogramKind::kMergeOperands).maximum, 9);
}

TEST_P(DbPerfContextTest, HistogramsAreReadWhileOthersAdd) {
  options_.histograms = true;
  Reopen();
  ASSERT_OK(db_->Put({}, "a", "1"));
  std::vector<std::thread> threads;
  constexpr int kReads = 2000 / kSlowdown;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      std::string value;
      for (int i = 0; i < kReads; ++i) EXPECT_OK(db_->Get({}, "a", &value));
    });
  }
  uint64_t before = 0;
  for (int i = 0; i < 50; ++i) {
    const uint64_t now = Histogram(HistogramKind::kGetMicros).count;
    EXPECT_GE(now, before);
    before = now;
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Histogram(HistogramKind::kGetMicros).count, 3u * kReads);
}

}  // namespace
}  // namespace braiddb::test
