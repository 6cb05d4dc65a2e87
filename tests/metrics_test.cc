// The registry of metrics, its texts, and docs/METRICS.md.
#include "braiddb/metrics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/metrics_text_parser.h"

namespace braiddb::test {
namespace {

using Values = std::array<std::string_view, 1>;

class MetricsTest : public DbOpenTest {
 protected:
  static constexpr MetricsFormat kFormats[] = {MetricsFormat::kPrometheus, MetricsFormat::kOpenMetrics};

  static double Gauge(DB* db, std::string_view name) { return db->GetMetrics().Value(name); }
  static double Gauge(DB* db, std::string_view name, std::string_view label) {
    return db->GetMetrics().Value(name, Values{label});
  }
  // A database with histograms, two families and entries on all levels.
  std::unique_ptr<DB> OpenFilled() {
    Options options = TinyOptions(2);
    options.histograms = true;
    options.count_pm_writes = true;
    std::unique_ptr<DB> db = OpenOrFail(options, path_);
    if (db == nullptr) return nullptr;
    EXPECT_OK(db->CreateColumnFamily({}, "a \"family\"\\\n\xff", &family_));
    for (int i = 0; i < 200; ++i) {
      EXPECT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 100)));
      EXPECT_OK(db->Put({}, family_.get(), NumberedKey(i), "1"));
      if (i == 50) {
        EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      }
      if (i == 100) {
        EXPECT_OK(db->Flush());
      }
    }
    std::string value;
    for (int i = 0; i < 300; ++i) (void)db->Get({}, NumberedKey(i), &value);
    return db;
  }

  std::unique_ptr<ColumnFamilyHandle> family_;
};

TEST_F(MetricsTest, RowsDescribeThemselves) {
  std::set<std::string> names;
  for (const MetricDescription& row : AllMetrics()) {
    const std::string name = row.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with("braiddb_")) << name;
    EXPECT_EQ(name.ends_with("_total"), row.type == MetricType::kCounter) << name;
    EXPECT_GT(std::string(row.meaning).size(), 3u) << name;
    EXPECT_FALSE(std::string(row.meaning).ends_with('.')) << name;
    EXPECT_GT(std::string(row.source).size(), 3u) << name;
  }
}

TEST_F(MetricsTest, TextsAreStrictlyFormed) {
  const auto db = OpenFilled();
  ASSERT_NE(db, nullptr);
  const Metrics metrics = db->GetMetrics();
  // The progress of jobs has samples only while one runs.
  const size_t all = AllMetrics().size() - (metrics.Find("braiddb_job_progress_ratio") == nullptr ? 1 : 0);
  EXPECT_EQ(metrics.all.size(), all);
  for (const MetricsFormat format : kFormats) {
    const std::string text = MetricsText(metrics, format);
    const ParsedMetrics parsed = ParseMetricsText(text, format);
    EXPECT_EQ(parsed.error, "") << text;
    EXPECT_EQ(parsed.types.size(), all);
    EXPECT_EQ(parsed.samples.at("braiddb_writes_total"), 400);
    EXPECT_EQ(parsed.samples.at("braiddb_write_duration_seconds_count"), 400);
    EXPECT_EQ(parsed.samples.at("braiddb_get_duration_seconds_bucket,le=+Inf"), 300);
  }
}

// A parser that accepts everything would find nothing.
TEST_F(MetricsTest, TheParserRefusesBadTexts) {
  const std::string good = "# HELP braiddb_a_total A\n# TYPE braiddb_a_total counter\nbraiddb_a_total{b=\"c\"} 1\n";
  EXPECT_EQ(ParseMetricsText(good, MetricsFormat::kPrometheus).error, "");
  EXPECT_NE(ParseMetricsText(good, MetricsFormat::kOpenMetrics).error, "");
  const std::string histogram = "# HELP braiddb_h H\n# TYPE braiddb_h histogram\n";
  for (const std::string& bad :
       {good + good, good + "braiddb_a_total{b=\"c\"} 2\n", good + "braiddb_other 1\n", good + "# EOF\n",
        good + "braiddb_a_total x\n", good + "braiddb_a_total -1\n", good + "braiddb_a_total{b=\"\xff\"} 1\n",
        good + "braiddb_a_total{b=\"d} 1\n", good.substr(0, good.size() - 1), good.substr(good.find('\n') + 1), histogram,
        histogram + "braiddb_h_bucket{le=\"1\"} 1\nbraiddb_h_count 1\nbraiddb_h_sum 1\n",
        histogram + "braiddb_h_bucket{le=\"1\"} 2\nbraiddb_h_bucket{le=\"+Inf\"} 1\nbraiddb_h_count 1\nbraiddb_h_sum 1\n"})
    EXPECT_NE(ParseMetricsText(bad, MetricsFormat::kPrometheus).error, "") << bad;
}

TEST_F(MetricsTest, ThePythonClientReadsTheTexts) {
  const auto db = OpenFilled();
  ASSERT_NE(db, nullptr);
  for (const MetricsFormat format : kFormats) {
    const std::string file = directory_.File("metrics");
    WriteFileOrDie(file, MetricsText(db->GetMetrics(), format));
    const std::string name = format == MetricsFormat::kPrometheus ? "prometheus " : "openmetrics ";
    const std::string command =
        "python3 " BRAIDDB_SOURCE "/tests/support/parse_metrics.py " + name + file + " >" + file + ".out 2>&1";
    const int status = std::system(command.c_str());
    const std::string output = ReadFileOrDie(file + ".out");
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) GTEST_SKIP() << output;
    EXPECT_EQ(WEXITSTATUS(status), 0) << output;
    EXPECT_GT(std::atoi(output.c_str()), 100) << output;
  }
}

TEST_F(MetricsTest, ValuesFollowTheDatabase) {
  const auto db = OpenFilled();
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(Gauge(db.get(), "braiddb_gets_total"), 300);
  EXPECT_EQ(Gauge(db.get(), "braiddb_gets_found_total"), 200);
  EXPECT_GT(Gauge(db.get(), "braiddb_pm_fences_total"), 0);
  EXPECT_GE(Gauge(db.get(), "braiddb_merges_total"), 1);
  EXPECT_EQ(Gauge(db.get(), "braiddb_damage_seen"), 0);
  EXPECT_EQ(Gauge(db.get(), "braiddb_writes_throttled", "background_error"), 0);

  EXPECT_EQ(Gauge(db.get(), "braiddb_snapshots"), 0);
  EXPECT_EQ(Gauge(db.get(), "braiddb_oldest_snapshot_age_seconds"), 0);
  const Snapshot* const snapshot = db->GetSnapshot();
  EXPECT_EQ(Gauge(db.get(), "braiddb_snapshots"), 1);
  EXPECT_EQ(Gauge(db.get(), "braiddb_oldest_snapshot_sequence"), static_cast<double>(snapshot->GetSequenceNumber()));
  while (Gauge(db.get(), "braiddb_oldest_snapshot_age_seconds") == 0) {
  }
  db->ReleaseSnapshot(snapshot);

  EXPECT_EQ(Gauge(db.get(), "braiddb_range_tombstones"), 0);
  ASSERT_OK(db->DeleteRange({}, "x", "y"));
  EXPECT_EQ(Gauge(db.get(), "braiddb_range_tombstones"), 1);
}

// Without histograms, a call of GetMetrics begins a window, and a call that ends behind the window ends the sampling.
TEST_F(MetricsTest, CallsAreSampled) {
  const auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(db, nullptr);
  const auto counts = [&db] {
    const Metrics metrics = db->GetMetrics();
    return std::pair(metrics.Find("braiddb_sampled_write_duration_seconds")->samples[0],
                     metrics.Find("braiddb_sampled_get_duration_seconds")->samples[0]);
  };
  std::string value;
  const auto call = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_OK(db->Put({}, NumberedKey(i), "1"));
      ASSERT_OK(db->Get({}, NumberedKey(i), &value));
    }
  };
  call(10);
  EXPECT_EQ(counts().first.count, 0u) << "nothing was sampled before the first call of GetMetrics";
  call(10);
  const auto [writes, gets] = counts();
  EXPECT_GE(writes.count, 1u);
  EXPECT_GT(writes.sum, 0);
  EXPECT_LE(writes.buckets.back().count, writes.count);

  // Until the window is over.
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2)) {
  }
  call(1000);
  const auto [after, after_gets] = counts();
  EXPECT_LE(after.count + after_gets.count, writes.count + gets.count + 1);
}

// Each entry is on one level, and what a level has is what the properties say.
TEST_F(MetricsTest, GaugesAgreeWithProperties) {
  const auto db = OpenFilled();
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Flush());
  ASSERT_OK(db->WaitForCompaction());
  const Metrics metrics = db->GetMetrics();
  uint64_t property = 0;
  double entries = 0;
  for (const std::string_view level : {"memtable", "immutable", "l0", "l1"})
    entries += metrics.Value("braiddb_entries", std::array<std::string_view, 2>{"default", level});
  ASSERT_TRUE(db->GetIntProperty("braiddb.estimate-num-keys", &property));
  EXPECT_EQ(entries, static_cast<double>(property));
  ASSERT_TRUE(db->GetIntProperty("braiddb.num-segments", &property));
  EXPECT_EQ(metrics.segments.size(), property);
  double live = 0;
  for (const MetricSample& sample : metrics.Find("braiddb_segment_live_bytes")->samples) {
    if (sample.labels[1].second == "open" || sample.labels[1].second == "sealed") live += sample.value;
  }
  ASSERT_TRUE(db->GetIntProperty("braiddb.pm-bytes-live", &property));
  EXPECT_EQ(live, static_cast<double>(property));
  EXPECT_EQ(metrics.Value("braiddb_last_sequence", {}), static_cast<double>(db->GetLatestSequenceNumber()));
  double dram = 0;
  for (const MetricSample& sample : metrics.Find("braiddb_dram_bytes")->samples) dram += sample.value;
  EXPECT_GT(dram, 0);
  // By the property, which the C API has, too.
  std::string text;
  ASSERT_TRUE(db->GetProperty("braiddb.metrics", &text));
  EXPECT_EQ(ParseMetricsText(text, MetricsFormat::kPrometheus).error, "");
}

TEST_F(MetricsTest, FamilyNamesAreEscaped) {
  const auto db = OpenFilled();
  ASSERT_NE(db, nullptr);
  const Metrics metrics = db->GetMetrics();
  EXPECT_GT(metrics.Value("braiddb_entries", std::array<std::string_view, 2>{"a \"family\"\\%0A%FF", "l1"}), 0);
}

TEST_F(MetricsTest, DatabasesForReadingHaveMetrics) {
  Fill(TinyOptions(1), 100);
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::OpenForReadOnly(TinyOptions(1), path_, &db));
    EXPECT_EQ(Gauge(db.get(), "braiddb_writes_throttled", "background_error"), 0);
    EXPECT_EQ(ParseMetricsText(MetricsText(db->GetMetrics()), MetricsFormat::kPrometheus).error, "");
  }
  const auto primary = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(primary, nullptr);
  std::unique_ptr<DB> secondary;
  ASSERT_OK(DB::OpenAsSecondary(TinyOptions(1), path_, directory_.File("secondary"), &secondary));
  EXPECT_FALSE(secondary->GetMetrics().all.empty());
}

std::string TypeName(MetricType type) {
  return type == MetricType::kCounter ? "counter" : type == MetricType::kGauge ? "gauge" : "histogram";
}

std::string MetricsPage() {
  std::string page =
      "# Metrics\n\n"
      "`DB::GetMetrics()` returns these metrics ([metrics.h](../include/braiddb/metrics.h)). `MetricsText` writes them in the "
      "text\n"
      "format of Prometheus or OpenMetrics. So does the property `braiddb.metrics`, also through the C API.\n"
      "[examples/metrics.cc](../examples/metrics.cc) is an HTTP endpoint. `braiddb serve` and `braiddb top` show the same "
      "metrics\n"
      "([TOOLS](TOOLS.md#braiddb-serve)).\n\n"
      "Counters begin with 0 at each open. All metrics are always on, except for the histograms that need `Options::histograms`. "
      "A\n"
      "label that the table names has one sample for each of its values. RocksDB's tickers and histograms are in "
      "[C_API](C_API.md).\n\n"
      "`metrics/registry.cc` is the source of this page; `BRAIDDB_UPDATE_DOCS=1 build/release/bin/metrics_test` writes it.\n\n"
      "| name | type | unit | labels | meaning | read from |\n|---|---|---|---|---|---|\n";
  for (const MetricDescription& row : AllMetrics()) {
    page += std::string("| `") + row.name + "` | " + TypeName(row.type) + " | " + row.unit + " | " + row.labels + " | " +
            row.meaning + " | " + row.source + " |\n";
  }
  return page;
}

TEST_F(MetricsTest, ThePageIsCurrent) {
  const std::string file = BRAIDDB_SOURCE "/docs/METRICS.md";
  if (std::getenv("BRAIDDB_UPDATE_DOCS") != nullptr) WriteFileOrDie(file, MetricsPage());
  EXPECT_EQ(ReadFileOrDie(file), MetricsPage()) << "run metrics_test with BRAIDDB_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace braiddb::test
