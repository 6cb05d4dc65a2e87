// Merge operators through the C API: what their functions are given and give back, and every function that merges.
#include <cstdlib>
#include <cstring>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

// Joins existing value and operands by commas. Operands "refused" are.
struct Joiner {
  int full = 0, partial = 0, deleted = 0, destroyed = 0;
};

char* Joined(std::string text, size_t* length) {
  char* const made = static_cast<char*>(std::malloc(text.size() + 1));
  std::memcpy(made, text.data(), text.size());
  *length = text.size();
  return made;
}
char* FullMerge(void* state, const char* key, size_t key_length, const char* existing, size_t existing_length,
                const char* const* operands, const size_t* lengths, int count, unsigned char* success, size_t* length) {
  ++static_cast<Joiner*>(state)->full;
  std::string text = std::string(key, key_length) + "=" + (existing == nullptr ? "" : std::string(existing, existing_length));
  *success = 1;
  for (int i = 0; i < count; ++i) {
    const std::string operand(operands[i], lengths[i]);
    text += "," + operand;
    if (operand == "refused") *success = 0;
  }
  return Joined(text, length);
}
// All but "refused", as one operand.
char* PartialMerge(void* state, const char*, size_t, const char* const* operands, const size_t* lengths, int count,
                   unsigned char* success, size_t* length) {
  ++static_cast<Joiner*>(state)->partial;
  std::string text;
  *success = 1;
  for (int i = 0; i < count; ++i) {
    const std::string operand(operands[i], lengths[i]);
    text += (i == 0 ? "" : ",") + operand;
    if (operand == "refused") *success = 0;
  }
  return Joined(text, length);
}

class CApiMergeTest : public CApiTest {
 protected:
  void SetUp() override {
    // The options own it.
    braiddb_options_set_merge_operator(
        options_, braiddb_mergeoperator_create(
                      &joiner_, [](void* state) { ++static_cast<Joiner*>(state)->destroyed; }, FullMerge, PartialMerge,
                      [](void* state, const char* value, size_t) {
                        ++static_cast<Joiner*>(state)->deleted;
                        std::free(const_cast<char*>(value));
                      },
                      [](void*) { return "test.Joiner"; }));
  }
  void Merge(std::string_view key, std::string_view operand) {
    braiddb_merge(db_, write_, key.data(), key.size(), operand.data(), operand.size(), error_.pointer());
    EXPECT_EQ("", error_.Take());
  }
  std::string Taken(char* value, size_t length) {
    const std::string text = value == nullptr ? "(none)" : std::string(value, length);
    braiddb_free(value);
    return text;
  }

  Joiner joiner_;
};

TEST_F(CApiMergeTest, OperandsAreGivenOldestFirst) {
  Open();
  Put("a", "0");
  Merge("a", "1");
  Merge("a", "2");
  Merge("b", "1");
  EXPECT_EQ("a=0,1,2", Get("a"));
  EXPECT_EQ("b=,1", Get("b"));
  EXPECT_GE(joiner_.full, 2);
  EXPECT_EQ(joiner_.full, joiner_.deleted);
}

// RocksDB's partial_merge: what a table has of a key is made one operand when it is read.
TEST_F(CApiMergeTest, ManyOperandsAreMadeOne) {
  braiddb_options_set_disable_auto_compactions(options_, 1);
  Open();
  braiddb_flushoptions_t* const flush = braiddb_flushoptions_create();
  Put("first", "table");
  braiddb_flush(db_, flush, error_.pointer());
  std::string expected = "a=";
  for (int i = 0; i < 200; ++i) {
    Merge("a", std::to_string(i));
    expected += "," + std::to_string(i);
  }
  braiddb_flush(db_, flush, error_.pointer());
  braiddb_flushoptions_destroy(flush);
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(0, joiner_.partial);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(expected, Get("a"));
  EXPECT_EQ(1, joiner_.partial);
  EXPECT_EQ(joiner_.full + joiner_.partial, joiner_.deleted);
}

// A compaction combines operands before it applies them.
TEST_F(CApiMergeTest, ACompactionCombinesOperands) {
  Open();
  Put("a", "0");
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  Merge("a", "1");
  Merge("a", "2");
  Merge("b", "1");
  braiddb_compact_range(db_, nullptr, 0, nullptr, 0);
  EXPECT_EQ(1, joiner_.partial);
  EXPECT_EQ(joiner_.full + joiner_.partial, joiner_.deleted);
  const int full = joiner_.full;
  EXPECT_EQ("a=0,1,2", Get("a"));
  EXPECT_EQ("b=,1", Get("b"));
  EXPECT_EQ(full, joiner_.full);
}

TEST_F(CApiMergeTest, AnOperatorThatRefusesIsAnError) {
  Open();
  Merge("a", "refused");
  size_t length = 0;
  EXPECT_EQ(nullptr, braiddb_get(db_, read_, "a", 1, &length, error_.pointer()));
  EXPECT_EQ("Corruption: Error: Could not perform merge.", error_.Take());
}

TEST_F(CApiMergeTest, WithoutAnOperatorMergesAreRefused) {
  braiddb_options_set_merge_operator(options_, nullptr);
  EXPECT_EQ(1, joiner_.destroyed);
  Open();
  braiddb_merge(db_, write_, "a", 1, "1", 1, error_.pointer());
  EXPECT_EQ("Not implemented: Provide a merge_operator when opening DB", error_.Take());
}

TEST_F(CApiMergeTest, Batches) {
  Open();
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "a", 1, "0", 1);
  braiddb_writebatch_merge(batch, "a", 1, "1", 1);
  const char* const keys[] = {"a", ""};
  const char* const values[] = {"2", "3"};
  const size_t key_lengths[] = {1, 0};
  const size_t value_lengths[] = {1, 1};
  braiddb_writebatch_mergev(batch, 2, keys, key_lengths, 2, values, value_lengths);
  EXPECT_EQ(3, braiddb_writebatch_count(batch));
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("a=0,1,23", Get("a"));
  braiddb_writebatch_destroy(batch);
}

TEST_F(CApiMergeTest, BatchesWithAnIndexAreReadWithTheirOperands) {
  Open();
  Put("a", "0");
  Put("b", "0");
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_merge(batch, "a", 1, "1", 1);
  braiddb_writebatch_wi_merge(batch, "a", 1, "2", 1);
  braiddb_writebatch_wi_delete(batch, "b", 1);
  braiddb_writebatch_wi_merge(batch, "b", 1, "3", 1);
  braiddb_writebatch_wi_put(batch, "c", 1, "4", 1);
  braiddb_writebatch_wi_merge(batch, "c", 1, "5", 1);
  size_t length = 0;
  const auto both = [&](const char* key) {
    char* const value = braiddb_writebatch_wi_get_from_batch_and_db(batch, db_, read_, key, 1, &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    return Taken(value, length);
  };
  EXPECT_EQ("a=0,1,2", both("a"));
  EXPECT_EQ("b=,3", both("b"));
  EXPECT_EQ("c=4,5", both("c"));
  char* const own = braiddb_writebatch_wi_get_from_batch(batch, options_, "c", 1, &length, error_.pointer());
  EXPECT_EQ("c=4,5", Taken(own, length));
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(nullptr, braiddb_writebatch_wi_get_from_batch(batch, options_, "a", 1, &length, error_.pointer()));
  EXPECT_EQ("Merge in progress: ", error_.Take());
  braiddb_iterator_t* const iterator =
      braiddb_writebatch_wi_create_iterator_with_base(batch, braiddb_create_iterator(db_, read_));
  std::string seen;
  for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) {
    const char* const value = braiddb_iter_value(iterator, &length);
    seen += std::string(value, length) + " ";
  }
  EXPECT_EQ("a=0,1,2 b=,3 c=4,5 ", seen);
  braiddb_iter_destroy(iterator);
  braiddb_write_writebatch_wi(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("a=0,1,2", Get("a"));
  EXPECT_EQ("b=,3", Get("b"));
  EXPECT_EQ("c=4,5", Get("c"));
  braiddb_writebatch_wi_destroy(batch);
}

TEST_F(CApiMergeTest, TransactionsReadTheirOperands) {
  braiddb_transactiondb_options_t* const db_options = braiddb_transactiondb_options_create();
  braiddb_transaction_options_t* const txn_options = braiddb_transaction_options_create();
  braiddb_transactiondb_t* const db = braiddb_transactiondb_open(options_, db_options, path().c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_transactiondb_merge(db, write_, "a", 1, "0", 1, error_.pointer());
  braiddb_transaction_t* const transaction = braiddb_transaction_begin(db, write_, txn_options, nullptr);
  braiddb_transaction_merge(transaction, "a", 1, "1", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  size_t length = 0;
  char* value = braiddb_transaction_get(transaction, read_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("a=a=,0,1", Taken(value, length));
  value = braiddb_transactiondb_get(db, read_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("a=,0", Taken(value, length));
  braiddb_transaction_commit(transaction, error_.pointer());
  value = braiddb_transactiondb_get(db, read_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("a=,0,1", Taken(value, length));
  EXPECT_EQ("", error_.Take());
  braiddb_transaction_destroy(transaction);
  braiddb_transactiondb_close(db);
  braiddb_transaction_options_destroy(txn_options);
  braiddb_transactiondb_options_destroy(db_options);
}

std::string BytesOf(uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); }

// "sums" adds numbers, the default family joins.
TEST_F(CApiMergeTest, EachFamilyHasItsOperator) {
  Open();
  braiddb_options_t* const adding = braiddb_options_create();
  braiddb_options_set_uint64add_merge_operator(adding);
  braiddb_column_family_handle_destroy(braiddb_create_column_family(db_, adding, "sums", error_.pointer()));
  ASSERT_EQ("", error_.Take());
  Close();
  const char* const names[] = {"default", "sums"};
  const braiddb_options_t* const family_options[] = {options_, adding};
  braiddb_column_family_handle_t* families[2] = {nullptr, nullptr};
  braiddb_options_t* const of_database = braiddb_options_create();  // what merges is in the options of the families
  db_ = braiddb_open_column_families(of_database, path().c_str(), 2, names, family_options, families, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_options_destroy(of_database);
  braiddb_column_family_handle_t* const sums = families[1];
  size_t length = 0;
  const auto get = [&](braiddb_column_family_handle_t* family, const char* key) {
    char* const value = braiddb_get_cf(db_, read_, family, key, 1, &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    return Taken(value, length);
  };
  const std::string one = BytesOf(1), two = BytesOf(2), four = BytesOf(4);
  braiddb_merge_cf(db_, write_, sums, "a", 1, one.data(), one.size(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_merge_cf(db_, write_, families[0], "a", 1, "1", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(one, get(sums, "a"));
  EXPECT_EQ("a=,1", get(families[0], "a"));
  braiddb_merge_cf(db_, write_, nullptr, "a", 1, "1", 1, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Invalid argument: "));

  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_merge_cf(batch, sums, "a", 1, two.data(), two.size());
  const char* const keys[] = {"a"};
  const char* const values[] = {four.data()};
  const size_t key_lengths[] = {1}, value_lengths[] = {four.size()};
  braiddb_writebatch_mergev_cf(batch, sums, 1, keys, key_lengths, 1, values, value_lengths);
  braiddb_writebatch_merge_cf(batch, families[0], "a", 1, "2", 1);
  braiddb_writebatch_merge_cf(batch, sums, "b", 1, one.data(), one.size());
  braiddb_writebatch_delete_range_cf(batch, sums, "b", 1, "c", 1);  // which takes back what was merged before it
  braiddb_writebatch_t* const appended = braiddb_writebatch_create();
  braiddb_writebatch_append(appended, batch);
  braiddb_write(db_, write_, appended, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(BytesOf(7), get(sums, "a"));
  EXPECT_EQ("a=,1,2", get(families[0], "a"));
  EXPECT_EQ("(none)", get(sums, "b"));
  braiddb_writebatch_clear(batch);
  braiddb_writebatch_merge_cf(batch, nullptr, "a", 1, "1", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Invalid argument: "));
  braiddb_writebatch_destroy(appended);
  braiddb_writebatch_destroy(batch);

  braiddb_writebatch_wi_t* const indexed = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_merge_cf(indexed, sums, "a", 1, one.data(), one.size());
  braiddb_writebatch_wi_mergev_cf(indexed, sums, 1, keys, key_lengths, 1, values, value_lengths);
  braiddb_writebatch_wi_put_cf(indexed, sums, "c", 1, one.data(), one.size());
  braiddb_writebatch_wi_merge_cf(indexed, sums, "c", 1, two.data(), two.size());
  char* value = braiddb_writebatch_wi_get_from_batch_and_db_cf(indexed, db_, read_, sums, "a", 1, &length, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(BytesOf(12), Taken(value, length));
  value = braiddb_writebatch_wi_get_from_batch_cf(indexed, options_, sums, "c", 1, &length, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(BytesOf(3), Taken(value, length));
  braiddb_iterator_t* const iterator =
      braiddb_writebatch_wi_create_iterator_with_base_cf(indexed, braiddb_create_iterator_cf(db_, read_, sums), sums);
  std::string all;
  for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
  EXPECT_EQ("a=" + BytesOf(12) + " c=" + BytesOf(3) + " ", all);
  braiddb_iter_destroy(iterator);
  braiddb_write_writebatch_wi(db_, write_, indexed, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(BytesOf(12), get(sums, "a"));
  EXPECT_EQ(BytesOf(3), get(sums, "c"));
  braiddb_writebatch_wi_destroy(indexed);
  for (braiddb_column_family_handle_t* family : families) braiddb_column_family_handle_destroy(family);
  Close();
  braiddb_options_destroy(adding);
}

TEST_F(CApiMergeTest, TransactionsMergeInFamilies) {
  braiddb_transactiondb_options_t* const db_options = braiddb_transactiondb_options_create();
  braiddb_transaction_options_t* const txn_options = braiddb_transaction_options_create();
  braiddb_transactiondb_t* const db = braiddb_transactiondb_open(options_, db_options, path().c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_options_t* const adding = braiddb_options_create();
  braiddb_options_set_uint64add_merge_operator(adding);
  braiddb_column_family_handle_t* const sums = braiddb_transactiondb_create_column_family(db, adding, "sums", error_.pointer());
  ASSERT_EQ("", error_.Take());
  const std::string one = BytesOf(1), two = BytesOf(2);
  braiddb_transactiondb_merge_cf(db, write_, sums, "a", 1, one.data(), one.size(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_transaction_t* const transaction = braiddb_transaction_begin(db, write_, txn_options, nullptr);
  braiddb_transaction_merge_cf(transaction, sums, "a", 1, two.data(), two.size(), error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_transaction_merge(transaction, "a", 1, "1", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_transaction_merge_cf(transaction, nullptr, "a", 1, "1", 1, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Invalid argument: "));
  size_t length = 0;
  char* value = braiddb_transaction_get_cf(transaction, read_, sums, "a", 1, &length, error_.pointer());
  EXPECT_EQ(BytesOf(3), Taken(value, length));
  value = braiddb_transactiondb_get_cf(db, read_, sums, "a", 1, &length, error_.pointer());
  EXPECT_EQ(one, Taken(value, length));
  braiddb_transaction_commit(transaction, error_.pointer());
  EXPECT_EQ("", error_.Take());
  value = braiddb_transactiondb_get_cf(db, read_, sums, "a", 1, &length, error_.pointer());
  EXPECT_EQ(BytesOf(3), Taken(value, length));
  value = braiddb_transactiondb_get(db, read_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("a=,1", Taken(value, length));
  EXPECT_EQ("", error_.Take());
  braiddb_transaction_destroy(transaction);
  braiddb_column_family_handle_destroy(sums);
  braiddb_transactiondb_close(db);
  braiddb_options_destroy(adding);
  braiddb_transaction_options_destroy(txn_options);
  braiddb_transactiondb_options_destroy(db_options);
}

TEST_F(CApiMergeTest, NumbersAreAdded) {
  braiddb_options_set_uint64add_merge_operator(options_);
  EXPECT_EQ(1, joiner_.destroyed);
  Open();
  for (uint64_t number : {1ull, 20ull, 300ull}) {
    Merge("a", std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
  }
  const std::optional<std::string> sum = Get("a");
  uint64_t number = 0;
  ASSERT_EQ(sizeof number, sum->size());
  std::memcpy(&number, sum->data(), sizeof number);
  EXPECT_EQ(321u, number);
}

}  // namespace
}  // namespace braiddb::test
