// Options of the C API: what is stored, what reaches the engine, what the environment adds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/options_file.h"
#include "capi/options.h"
#include "pmem/persist_mode.h"
#include "tests/capi/c_fixture.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

class CApiOptionsTest : public CApiTest {
 protected:
  Options Mapped() {
    Options mapped;
    const Status status = capi::MakeOptions(*options_, path(), &mapped);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return mapped;
  }
};

// Sets a variable, and takes it back at the end.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

// ---- The options file

class LoadedCOptions {
 public:
  LoadedCOptions(const std::string& path, bool ignore_unknown, braiddb_cache_t* cache, char** errptr) {
    braiddb_load_latest_options(path.c_str(), nullptr, ignore_unknown, cache, &database, &count, &names, &families, errptr);
  }
  ~LoadedCOptions() { braiddb_load_latest_options_destroy(database, names, families, count); }
  LoadedCOptions(const LoadedCOptions&) = delete;
  LoadedCOptions& operator=(const LoadedCOptions&) = delete;

  braiddb_options_t* database = nullptr;
  size_t count = 99;
  char** names = nullptr;
  braiddb_options_t** families = nullptr;
};

TEST_F(CApiOptionsTest, OptionsAreLoadedAsTheyWereSet) {
  braiddb_options_set_max_open_files(options_, 10);
  braiddb_options_set_write_buffer_size(options_, 100000);
  braiddb_options_set_compression(options_, braiddb_zstd_compression);
  braiddb_options_set_bottommost_compression(options_, 255);
  braiddb_options_set_max_bytes_for_level_multiplier(options_, 8.5);
  braiddb_options_set_paranoid_checks(options_, 0);
  braiddb_options_set_wal_recovery_mode(options_, 99);  // has no word
  braiddb_options_set_disable_auto_compactions(options_, 1);
  braiddb_options_set_regions(options_, 2);
  braiddb_options_set_dram_budget(options_, 256 << 20);
  braiddb_options_set_prefix_extractor(options_, braiddb_slicetransform_create_fixed_prefix(3));
  Open();
  Close();
  const LoadedCOptions loaded(path(), false, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  ASSERT_EQ(1u, loaded.count);
  EXPECT_STREQ("default", loaded.names[0]);
  EXPECT_EQ(10, braiddb_options_get_max_open_files(loaded.database));
  EXPECT_EQ(0, braiddb_options_get_paranoid_checks(loaded.database));
  EXPECT_EQ(99, braiddb_options_get_wal_recovery_mode(loaded.database));
  EXPECT_EQ(1, braiddb_options_get_create_if_missing(loaded.database));
  EXPECT_EQ(2u, braiddb_options_get_regions(loaded.database));
  EXPECT_EQ(256u << 20, braiddb_options_get_dram_budget(loaded.database));
  EXPECT_EQ(100000u, braiddb_options_get_write_buffer_size(loaded.families[0]));
  EXPECT_EQ(braiddb_zstd_compression, braiddb_options_get_compression(loaded.families[0]));
  EXPECT_EQ(255, braiddb_options_get_bottommost_compression(loaded.families[0]));
  EXPECT_EQ(8.5, braiddb_options_get_max_bytes_for_level_multiplier(loaded.families[0]));
  EXPECT_EQ(1, braiddb_options_get_disable_auto_compactions(loaded.families[0]));
  EXPECT_STREQ("rocksdb.FixedPrefix.3", loaded.families[0]->own.prefix_extractor->Name());

  // Opened with them, it notes the same.
  const std::string before = braiddb::OptionsToText(Mapped());
  braiddb_column_family_handle_t* handle = nullptr;
  db_ =
      braiddb_open_column_families(loaded.database, path().c_str(), 1, loaded.names, loaded.families, &handle, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_column_family_handle_destroy(handle);
  EXPECT_EQ(100000u, db_->db->GetOptions().memtable_size);
  LoadedOptions again;
  ASSERT_TRUE(LoadLatestOptions(path(), &again).ok());
  EXPECT_EQ(before, OptionsToText(again.options));
}

// In the form in which programs look for them in RocksDB's LOG, and again after an open with the loaded options.
TEST_F(CApiOptionsTest, TableOptionsAreInTheLogAndLoaded) {
  braiddb_options_set_max_open_files(options_, 123);
  braiddb_block_based_table_options_t* const table = braiddb_block_based_options_create();
  braiddb_block_based_options_set_block_size(table, 323232);
  braiddb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
  braiddb_block_based_options_set_data_block_hash_ratio(table, 0.5);
  braiddb_cache_t* const cache = braiddb_cache_create_lru(8 << 20);
  braiddb_block_based_options_set_block_cache(table, cache);
  braiddb_options_set_block_based_table_factory(options_, table);
  braiddb_block_based_options_destroy(table);
  braiddb_cache_destroy(cache);
  Open();
  braiddb_column_family_handle_t* const created = braiddb_create_column_family(db_, options_, "col0", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_column_family_handle_destroy(created);
  Close();
  for (const bool has_cache : {true, false}) {
    std::filesystem::remove(path() + "/LOG");
    const LoadedCOptions loaded(path(), false, nullptr, error_.pointer());
    ASSERT_EQ("", error_.Take());
    ASSERT_EQ(2u, loaded.count);
    for (size_t i = 0; i < loaded.count; ++i) {
      EXPECT_EQ(323232u, loaded.families[i]->table.block_size);
      EXPECT_EQ(1, loaded.families[i]->table.cache_index_and_filter_blocks);
      EXPECT_EQ(0.5, loaded.families[i]->table.data_block_hash_ratio);
      EXPECT_EQ(nullptr, loaded.families[i]->table.block_cache);
      if (has_cache) loaded.families[i]->table.block_cache = options_->table.block_cache;
    }
    braiddb_column_family_handle_t* handles[2];
    db_ = braiddb_open_column_families(loaded.families[0], path().c_str(), 2, loaded.names, loaded.families, handles,
                                       error_.pointer());
    ASSERT_EQ("", error_.Take());
    for (braiddb_column_family_handle_t* handle : handles) braiddb_column_family_handle_destroy(handle);
    Close();
    const std::string log = ReadFileOrDie(path() + "/LOG");
    for (const char* wanted :
         {"Options for column family [default]", "Options for column family [col0]", " block_size: 323232\n",
          " cache_index_and_filter_blocks: 1\n", " data_block_hash_table_util_ratio: 0.5\n", "table_factory options:\n"}) {
      EXPECT_NE(std::string::npos, log.find(wanted)) << wanted << "\n" << log;
    }
    EXPECT_EQ(has_cache, log.find("block_cache_options:\n    capacity : 8388608\n") != std::string::npos) << log;
  }
}

TEST_F(CApiOptionsTest, OptionsThatCannotBeLoaded) {
  {
    const LoadedCOptions loaded(path(), false, nullptr, error_.pointer());
    EXPECT_EQ(0u, error_.Take().find("NotFound: "));
    EXPECT_EQ(0u, loaded.count);
    EXPECT_EQ(nullptr, loaded.database);
  }
  Open();
  Close();
  const auto replace = [&](const std::string& what, const std::string& by) {
    std::ifstream in(path() + "/OPTIONS");
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    ASSERT_NE(std::string::npos, text.find(what));
    std::ofstream(path() + "/OPTIONS") << text.replace(text.find(what), what.size(), by);
  };
  replace("max_open_files=", "max_opened_files=");
  {
    const LoadedCOptions loaded(path(), false, nullptr, error_.pointer());
    EXPECT_EQ("Invalid argument: Could not find option: : max_opened_files", error_.Take());
    EXPECT_EQ(nullptr, loaded.database);
  }
  braiddb_cache_t* const cache = braiddb_cache_create_lru(7 << 20);
  {
    const LoadedCOptions loaded(path(), true, cache, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_cache_destroy(cache);
    Options mapped;
    ASSERT_TRUE(capi::MakeOptions(*loaded.families[0], path(), &mapped).ok());
    EXPECT_EQ(7u << 20, mapped.lookup_cache_size);
  }
  replace("max_opened_files=-1", "max_open_files=all");
  const LoadedCOptions loaded(path(), false, nullptr, error_.pointer());
  EXPECT_EQ("Invalid argument: Error parsing max_open_files:all", error_.Take());
}

// ---- What options mean

TEST_F(CApiOptionsTest, NothingSetIsTheDefaultsOfBraidDB) {
  const Options mapped = Mapped();
  const Options own;
  EXPECT_EQ(own.memtable_size, mapped.memtable_size);
  EXPECT_EQ(own.max_immutable_memtables, mapped.max_immutable_memtables);
  EXPECT_EQ(own.l0_compaction_trigger, mapped.l0_compaction_trigger);
  EXPECT_EQ(own.l0_slowdown_writes_trigger, mapped.l0_slowdown_writes_trigger);
  EXPECT_EQ(own.lookup_cache_size, mapped.lookup_cache_size);
  EXPECT_EQ(own.filter_bits_per_key, mapped.filter_bits_per_key);
  EXPECT_EQ(own.compaction_threads, mapped.compaction_threads);
  EXPECT_EQ(own.comparator, mapped.comparator);
  EXPECT_EQ(own.list_kind, mapped.list_kind);
  EXPECT_EQ(own.index_unified_logging, mapped.index_unified_logging);
  EXPECT_FALSE(mapped.count_pm_writes);
}

TEST_F(CApiOptionsTest, WhatHasAMeaningReachesTheEngine) {
  braiddb_options_set_write_buffer_size(options_, 3 << 20);
  braiddb_options_set_max_write_buffer_number(options_, 5);
  braiddb_options_set_level0_file_num_compaction_trigger(options_, 7);
  braiddb_options_set_level0_slowdown_writes_trigger(options_, 33);
  braiddb_options_set_disable_auto_compactions(options_, 1);
  braiddb_options_set_max_background_jobs(options_, 1);
  braiddb_options_set_error_if_exists(options_, 1);
  braiddb_options_set_l1_kind(options_, braiddb_l1_nv_tree);
  braiddb_options_set_regions(options_, 2);
  braiddb_options_set_list_kind(options_, braiddb_list_oblivious);
  braiddb_options_set_index_unified_logging(options_, 0);
  braiddb_options_set_dram_budget(options_, 256 << 20);
  braiddb_cache_t* const cache = braiddb_cache_create_lru(5 << 20);
  braiddb_block_based_table_options_t* const table = braiddb_block_based_options_create();
  braiddb_block_based_options_set_block_cache(table, cache);
  braiddb_block_based_options_set_filter_policy(table, braiddb_filterpolicy_create_bloom(12.4));
  braiddb_options_set_block_based_table_factory(options_, table);
  braiddb_cache_destroy(cache);
  braiddb_block_based_options_destroy(table);
  const Options mapped = Mapped();
  EXPECT_EQ(3u << 20, mapped.memtable_size);
  EXPECT_EQ(4u, mapped.max_immutable_memtables);
  EXPECT_EQ(7u, mapped.l0_compaction_trigger);
  EXPECT_EQ(33u, mapped.l0_slowdown_writes_trigger);
  EXPECT_TRUE(mapped.disable_auto_compaction);
  EXPECT_EQ(1u, mapped.compaction_threads);
  EXPECT_TRUE(mapped.error_if_exists);
  EXPECT_EQ(L1Kind::kNvTree, mapped.l1);
  EXPECT_EQ(2u, mapped.regions);
  EXPECT_EQ(ListKind::kOblivious, mapped.list_kind);
  EXPECT_FALSE(mapped.index_unified_logging);
  EXPECT_EQ(256u << 20, mapped.dram_budget);
  EXPECT_EQ(5u << 20, mapped.lookup_cache_size);
  EXPECT_EQ(12u, mapped.filter_bits_per_key);
}

// Three databases, each of which could fill the cache alone.
TEST_F(CApiOptionsTest, OneCacheIsOneLimitForAllDatabases) {
  constexpr size_t kCapacity = 1 << 20;
  braiddb_cache_t* const cache = braiddb_cache_create_lru(kCapacity);
  braiddb_block_based_table_options_t* const table = braiddb_block_based_options_create();
  braiddb_block_based_options_set_block_cache(table, cache);
  braiddb_options_set_block_based_table_factory(options_, table);
  std::vector<braiddb_t*> databases;
  for (const char* name : {"-a", "-b", "-c"}) {
    databases.push_back(braiddb_open(options_, (path() + name).c_str(), error_.pointer()));
    ASSERT_EQ("", error_.Take());
  }
  const auto taken = [&databases] {
    uint64_t sum = 0;
    for (braiddb_t* const db : databases) {
      uint64_t bytes = 0;
      EXPECT_EQ(0, braiddb_property_int(db, "braiddb.lookup-cache-bytes", &bytes));
      sum += bytes;
    }
    return sum;
  };
  EXPECT_LE(taken(), 3u * (32 << 10)) << "small as long as there is no key";
  for (int i = 0; i < 15'000; ++i) {
    const std::string key = std::to_string(i);
    for (braiddb_t* const db : databases) braiddb_put(db, write_, key.data(), key.size(), "value", 5, error_.pointer());
    ASSERT_EQ("", error_.Take());
    if (i % 100 == 0) {
      ASSERT_LE(taken(), kCapacity);
    }
  }
  EXPECT_LE(taken(), kCapacity);
  EXPECT_GT(taken(), kCapacity / 4);
  for (braiddb_t* const db : databases) braiddb_close(db);
  braiddb_block_based_options_destroy(table);
  braiddb_cache_destroy(cache);
}

TEST_F(CApiOptionsTest, AKindThatDoesNotExistIsRefused) {
  for (const int value : {-1, 200, 256, 257}) {
    braiddb_options_set_l1_kind(options_, value);
    EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
    EXPECT_EQ(0u, error_.Take().find("Not implemented: ")) << value;
  }
  braiddb_options_set_l1_kind(options_, braiddb_l1_sorted_runs);
  for (const int value : {-1, 2, 256, 257}) {
    braiddb_options_set_list_kind(options_, value);
    EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
    EXPECT_EQ(0u, error_.Take().find("Not implemented: ")) << value;
  }
}

TEST_F(CApiOptionsTest, WritesToPersistentMemoryAreCountedIfAskedFor) {
  const auto fences = [this] {
    char* const text = braiddb_property_value(db_, "braiddb.stats");
    const std::string stats = text, line = "braiddb.pm.fences COUNT : ";
    braiddb_free(text);
    return std::stoull(stats.substr(stats.find(line) + line.size()));
  };
  EXPECT_EQ(0, braiddb_options_get_count_pm_writes(options_));
  Open();
  Put("key", "value");
  EXPECT_EQ(0u, fences());
  Close();
  braiddb_options_set_count_pm_writes(options_, 1);
  braiddb_options_set_persist_mode(options_, braiddb_persist_emulated);
  EXPECT_EQ(1, braiddb_options_get_count_pm_writes(options_));
  Open();
  // Each put is one; threads of the background add what an open leaves them to do and a segment costs.
  constexpr std::uint64_t kPuts = 1000, kOfTheBackground = 200;
  const auto before = fences();
  for (std::uint64_t i = 0; i != kPuts; ++i) Put("key", "value");
  EXPECT_LE(before + kPuts, fences());
  EXPECT_GT(before + kPuts + kOfTheBackground, fences());
}

TEST_F(CApiOptionsTest, SpaceIsBoundedIfOneSaysSo) {
  EXPECT_EQ(64u << 20, braiddb_options_get_kept_free_space(options_));
  braiddb_options_set_kept_free_space(options_, 5);
  EXPECT_EQ(5u, braiddb_options_get_kept_free_space(options_));
  EXPECT_EQ(0, braiddb_options_get_bound_space(options_));
  braiddb_options_set_bound_space(options_, 1);
  EXPECT_EQ(1, braiddb_options_get_bound_space(options_));
  braiddb_options_set_max_space_amplification(options_, 0);
  char* error = nullptr;
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), &error));
  EXPECT_NE(nullptr, error);
  braiddb_free(error);
  braiddb_options_set_max_space_amplification(options_, 1.3);
  Open();
  Put("key", "value");
  EXPECT_EQ("value", Get("key"));
}

// The creation sets them; an open takes what is stored.
TEST_F(CApiOptionsTest, KindsOfListsAndLogsAreTheCreations) {
  EXPECT_EQ(braiddb_list_braided, braiddb_options_get_list_kind(options_));
  EXPECT_EQ(1, braiddb_options_get_index_unified_logging(options_));
  braiddb_options_set_list_kind(options_, braiddb_list_oblivious);
  braiddb_options_set_index_unified_logging(options_, 0);
  EXPECT_EQ(braiddb_list_oblivious, braiddb_options_get_list_kind(options_));
  EXPECT_EQ(0, braiddb_options_get_index_unified_logging(options_));
  Open();
  Put("key", "value");
  Close();
  braiddb_options_set_list_kind(options_, braiddb_list_braided);
  braiddb_options_set_index_unified_logging(options_, 1);
  Open();
  EXPECT_EQ("value", Get("key"));
  Close();
  std::unique_ptr<DB> db;
  ASSERT_TRUE(DB::Open(Options(), path(), &db).ok());
  EXPECT_EQ(ListKind::kOblivious, db->GetOptions().list_kind);
  EXPECT_FALSE(db->GetOptions().index_unified_logging);
}

TEST_F(CApiOptionsTest, OptionsAreStoredAndCopied) {
  EXPECT_EQ(64u << 20, braiddb_options_get_write_buffer_size(options_));
  EXPECT_EQ(7, braiddb_options_get_num_levels(options_));
  EXPECT_EQ(1, braiddb_options_get_paranoid_checks(options_));
  EXPECT_EQ(UINT64_C(21600000000), braiddb_options_get_delete_obsolete_files_period_micros(options_));
  braiddb_options_set_num_levels(options_, 4);
  braiddb_options_t* const copy = braiddb_options_create_copy(options_);
  braiddb_options_set_num_levels(options_, 5);
  EXPECT_EQ(4, braiddb_options_get_num_levels(copy));
  EXPECT_EQ(5, braiddb_options_get_num_levels(options_));
  braiddb_options_set_atomic_flush(copy, 42);
  EXPECT_EQ(1, braiddb_options_get_atomic_flush(copy));  // a truth value
  braiddb_options_destroy(copy);
  EXPECT_EQ(1, braiddb_readoptions_get_verify_checksums(read_));
  EXPECT_FALSE(read_->rep.verify_checksums);  // it was not asked for
  braiddb_readoptions_set_verify_checksums(read_, 1);
  EXPECT_TRUE(read_->rep.verify_checksums);
  EXPECT_FALSE(write_->rep().sync);
  braiddb_writeoptions_set_sync(write_, 1);
  EXPECT_TRUE(write_->rep().sync);
}

TEST_F(CApiOptionsTest, TheEnvironmentPutsRegionsElsewhere) {
  const std::string roots = directory_.Sub("pm0") + ":" + directory_.Sub("pm1");
  std::filesystem::create_directory(directory_.Sub("pm0"));
  {
    const Variable variable("BRAIDDB_REGION_ROOTS", roots);
    db_ = braiddb_open(options_, path().c_str(), error_.pointer());
    EXPECT_TRUE(error_.Take().starts_with("IO error: BRAIDDB_REGION_ROOTS names ")) << "it may be a mount that is missing";
    EXPECT_EQ(db_, nullptr);
    EXPECT_FALSE(std::filesystem::exists(path()));
    std::filesystem::create_directory(directory_.Sub("pm1"));
    Open();
    Put("k", "v");
    Open();
    EXPECT_EQ("v", Get("k"));
    Close();
    EXPECT_FALSE(std::filesystem::exists(path() + "/region-0"));
    EXPECT_FALSE(std::filesystem::is_empty(directory_.Sub("pm0")));
    EXPECT_FALSE(std::filesystem::is_empty(directory_.Sub("pm1")));
  }
  // The database knows where it was made, without the variable and whatever it says by now.
  Open();
  EXPECT_EQ("v", Get("k"));
  {
    std::filesystem::create_directory(directory_.Sub("pm2"));
    const Variable variable("BRAIDDB_REGION_ROOTS", directory_.Sub("pm2"));
    Open();
    EXPECT_EQ("v", Get("k"));
    braiddb_checkpoint_t* const checkpoint = braiddb_checkpoint_object_create(db_, error_.pointer());
    braiddb_checkpoint_create(checkpoint, directory_.Sub("copy").c_str(), 0, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_checkpoint_object_destroy(checkpoint);
    Close();
  }
  db_ = braiddb_open(options_, directory_.Sub("copy").c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ("v", Get("k"));
  Close();
  EXPECT_FALSE(std::filesystem::exists(directory_.Sub("copy") + "/region-0"));
  braiddb_destroy_db(options_, directory_.Sub("copy").c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_TRUE(std::filesystem::is_empty(directory_.Sub("pm2")));
  EXPECT_FALSE(std::filesystem::exists(directory_.Sub("copy")));

  braiddb_check_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_destroy_db(options_, path().c_str(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_TRUE(std::filesystem::is_empty(directory_.Sub("pm0")));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(CApiOptionsTest, ADatabaseThatIsInItsDirectoryStaysThere) {
  Open();
  Put("k", "v");
  const Variable variable("BRAIDDB_REGION_ROOTS", directory_.Sub("pm0"));
  Open();
  EXPECT_EQ("v", Get("k"));
  EXPECT_FALSE(std::filesystem::exists(directory_.Sub("pm0")));
}

// capi/ has the names of its own, since it sees public headers only.
TEST_F(CApiOptionsTest, ModesHaveTheNamesOfThePmemLayer) {
  std::string names;
  for (const PersistModeName& known : PersistModeNames()) {
    const Variable mode("BRAIDDB_PERSIST_MODE", known.name);
    EXPECT_EQ(Mapped().persist_mode, known.mode) << known.name;
    names.append(" ").append(known.name);
  }
  const Variable wrong("BRAIDDB_PERSIST_MODE", "none");
  Options mapped;
  const Status status = capi::MakeOptions(*options_, path(), &mapped);
  EXPECT_TRUE(status.IsInvalidArgument());
  EXPECT_TRUE(status.ToString().ends_with("possible are" + names)) << status.ToString();
}

TEST_F(CApiOptionsTest, VariablesOfTheEnvironment) {
  const Variable budget("BRAIDDB_DRAM_BUDGET", "128M");
  const Variable kind("BRAIDDB_L1", "nv_tree");
  const Variable mode("BRAIDDB_PERSIST_MODE", "page");
  const Variable cache("BRAIDDB_LOOKUP_CACHE_SIZE", "4096");
  Options mapped = Mapped();
  EXPECT_EQ(128u << 20, mapped.dram_budget);
  EXPECT_EQ(L1Kind::kNvTree, mapped.l1);
  EXPECT_EQ(PersistMode::kPage, mapped.persist_mode);
  EXPECT_EQ(4096u, mapped.lookup_cache_size);
  braiddb_options_set_dram_budget(options_, 100 << 20);  // what the program says goes first
  EXPECT_EQ(100u << 20, Mapped().dram_budget);
  for (const auto& [name, value] : {std::pair{"BRAIDDB_MAX_REGION_SIZE", "12Q"}, std::pair{"BRAIDDB_MAX_REGION_SIZE", ""},
                                    std::pair{"BRAIDDB_MAX_REGION_SIZE", "99999999999T"}}) {
    const Variable wrong(name, value);
    const Status status = capi::MakeOptions(*options_, path(), &mapped);
    EXPECT_TRUE(status.IsInvalidArgument()) << value;
    EXPECT_NE(std::string::npos, status.ToString().find(name));
  }
}

}  // namespace
}  // namespace braiddb::test
