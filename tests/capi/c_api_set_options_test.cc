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

// What RocksDB 7.8.3 returns.
TEST_F(CApiSetOptionsTest, OptionsOfTablesAndStructuresAreChecked) {
  Open();
  const std::string invalid = "Invalid argument: ";
  struct Case {
    const char* name;
    const char* value;
    const char* error;  // without "Invalid argument: "; empty: the option is accepted
  };
  constexpr Case kCases[] = {
      {"table_factory", "BlockBasedTable", ""},
      {"table_factory", "", ""},
      {"table_factory", "nullptr", ""},
      {"table_factory", "block_size=4", ""},
      {"table_factory", "{id=BlockBasedTable;block_size=1024}", ""},
      {"table_factory", "Nope", "Option not changeable: table_factory"},
      {"table_factory", "PlainTable", "Option not changeable: table_factory"},
      {"table_factory", "{id=PlainTable}", "Option not changeable: table_factory"},
      {"table_factory.block_size", "8192", ""},
      {"table_factory.BlockBasedTable.block_size", "1", ""},
      {"table_factory.prepopulate_block_cache", "kDisable", ""},
      {"table_factory.block_size", "x", "Error parsing block_size:stoull"},
      {"table_factory.nope", "1", "Could not find option: : table_factory.nope"},
      {"table_factory.", "1", "Could not find option: : table_factory."},
      {"table_factory.PlainTable.user_key_len", "1", "Could not find option: : table_factory.PlainTable.user_key_len"},
      {"table_factory.format_version", "5", "Option not changeable: format_version"},
      {"table_factory.BlockBasedTable.filter_policy", "bloomfilter:10", "Option not changeable: filter_policy"},
      {"block_based_table_factory", "", ""},
      {"block_based_table_factory", "block_size=4096", ""},
      {"block_based_table_factory", "{prepopulate_block_cache=kDisable;max_auto_readahead_size=4}", ""},
      {"block_based_table_factory", "{id=BlockBasedTable;block_size=5}", ""},
      {"block_based_table_factory", "x", "Option not changeable: block_based_table_factory"},
      {"block_based_table_factory", "{nope=8192}", "Could not find option: : block_based_table_factory"},
      {"block_based_table_factory", "{block_size=x}", "Error parsing block_size:stoull"},
      {"block_based_table_factory", "{block_cache=1M}", "Option not changeable: block_cache"},
      {"block_based_table_factory", "{block_size=1;cache_index_and_filter_blocks=1}",
       "Option not changeable: cache_index_and_filter_blocks"},
      {"block_based_table_factory", "nullptr", ""},
      {"block_based_table_factory", "{nope=1;filter_policy=x}", "Option not changeable: filter_policy"},
      {"block_based_table_factory", "{filter_policy=x;block_size=x}", "Option not changeable: filter_policy"},
      {"block_based_table_factory", "{block_size=x;filter_policy=x}", "Error parsing block_size:stoull"},
      {"block_based_table_factory", "{checksum=nope}", "Option not changeable: checksum"},
      {"block_based_table_factory", "{block_size=4", "Option not changeable: block_based_table_factory"},
      {"block_based_table_factory.block_size", "4", ""},
      {"table_factory", "=4", "Option not changeable: table_factory"},
      {"table_factory.checksum", "1", "Option not changeable: checksum"},
      {"table_factory.block_size", "{4", "Error parsing block_size:stoull"},
      {"table_factory.metadata_cache_options", "{}", "Option not changeable: metadata_cache_options"},
      {"plain_table_factory", "{user_key_len=3}", "Could not find option: : plain_table_factory"},
      {"compaction_options_fifo.ttl", "3", ""},
      {"compaction_options_fifo.max_table_files_size", "x", "Error parsing max_table_files_size:stoull"},
      {"compaction_options_fifo.allow_compaction", "maybe", "Error parsing allow_compaction:"},
      {"compaction_options_fifo.nope", "3", "Unrecognized option: compaction_options_fifo.nope"},
      {"compaction_options_universal.size_ratio", "3", ""},
      {"compaction_options_universal.", "1", "Unrecognized option: compaction_options_universal."},
      {"compaction_options_x", "3", "Could not find option: : compaction_options_x"},
      {"compression_opts.level", "4", ""},
      {"compression_opts.level", "x", "Error parsing level:stoi"},
      {"bottommost_compression_opts.enabled", "x", "Error parsing enabled:"},
      {"bottommost_compression_opts.nope", "1", "Unrecognized option: bottommost_compression_opts.nope"},
      {"blob_x.y", "1", "Could not find option: : blob_x.y"},
  };
  for (const auto& [name, value, error] : kCases) {
    EXPECT_EQ(*error == '\0' ? "" : invalid + error, Set({{name, value}})) << name << "=" << value;
  }
}

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
