// Perf contexts through the C API: the calling thread's counters by RocksDB's numbers and names.
#include <thread>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiPerfContextTest : public CApiTest {
 protected:
  void TearDown() override { braiddb_set_perf_level(braiddb_disable); }
  std::string Report(bool exclude_zero) {
    char* const text = braiddb_perfcontext_report(context_, exclude_zero);
    const std::string copy = text == nullptr ? "(none)" : text;
    braiddb_free(text);
    return copy;
  }
  uint64_t Metric(int metric) { return braiddb_perfcontext_metric(context_, metric); }

  braiddb_perfcontext_t* context_ = nullptr;
};

TEST_F(CApiPerfContextTest, CountsFromItsCreationOn) {
  Open();
  std::thread([this] {  // whose level nobody has set
    Put("a", "value");
    context_ = braiddb_perfcontext_create();
    braiddb_perfcontext_reset(context_);
    EXPECT_EQ(Get("a"), "value");
    EXPECT_EQ(Metric(braiddb_get_read_bytes), 5u);
    EXPECT_EQ(Metric(braiddb_get_from_memtable_time), 0u);
    EXPECT_EQ(Metric(braiddb_env_delete_dir_nanos), 0u);
    EXPECT_EQ(Metric(-1), 0u);
    EXPECT_EQ(Metric(braiddb_total_metric_count), 0u);
    const std::string report = Report(true);
    EXPECT_NE(report.find("get_read_bytes = 5, "), std::string::npos) << report;
    EXPECT_EQ(report.find("env_delete_dir_nanos"), std::string::npos) << report;
    EXPECT_NE(Report(false).find("env_delete_dir_nanos = 0, "), std::string::npos);
    braiddb_perfcontext_reset(context_);
    EXPECT_EQ(Report(true), "");
    braiddb_perfcontext_destroy(context_);
  })
      .join();
}

TEST_F(CApiPerfContextTest, LevelsAreKept) {
  Open();
  context_ = braiddb_perfcontext_create();
  braiddb_set_perf_level(braiddb_disable);
  braiddb_perfcontext_reset(context_);
  Put("a", "value");
  EXPECT_EQ(Report(true), "");
  braiddb_perfcontext_destroy(context_);
  context_ = braiddb_perfcontext_create();
  Put("a", "value");
  EXPECT_EQ(Report(true), "") << "it was disabled";
  braiddb_set_perf_level(braiddb_enable_time);
  Put("a", "value");
  EXPECT_GT(Metric(braiddb_write_wal_time), 0u);
  EXPECT_GT(Metric(braiddb_write_memtable_time), 0u);
  EXPECT_NE(Report(true).find("write_wal_time = "), std::string::npos);
  braiddb_perfcontext_destroy(context_);
}

}  // namespace
}  // namespace braiddb::test
