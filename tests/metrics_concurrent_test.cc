// GetMetrics beside everything that changes what it reads.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/metrics.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/metrics_text_parser.h"

namespace braiddb::test {
namespace {

class MetricsConcurrentTest : public DbOpenTest {};

TEST_F(MetricsConcurrentTest, CountersOnlyGrow) {
  constexpr int kWriters = 2;
  constexpr int kKeys = 3000;
  const auto db = OpenOrFail(TinyOptions(2), path_);
  ASSERT_NE(db, nullptr);
  std::atomic<int> working{kWriters + 1};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      std::string value;
      for (int i = 0; i < kKeys; ++i) {
        EXPECT_OK(db->Put({}, NumberedKey(i * kWriters + writer), PatternedValue(i, 50)));
        EXPECT_OK(db->Get({}, NumberedKey(i * kWriters + writer), &value));
      }
      --working;
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 5; ++i) {
      std::unique_ptr<ColumnFamilyHandle> family;
      EXPECT_OK(db->CreateColumnFamily({}, "family " + std::to_string(i), &family));
      EXPECT_OK(db->Put({}, family.get(), "key", "value"));
      EXPECT_OK(db->DeleteRange({}, "x", "y"));
      const Snapshot* const snapshot = db->GetSnapshot();
      EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      db->ReleaseSnapshot(snapshot);
      EXPECT_OK(db->DropColumnFamily(family.get()));
    }
    --working;
  });
  Metrics before = db->GetMetrics();
  while (working.load() > 0) {
    const Metrics now = db->GetMetrics();
    for (const MetricDescription& row : AllMetrics()) {
      if (row.type != MetricType::kCounter) continue;
      EXPECT_GE(now.Value(row.name), before.Value(row.name)) << row.name;
    }
    EXPECT_EQ(ParseMetricsText(MetricsText(now), MetricsFormat::kPrometheus).error, "");
    before = now;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(db->GetMetrics().Value("braiddb_writes_total"), kWriters * kKeys + 10);
  EXPECT_EQ(db->GetMetrics().Value("braiddb_gets_total"), kWriters * kKeys);
}

}  // namespace
}  // namespace braiddb::test
