// Objects of the C API that are destroyed in odd orders. docs/C_API.md has a table of who owns what, and until when.
#include <cstring>
#include <string>
#include <string_view>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiLifetimeTest : public CApiTest {
 protected:
  // Memory of a caller that has other bytes as soon as the call is over.
  class Scratch {
   public:
    explicit Scratch(std::string_view bytes) : bytes_(bytes) {}
    ~Scratch() { std::memset(bytes_.data(), '!', bytes_.size()); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const char* data() const { return bytes_.data(); }
    size_t size() const { return bytes_.size(); }

   private:
    std::string bytes_;
  };
  braiddb_column_family_handle_t* Create(const char* name, const braiddb_options_t* options) {
    braiddb_column_family_handle_t* const family = braiddb_create_column_family(db_, options, name, error_.pointer());
    EXPECT_EQ("", error_.Take());
    return family;
  }
  static std::string Taken(char* value, size_t length) {
    const std::string text = value == nullptr ? "(none)" : std::string(value, length);
    braiddb_free(value);
    return text;
  }
  // From where the iterator stands.
  std::string Rest(braiddb_iterator_t* iterator) {
    std::string all;
    for (; braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
    braiddb_iter_get_error(iterator, error_.pointer());
    return all + error_.Take();
  }
};

TEST_F(CApiLifetimeTest, WhatADatabaseIsOpenedWithMayGoAtOnce) {
  braiddb_options_t* const options = braiddb_options_create();
  braiddb_block_based_table_options_t* const table = braiddb_block_based_options_create();
  braiddb_cache_t* const cache = braiddb_cache_create_lru(4 << 20);
  braiddb_options_set_create_if_missing(options, 1);
  braiddb_options_set_uint64add_merge_operator(options);
  braiddb_options_set_prefix_extractor(options, braiddb_slicetransform_create_fixed_prefix(1));
  braiddb_block_based_options_set_block_cache(table, cache);
  braiddb_block_based_options_set_filter_policy(table, braiddb_filterpolicy_create_bloom(10));
  braiddb_options_set_block_based_table_factory(options, table);
  braiddb_cache_destroy(cache);
  braiddb_block_based_options_destroy(table);
  const Scratch where(path() + std::string(1, '\0'));
  db_ = braiddb_open(options, where.data(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_options_destroy(options);
  const char one[8] = {1};
  for (int i = 0; i < 2; ++i) {
    braiddb_merge(db_, write_, "sum", 3, one, sizeof one, error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  Put("t", "v");
  braiddb_wait_for_compaction(db_, error_.pointer());
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  EXPECT_EQ(2, Get("sum").value_or("-")[0]);
  braiddb_readoptions_set_prefix_same_as_start(read_, 1);
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  braiddb_iter_seek(iterator, "s", 1);
  EXPECT_TRUE(braiddb_iter_valid(iterator));
  braiddb_iter_next(iterator);
  EXPECT_FALSE(braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
}

TEST_F(CApiLifetimeTest, ReadOptionsTheirBoundsAndTheirSnapshotMayGoBeforeTheIterator) {
  Open();
  for (const char* const key : {"a", "b", "c", "d", "e"}) Put(key, "1");
  for (const bool tailing : {false, true}) {
    SCOPED_TRACE(tailing);
    braiddb_readoptions_t* const options = braiddb_readoptions_create();
    const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
    braiddb_readoptions_set_snapshot(options, snapshot);
    braiddb_readoptions_set_tailing(options, tailing);
    {
      const Scratch lower("b");
      const Scratch upper("e");
      braiddb_readoptions_set_iterate_lower_bound(options, lower.data(), lower.size());
      braiddb_readoptions_set_iterate_upper_bound(options, upper.data(), upper.size());
    }
    braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, options);
    braiddb_readoptions_destroy(options);
    braiddb_release_snapshot(db_, snapshot);
    Delete("c");
    braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
    braiddb_iter_seek_to_first(iterator);
    EXPECT_EQ(tailing ? "b=1 d=1 " : "b=1 c=1 d=1 ", Rest(iterator));
    braiddb_iter_destroy(iterator);
    Put("c", "1");
  }
}

TEST_F(CApiLifetimeTest, AHandleOfAFamilyMayGoBeforeWhatWasMadeWithIt) {
  Open();
  braiddb_column_family_handle_t* const family = Create("other", options_);
  const std::string large(5000, 'v');
  braiddb_put_cf(db_, write_, family, "k", 1, large.data(), large.size(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_iterator_t* const iterator = braiddb_create_iterator_cf(db_, read_, family);
  braiddb_pinnableslice_t* const pinned = braiddb_get_pinned_cf(db_, read_, family, "k", 1, error_.pointer());
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put_cf(batch, family, "l", 1, "2", 1);
  braiddb_writebatch_wi_t* const indexed = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_put_cf(indexed, family, "m", 1, "3", 1);
  braiddb_column_family_handle_destroy(family);
  braiddb_iter_seek_to_first(iterator);
  EXPECT_EQ("k=" + large + " ", Rest(iterator));
  braiddb_iter_destroy(iterator);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_write_writebatch_wi(db_, write_, indexed, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_wi_destroy(indexed);
  braiddb_writebatch_destroy(batch);
  size_t length = 0;
  const char* const bytes = braiddb_pinnableslice_value(pinned, &length);
  EXPECT_EQ(large, std::string(bytes, length));
  braiddb_pinnableslice_destroy(pinned);
}

TEST_F(CApiLifetimeTest, ATransactionKeepsWhatItWasBegunWith) {
  braiddb_transactiondb_options_t* const db_options = braiddb_transactiondb_options_create();
  braiddb_transactiondb_t* const db = braiddb_transactiondb_open(options_, db_options, path().c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_transactiondb_options_destroy(db_options);
  braiddb_column_family_handle_t* const family =
      braiddb_transactiondb_create_column_family(db, options_, "other", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_transaction_options_t* const options = braiddb_transaction_options_create();
  braiddb_writeoptions_t* const write = braiddb_writeoptions_create();
  braiddb_transaction_t* const transaction = braiddb_transaction_begin(db, write, options, nullptr);
  braiddb_transaction_options_destroy(options);
  braiddb_writeoptions_destroy(write);
  {
    const Scratch key("k");
    const Scratch value("v");
    braiddb_transaction_put_cf(transaction, family, key.data(), key.size(), value.data(), value.size(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  braiddb_iterator_t* const iterator = braiddb_transaction_create_iterator_cf(transaction, read_, family);
  braiddb_pinnableslice_t* const pinned = braiddb_transaction_get_pinned_cf(transaction, read_, family, "k", 1, error_.pointer());
  braiddb_column_family_handle_destroy(family);
  braiddb_iter_seek_to_first(iterator);
  EXPECT_TRUE(braiddb_iter_valid(iterator));
  // An iterator goes on over the commit: then it shows the database as it was when the iterator was made.
  braiddb_transaction_commit(transaction, error_.pointer());
  EXPECT_EQ("", error_.Take());
  size_t length = 0;
  const char* bytes = braiddb_iter_key(iterator, &length);
  EXPECT_EQ("k", std::string(bytes, length));
  braiddb_iter_next(iterator);
  EXPECT_EQ("", Rest(iterator));
  braiddb_iter_seek_to_first(iterator);
  EXPECT_EQ("", Rest(iterator));
  braiddb_iter_destroy(iterator);
  braiddb_transaction_destroy(transaction);
  bytes = braiddb_pinnableslice_value(pinned, &length);
  EXPECT_EQ("v", std::string(bytes, length));
  braiddb_pinnableslice_destroy(pinned);
  braiddb_transactiondb_close(db);
}

TEST_F(CApiLifetimeTest, WhatTellsOfADatabaseMayOutliveIt) {
  Open();
  Put("k", "v");
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  braiddb_column_family_metadata_t* const metadata = braiddb_get_column_family_metadata(db_);
  braiddb_level_metadata_t* const level = braiddb_column_family_metadata_get_level_metadata(metadata, 1);
  braiddb_sst_file_metadata_t* const file = braiddb_level_metadata_get_sst_file_metadata(level, 0);
  ASSERT_NE(nullptr, file);
  const braiddb_livefiles_t* const files = braiddb_livefiles(db_);
  braiddb_wal_iterator_t* const log = braiddb_get_updates_since(db_, braiddb_get_latest_sequence_number(db_), nullptr, nullptr);
  Put("l", "w");
  braiddb_wal_iterator_t* const newer =
      braiddb_get_updates_since(db_, braiddb_get_latest_sequence_number(db_), nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_writebatch_t* const batch = braiddb_wal_iter_get_batch(newer, nullptr);
  braiddb_wal_iter_destroy(newer);
  braiddb_checkpoint_t* const checkpoint = braiddb_checkpoint_object_create(db_, error_.pointer());
  ASSERT_EQ("", error_.Take());
  Close();
  size_t length = 0;
  char* const smallest = braiddb_sst_file_metadata_get_smallestkey(file, &length);
  EXPECT_EQ("k", Taken(smallest, length));
  const char* const largest = braiddb_livefiles_largestkey(files, 0, &length);
  EXPECT_EQ("k", std::string(largest, length));
  EXPECT_EQ(1, braiddb_writebatch_count(batch));
  // The family's first: nothing is asked of the others any more.
  braiddb_column_family_metadata_destroy(metadata);
  braiddb_level_metadata_destroy(level);
  braiddb_sst_file_metadata_destroy(file);
  braiddb_livefiles_destroy(files);
  braiddb_checkpoint_object_destroy(checkpoint);
  if (log != nullptr) braiddb_wal_iter_destroy(log);
  Open();
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_destroy(batch);
  EXPECT_EQ("k=v l=w ", Scan(read_));
}

TEST_F(CApiLifetimeTest, AnIteratorOverABatchOwnsTheOneBelow) {
  Open();
  Put("a", "1");
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_put(batch, "b", 1, "2", 1);
  braiddb_readoptions_t* const options = braiddb_readoptions_create();
  braiddb_iterator_t* const iterator =
      braiddb_writebatch_wi_create_iterator_with_base(batch, braiddb_create_iterator(db_, options));
  braiddb_readoptions_destroy(options);
  braiddb_iter_seek_to_first(iterator);
  braiddb_writebatch_wi_clear(batch);
  EXPECT_EQ("a=1 ", Rest(iterator));
  braiddb_iter_destroy(iterator);
  braiddb_writebatch_wi_destroy(batch);
}

// As RocksDB: both are errors of the iterator.
TEST_F(CApiLifetimeTest, IteratorsThatRocksDBRefuses) {
  Open();
  Put("a", "1");
  const auto error_of = [this](braiddb_iterator_t* iterator) {
    braiddb_iter_seek_to_first(iterator);
    EXPECT_FALSE(braiddb_iter_valid(iterator));
    braiddb_iter_get_error(iterator, error_.pointer());
    braiddb_iter_destroy(iterator);
    return error_.Take();
  };
  braiddb_readoptions_set_managed(read_, 1);
  EXPECT_EQ("Not implemented: Managed iterator is not supported anymore.", error_of(braiddb_create_iterator(db_, read_)));
  EXPECT_EQ("1", Get("a"));
  braiddb_readoptions_set_managed(read_, 0);
  braiddb_readoptions_set_read_tier(read_, 2);
  EXPECT_EQ("Not implemented: ReadTier::kPersistedData is not yet supported in iterators.",
            error_of(braiddb_create_iterator(db_, read_)));
  EXPECT_EQ("1", Get("a"));
  braiddb_readoptions_set_read_tier(read_, 0);
  EXPECT_EQ("a=1 ", Scan(read_));
}

}  // namespace
}  // namespace braiddb::test
