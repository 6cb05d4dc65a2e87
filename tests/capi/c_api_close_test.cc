// Closing a database while its user still has transactions, iterators, values and handles of it: RocksDB takes it.
#include <string>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiCloseTest : public CApiTest {
 protected:
  ~CApiCloseTest() override {
    Close();
    braiddb_transactiondb_options_destroy(txn_db_options_);
    braiddb_transaction_options_destroy(txn_options_);
    braiddb_optimistictransaction_options_destroy(optimistic_options_);
  }
  braiddb_transactiondb_t* OpenPessimistic() {
    auto* const db = braiddb_transactiondb_open(options_, txn_db_options_, path().c_str(), error_.pointer());
    EXPECT_EQ("", error_.Take());
    return db;
  }
  void PutIn(braiddb_transaction_t* transaction, const char* key) {
    braiddb_transaction_put(transaction, key, 1, "v", 1, error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  bool Has(braiddb_transactiondb_t* db, const char* key) {
    size_t length = 0;
    char* const value = braiddb_transactiondb_get(db, read_, key, 1, &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_free(value);
    return value != nullptr;
  }

  braiddb_transactiondb_options_t* const txn_db_options_ = braiddb_transactiondb_options_create();
  braiddb_transaction_options_t* const txn_options_ = braiddb_transaction_options_create();
  braiddb_optimistictransaction_options_t* const optimistic_options_ = braiddb_optimistictransaction_options_create();
};

TEST_F(CApiCloseTest, TransactionsThatNobodyEnded) {
  braiddb_transactiondb_t* db = OpenPessimistic();
  braiddb_transaction_options_set_set_snapshot(txn_options_, 1);
  braiddb_transaction_t* const locked = braiddb_transaction_begin(db, write_, txn_options_, nullptr);
  braiddb_transaction_t* const prepared = braiddb_transaction_begin(db, write_, txn_options_, nullptr);
  braiddb_transaction_t* const committed = braiddb_transaction_begin(db, write_, txn_options_, nullptr);
  PutIn(locked, "a");
  PutIn(prepared, "b");
  PutIn(committed, "c");
  braiddb_transaction_set_name(prepared, "two", 3, error_.pointer());
  braiddb_transaction_prepare(prepared, error_.pointer());
  braiddb_transaction_commit(committed, error_.pointer());
  braiddb_iterator_t* const iterator = braiddb_transaction_create_iterator(locked, read_);
  braiddb_iter_seek_to_first(iterator);
  EXPECT_TRUE(braiddb_iter_valid(iterator));
  EXPECT_EQ("", error_.Take());
  braiddb_transactiondb_close(db);
  // To destroy them late is harmless, and so is never to do it.
  EXPECT_FALSE(braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
  braiddb_transaction_destroy(locked);
  braiddb_transaction_destroy(prepared);
  braiddb_transaction_destroy(committed);

  db = OpenPessimistic();
  EXPECT_FALSE(Has(db, "a"));
  EXPECT_FALSE(Has(db, "b"));
  EXPECT_TRUE(Has(db, "c"));
  size_t count = 0;
  braiddb_transaction_t** const found = braiddb_transactiondb_get_prepared_transactions(db, &count);
  ASSERT_EQ(1u, count);
  braiddb_transaction_commit(found[0], error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_TRUE(Has(db, "b"));
  braiddb_transactiondb_close(db);
  braiddb_transaction_destroy(found[0]);
  braiddb_free(found);
}

TEST_F(CApiCloseTest, ATransactionObjectGoesOnInTheNextDatabase) {
  braiddb_transactiondb_t* db = OpenPessimistic();
  braiddb_transaction_t* const transaction = braiddb_transaction_begin(db, write_, txn_options_, nullptr);
  PutIn(transaction, "a");
  braiddb_transactiondb_close(db);
  db = OpenPessimistic();
  ASSERT_EQ(transaction, braiddb_transaction_begin(db, write_, txn_options_, transaction));
  PutIn(transaction, "b");
  braiddb_transactiondb_close(db);
  braiddb_transaction_destroy(transaction);
}

TEST_F(CApiCloseTest, OptimisticTransactionsThatNobodyEnded) {
  braiddb_optimistictransactiondb_t* const db = braiddb_optimistictransactiondb_open(options_, path().c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_optimistictransaction_options_set_set_snapshot(optimistic_options_, 1);
  braiddb_transaction_t* const transaction = braiddb_optimistictransaction_begin(db, write_, optimistic_options_, nullptr);
  PutIn(transaction, "a");
  braiddb_optimistictransactiondb_close(db);
  braiddb_transaction_destroy(transaction);
}

TEST_F(CApiCloseTest, ValuesIteratorsAndHandlesThatNobodyGaveBack) {
  Open();
  const std::string large(5000, 'v');
  Put("k", large);
  braiddb_column_family_handle_t* const family = braiddb_create_column_family(db_, options_, "other", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_put_cf(db_, write_, family, "k", 1, "v", 1, error_.pointer());
  braiddb_pinnableslice_t* const pinned = braiddb_get_pinned(db_, read_, "k", 1, error_.pointer());
  ASSERT_NE(nullptr, pinned);
  braiddb_iterator_t* const iterator = braiddb_create_iterator_cf(db_, read_, family);
  braiddb_iter_seek_to_first(iterator);
  EXPECT_TRUE(braiddb_iter_valid(iterator));
  braiddb_wal_iterator_t* const log = braiddb_get_updates_since(db_, 1, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  // Some that went before it, from either end and the middle of the list.
  braiddb_iterator_t* others[3];
  for (auto& other : others) other = braiddb_create_iterator(db_, read_);
  for (const size_t i : {1, 2, 0}) braiddb_iter_destroy(others[i]);
  Close();
  braiddb_pinnableslice_destroy(pinned);
  braiddb_iter_destroy(iterator);
  braiddb_wal_iter_destroy(log);
  braiddb_column_family_handle_destroy(family);
}

}  // namespace
}  // namespace braiddb::test
