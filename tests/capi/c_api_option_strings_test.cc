// braiddb_get_options_from_string: RocksDB's grammar, names, values and error texts.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "braiddb/comparator.h"
#include "capi/option_names.h"
#include "capi/option_words.h"
#include "capi/options.h"
#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiOptionStringsTest : public testing::Test {
 protected:
  ~CApiOptionStringsTest() override {
    braiddb_options_destroy(base_);
    braiddb_options_destroy(result_);
  }

  // The error, or "OK".
  std::string Set(const std::string& text) {
    braiddb_get_options_from_string(base_, text.c_str(), result_, error_.pointer());
    const std::string error = error_.Take();
    return error.empty() ? "OK" : error;
  }
  uint64_t WriteBuffer(const std::string& text) {
    EXPECT_EQ("OK", Set("write_buffer_size=" + text)) << text;
    return braiddb_options_get_write_buffer_size(result_);
  }

  Error error_;
  braiddb_options_t* const base_ = braiddb_options_create();
  braiddb_options_t* const result_ = braiddb_options_create();
};

TEST_F(CApiOptionStringsTest, NumbersHaveSuffixes) {
  EXPECT_EQ(1024u, WriteBuffer("1024"));
  EXPECT_EQ(1024u, WriteBuffer("1K"));
  EXPECT_EQ(64u << 20, WriteBuffer("64m"));
  EXPECT_EQ(uint64_t{3} << 30, WriteBuffer("3G"));
  EXPECT_EQ(uint64_t{2} << 40, WriteBuffer("2t"));
  EXPECT_EQ(5u, WriteBuffer("+5 pages"));
  EXPECT_EQ(UINT64_MAX, WriteBuffer("-1"));
  EXPECT_EQ("OK", Set("max_open_files=10k;max_bytes_for_level_multiplier=3.5;max_write_buffer_size_to_maintain=-1G"));
  EXPECT_EQ(10240, braiddb_options_get_max_open_files(result_));
  EXPECT_EQ(3.5, braiddb_options_get_max_bytes_for_level_multiplier(result_));
  EXPECT_EQ(-(int64_t{1} << 30), braiddb_options_get_max_write_buffer_size_to_maintain(result_));
}

TEST_F(CApiOptionStringsTest, BaseAndRestAreKept) {
  braiddb_options_set_max_open_files(base_, 5);
  EXPECT_EQ("OK", Set(" { write_buffer_size=1024 ; compression = kLZ4Compression;use_fsync=true; } "));
  EXPECT_EQ(5, braiddb_options_get_max_open_files(result_));
  EXPECT_EQ(1024u, braiddb_options_get_write_buffer_size(result_));
  EXPECT_EQ(braiddb_lz4_compression, braiddb_options_get_compression(result_));
  EXPECT_EQ(1, braiddb_options_get_use_fsync(result_));
  EXPECT_NE("OK", Set("write_buffer_size=7;max_open_files=x"));
  EXPECT_EQ(braiddb_options_get_write_buffer_size(base_), braiddb_options_get_write_buffer_size(result_));
  EXPECT_EQ(5, braiddb_options_get_max_open_files(result_)) << "after an error it is a copy of the base, as RocksDB's";
  EXPECT_EQ("OK", Set(""));
  EXPECT_EQ("OK", Set("max_open_files=6;max_open_files=7"));
  EXPECT_EQ(7, braiddb_options_get_max_open_files(result_));
}

TEST_F(CApiOptionStringsTest, ErrorsAreThoseOfRocksDB) {
  constexpr struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"nothing", "Mismatched key value pair, '=' expected"},
      {"=5", "Empty key found"},
      {";", "Unexpected char in key"},
      {"max_open_files={5", "Mismatched curly braces for nested options"},
      {"max_open_files={5}x", "Unexpected chars after nested options"},
      {"block_based_table_factory={block_size=4K}}", "Unexpected chars after nested options"},
      {"no_such=1", "Could not find option: : no_such"},
      {"no_such={a=1}", "Could not find option: : no_such"},
      {"a=1;max_open_files=3", "Could not find option: : a"},
      {"a=1;max_open_files=x", "Error parsing max_open_files:stoi"},
      {"MAX_OPEN_FILES=3", "Could not find option: : MAX_OPEN_FILES"},
      {"open_files=3", "Could not find option: : open_files"},
      {"blob_gc_age_cutoff=1", "Could not find option: : blob_gc_age_cutoff"},
      {"write_buffer_size=", "Error parsing write_buffer_size:stoull"},
      {"write_buffer_size=99999999999999999999", "Error parsing write_buffer_size:stoull"},
      {"max_open_files=99999999999", "Error parsing max_open_files:stoi"},
      {"level0_stop_writes_trigger=2G", "Error parsing level0_stop_writes_trigger:2G"},  // RocksDB: -2147483648
      {"bloom_locality=-1", "Error parsing bloom_locality:-1"},
      {"max_write_buffer_size_to_maintain=x", "Error parsing max_write_buffer_size_to_maintain:stoll"},
      {"blob_garbage_collection_age_cutoff=x", "Error parsing blob_garbage_collection_age_cutoff:stod"},
      {"paranoid_checks=7", "Error parsing paranoid_checks:"},
      {"compression=5", "Error parsing:: compression"},
      {"info_log_level=1", "No mapping for enum : info_log_level"},
      {"comparator=", "Missing configurable object: comparator"},
      {"compression_opts=4:5", "unable to parse the specified CF option compression_opts"},
      {"compression_opts={foo=1}", "Unrecognized option: compression_opts.foo"},
      {"compression_opts={level=x}", "Error parsing level:stoi"},
      {"compression_per_level=kNoCompression:x", "Error parsing:: compression_per_level"},
      {"compaction_options_fifo=x", "Error parsing compaction_options_fifo:stoull"},
      {"compaction_options_universal={size_ratio=3;nothing=4}", "Unrecognized option: compaction_options_universal.nothing"},
      {"block_based_table_factory={nothing=1}", "Could not find option: : block_based_table_factory"},
      {"block_based_table_factory={block_cache={capacity=1M;foo=4}}", "Unrecognized option: .foo"},
      {"block_based_table_factory={metadata_cache_options={x=x}}", "Unrecognized option: metadata_cache_options.x"},
      {"plain_table_factory={user_key_len=x}", "Error parsing user_key_len:stoull"},
      {"table_factory={id=CuckooTable;zzz=1}", "Could not find option: : table_factory"},
  };
  for (const auto& [text, error] : kCases) EXPECT_EQ(std::string("Invalid argument: ") + error, Set(text)) << text;
}

// A value that an option of this kind takes.
std::string ExampleOf(capi::OptionKind kind, const std::string& name) {
  const bool is_word = kind == capi::OptionKind::kEnum || kind == capi::OptionKind::kWord;
  if (!is_word) return "1";
  const auto words = capi::WordsOf(name);
  return words.empty() ? "no words" : std::string(words.back().text);
}

TEST_F(CApiOptionStringsTest, EveryNameIsTaken) {
  int count = 0;
  for (const capi::OptionNames& known : capi::kNamedOptions) {
    std::string_view names = known.names;
    while (!names.empty()) {
      const std::string name(names.substr(0, names.find(' ')));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      EXPECT_EQ("OK", Set(name + "=" + ExampleOf(known.kind, name)));
      ++count;
    }
  }
  EXPECT_EQ(179, count);  // and 13 that are structures, lists and objects
}

TEST_F(CApiOptionStringsTest, ListsAndStructures) {
  EXPECT_EQ("OK", Set("compression_opts=4:5:6:7:8:9:true:10:false;compression_per_level=kNoCompression:kZSTD;"
                      "max_bytes_for_level_multiplier_additional=1:2:3;compaction_options_fifo={max_table_files_size=3;ttl=100};"
                      "compaction_options_universal={size_ratio=7;stop_style=kCompactionStopStyleSimilarSize}"));
  EXPECT_EQ((std::vector<int>{4, 5, 6, 7}), result_->compression_options);
  EXPECT_EQ(8, braiddb_options_get_compression_options_zstd_max_train_bytes(result_));
  EXPECT_EQ(9, braiddb_options_get_compression_options_parallel_threads(result_));
  EXPECT_EQ(10u, braiddb_options_get_compression_options_max_dict_buffer_bytes(result_));
  EXPECT_EQ(0, braiddb_options_get_compression_options_use_zstd_dict_trainer(result_));
  EXPECT_EQ((std::vector<int>{0, 7}), result_->compression_per_level);
  EXPECT_EQ((std::vector<int>{1, 2, 3}), result_->max_bytes_for_level_multiplier_additional);
  EXPECT_EQ(3u, result_->fifo.max_table_files_size);
  EXPECT_EQ(7, result_->universal.size_ratio);
  EXPECT_EQ(0, result_->universal.stop_style);
  EXPECT_EQ("OK", Set("bottommost_compression_opts={level=4;enabled=true};enable_blob_garbage_collection=1;wal_dir=/x"));
  EXPECT_EQ((std::vector<int>{-14, 4, 0, 0}), result_->bottommost_compression_options);
  EXPECT_TRUE(result_->bottommost_compression_options_enabled);
  EXPECT_EQ(1, braiddb_options_get_enable_blob_gc(result_));
  EXPECT_EQ("/x", result_->wal_dir);
}

TEST_F(CApiOptionStringsTest, TablesReachTheEngine) {
  for (const char* table : {"block_based_table_factory={", "table_factory={id=BlockBasedTable;"}) {
    EXPECT_EQ("OK", Set(table + std::string("block_size=4K;block_cache={capacity=7M;num_shard_bits=4};index_type=kHashSearch;"
                                            "filter_policy=bloomfilter:12:false};max_open_files=7")));
    EXPECT_EQ(4096u, result_->table.block_size);
    EXPECT_EQ(1, result_->table.index_type);
    EXPECT_EQ(7, braiddb_options_get_max_open_files(result_));
    Options mapped;
    ASSERT_TRUE(capi::MakeOptions(*result_, "unused", &mapped).ok());
    EXPECT_EQ(7u << 20, mapped.lookup_cache_size);
    EXPECT_EQ(12u, mapped.filter_bits_per_key);
  }
  EXPECT_EQ("OK", Set("block_based_table_factory={filter_policy={id=rocksdb.BloomFilter;bits_per_key=4}}"));
  EXPECT_EQ(4, result_->table.filter_policy->bits_per_key);
}

TEST_F(CApiOptionStringsTest, ObjectsThatAreBuiltIn) {
  EXPECT_EQ("OK", Set("prefix_extractor=fixed:10;comparator=rocksdb.ReverseBytewiseComparator;merge_operator=uint64add"));
  EXPECT_STREQ("rocksdb.FixedPrefix.10", result_->own.prefix_extractor->Name());
  EXPECT_EQ(ReverseBytewiseComparator(), result_->own.comparator);
  EXPECT_NE(nullptr, result_->own.merge_operator);
  EXPECT_EQ("OK", Set("prefix_extractor=rocksdb.CappedPrefix.3"));
  EXPECT_STREQ("rocksdb.CappedPrefix.3", result_->own.prefix_extractor->Name());
  EXPECT_EQ("OK", Set("prefix_extractor=unknown;comparator=unknown;merge_operator=unknown"));  // as in RocksDB
  EXPECT_EQ(nullptr, result_->own.prefix_extractor);
  EXPECT_EQ(0u, Set("merge_operator=stringappend").find("Not implemented: "));
  EXPECT_EQ("OK", Set("comparator=rocksdb.BytewiseComparator.u64ts"));
  EXPECT_EQ(BytewiseComparatorWithU64Ts(), result_->own.comparator);
}

}  // namespace
}  // namespace braiddb::test
