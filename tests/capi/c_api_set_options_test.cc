// Options that change while a database is open.
#include <string>
#include <utility>
#include <vector>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiSetOptionsTest : public CApiTest {
 protected:
  std::string Set(const std::vector<std::pair<const char*, const char*>>& changes,
                  braiddb_column_family_handle_t* family = nullptr) {
    std::vector<const char*> names;
    std::vector<const char*> values;
    for (const auto& [name, value] : changes) {
      names.push_back(name);
      values.push_back(value);
    }
    const int count = static_cast<int>(changes.size());
    if (family == nullptr) {
      braiddb_set_options(db_, count, names.data(), values.data(), error_.pointer());
    } else {
      braiddb_set_options_cf(db_, family, count, names.data(), values.data(), error_.pointer());
    }
    return error_.Take();
  }
  uint64_t Number(const char* property) {
    uint64_t value = 0;
    EXPECT_EQ(0, braiddb_property_int(db_, property, &value)) << property;
    return value;
  }
  void Fill(int from, int count) {
    for (int i = from; i < from + count; ++i) Put("k" + std::to_string(100'000 + i), std::string(100, 'v'));
  }
  void Flush() {
    braiddb_flush(db_, nullptr, error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
};

TEST_F(CApiSetOptionsTest, ErrorsAreRocksDBs) {
  Open();
  EXPECT_EQ("Invalid argument: empty input", Set({}));
  EXPECT_EQ("Invalid argument: Could not find option: : nonsense", Set({{"nonsense", "1"}}));
  EXPECT_EQ("Invalid argument: Could not find option: : max_open_files", Set({{"max_open_files", "1"}}));
  EXPECT_EQ("Invalid argument: Could not find option: : create_if_missing", Set({{"create_if_missing", "true"}}));
  for (const char* fixed : {"num_levels", "min_write_buffer_number_to_merge", "bloom_locality", "compaction_style",
                            "level_compaction_dynamic_level_bytes", "inplace_update_support", "optimize_filters_for_hits",
                            "merge_operator", "force_consistency_checks", "max_mem_compaction_level"})
    EXPECT_EQ("Invalid argument: Option not changeable: " + std::string(fixed), Set({{fixed, "1"}}));
  for (const char* wrong : {"x", "", "99999999999999999999"})
    EXPECT_EQ("Invalid argument: Error parsing write_buffer_size:stoull", Set({{"write_buffer_size", wrong}}));
  EXPECT_EQ("Invalid argument: Error parsing ttl:stoull", Set({{"ttl", "x"}}));
  EXPECT_EQ("Invalid argument: Error parsing size_ratio:stoull", Set({{"compaction_options_universal", "{size_ratio=x}"}}));
  EXPECT_EQ("Invalid argument: Error parsing disable_auto_compactions:", Set({{"disable_auto_compactions", "maybe"}}));
  EXPECT_EQ("Invalid argument: Error parsing:: compression", Set({{"compression", "snappy"}}));
  EXPECT_EQ("Invalid argument: Error parsing level0_file_num_compaction_trigger:stoi",
            Set({{"level0_file_num_compaction_trigger", "99999999999"}}));
  // RocksDB's cut that off.
  EXPECT_EQ("Invalid argument: Error parsing write_buffer_size:99999999999T", Set({{"write_buffer_size", "99999999999T"}}));
}

TEST_F(CApiSetOptionsTest, DroppedFamiliesHaveNone) {
  Open();
  braiddb_column_family_handle_t* const family = braiddb_create_column_family(db_, options_, "family", error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ("", Set({{"write_buffer_size", "1M"}}, family));
  braiddb_drop_column_family(db_, family, error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ("Invalid argument: the column family was dropped", Set({{"write_buffer_size", "1M"}}, family));
  braiddb_column_family_handle_destroy(family);
}

TEST_F(CApiSetOptionsTest, KnownOnesAreTaken) {
  Open();
  for (const char* number : {"arena_block_size",
                             "max_successive_merges",
                             "inplace_update_num_locks",
                             "max_write_buffer_number",
                             "soft_pending_compaction_bytes_limit",
                             "hard_pending_compaction_bytes_limit",
                             "level0_file_num_compaction_trigger",
                             "level0_slowdown_writes_trigger",
                             "level0_stop_writes_trigger",
                             "max_compaction_bytes",
                             "target_file_size_base",
                             "target_file_size_multiplier",
                             "max_bytes_for_level_base",
                             "max_sequential_skip_in_iterations",
                             "ttl",
                             "periodic_compaction_seconds",
                             "min_blob_size",
                             "blob_file_size",
                             "blob_file_starting_level",
                             "sample_for_compression",
                             "max_bytes_for_level_multiplier",
                             "memtable_prefix_bloom_size_ratio",
                             "memtable_huge_page_size"})
    EXPECT_EQ("", Set({{number, "10"}})) << number;
  for (const char* truth : {"disable_auto_compactions", "paranoid_file_checks", "report_bg_io_stats", "enable_blob_files",
                            "enable_blob_garbage_collection", "memtable_whole_key_filtering", "check_flush_compaction_key_order"})
    EXPECT_EQ("", Set({{truth, "true"}, {truth, "false"}})) << truth;
  EXPECT_EQ("", Set({{"compression", "kNoCompression"}, {"compaction_options_fifo", "{max_table_files_size=3;}"}}));
  EXPECT_EQ("", Set({{"write_buffer_size", "64K"}, {"table_factory.block_size", "4096"}}));
}

TEST_F(CApiSetOptionsTest, CompactionsGoOff) {
  Open();
  EXPECT_EQ("", Set({{"disable_auto_compactions", "true"}}));
  for (int i = 0; i < 3; ++i) {
    Fill(100 * i, 100);
    Flush();
  }
  EXPECT_EQ(3u, Number("rocksdb.num-files-at-level0"));
  EXPECT_EQ("", Set({{"level0_file_num_compaction_trigger", "2"}, {"disable_auto_compactions", "false"}}));
  braiddb_wait_for_compaction(db_, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(0u, Number("rocksdb.num-files-at-level0"));
}

TEST_F(CApiSetOptionsTest, MemtablesBecomeSmaller) {
  braiddb_options_set_disable_auto_compactions(options_, 1);
  Open();
  Fill(0, 3000);
  EXPECT_EQ(0u, Number("rocksdb.num-files-at-level0") + Number("rocksdb.num-immutable-mem-table"));
  EXPECT_EQ("", Set({{"write_buffer_size", "65536"}}));
  Fill(3000, 3000);
  EXPECT_GT(Number("rocksdb.num-files-at-level0") + Number("rocksdb.num-immutable-mem-table"), 1u);
}

TEST_F(CApiSetOptionsTest, AllOrNothing) {
  Open();
  EXPECT_NE("", Set({{"disable_auto_compactions", "true"}, {"nonsense", "1"}}));
  Fill(0, 100);
  Flush();
  braiddb_wait_for_compaction(db_, error_.pointer());
  EXPECT_EQ(0u, Number("rocksdb.num-files-at-level0"));
}

// As RocksDB, which writes an options file with each change.
// As in RocksDB, which makes a map of them.
TEST_F(CApiSetOptionsTest, OfANameThatIsGivenTwiceTheLastValueCounts) {
  Open();
  EXPECT_EQ("", Set({{"write_buffer_size", "wrong"}, {"write_buffer_size", "65536"}}));
  EXPECT_NE("", Set({{"write_buffer_size", "65536"}, {"write_buffer_size", "wrong"}}));
}

TEST_F(CApiSetOptionsTest, TheOptionsFileHasThem) {
  Open();
  braiddb_column_family_handle_t* const other = braiddb_create_column_family(db_, options_, "other", error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ("", Set({{"write_buffer_size", "1M"}, {"disable_auto_compactions", "true"}}));
  EXPECT_EQ("", Set({{"target_file_size_base", "12345"}}, other));
  braiddb_column_family_handle_destroy(other);
  Close();
  braiddb_options_t* loaded = nullptr;
  size_t count = 0;
  char** names = nullptr;
  braiddb_options_t** families = nullptr;
  braiddb_load_latest_options(path().c_str(), nullptr, false, nullptr, &loaded, &count, &names, &families, error_.pointer());
  ASSERT_EQ("", error_.Take());
  ASSERT_EQ(2u, count);
  EXPECT_EQ(1u << 20, braiddb_options_get_write_buffer_size(families[0]));
  EXPECT_EQ(1, braiddb_options_get_disable_auto_compactions(families[0]));
  EXPECT_NE(12345u, braiddb_options_get_target_file_size_base(families[0]));
  EXPECT_EQ(12345u, braiddb_options_get_target_file_size_base(families[1]));
  braiddb_load_latest_options_destroy(loaded, names, families, count);
}

}  // namespace
}  // namespace braiddb::test
