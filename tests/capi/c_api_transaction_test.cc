// Transactions through the C API: both kinds, their errors' texts, save points, snapshots, iterators.
#include <string>
#include <string_view>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiTransactionTest : public CApiTest {
 protected:
  CApiTransactionTest() { braiddb_transaction_options_set_lock_timeout(txn_options_, 1); }
  ~CApiTransactionTest() override {
    ClosePessimistic();
    CloseOptimistic();
    braiddb_transaction_options_destroy(txn_options_);
    braiddb_transactiondb_options_destroy(txn_db_options_);
    braiddb_optimistictransaction_options_destroy(optimistic_options_);
  }
  void OpenPessimistic() {
    txn_db_ = braiddb_transactiondb_open(options_, txn_db_options_, path().c_str(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  void OpenOptimistic() {
    optimistic_ = braiddb_optimistictransactiondb_open(options_, path().c_str(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  void ClosePessimistic() {
    if (txn_db_ != nullptr) braiddb_transactiondb_close(txn_db_);
    txn_db_ = nullptr;
  }
  void CloseOptimistic() {
    if (optimistic_ != nullptr) braiddb_optimistictransactiondb_close(optimistic_);
    optimistic_ = nullptr;
  }
  braiddb_transaction_t* Begin(braiddb_transaction_t* old = nullptr) {
    return txn_db_ != nullptr ? braiddb_transaction_begin(txn_db_, write_, txn_options_, old)
                              : braiddb_optimistictransaction_begin(optimistic_, write_, optimistic_options_, old);
  }
  std::string PutIn(braiddb_transaction_t* transaction, std::string_view key, std::string_view value) {
    braiddb_transaction_put(transaction, key.data(), key.size(), value.data(), value.size(), error_.pointer());
    return error_.Take();
  }
  // "(none)" of a key that is not there.
  static std::string Taken(char* value, size_t length) {
    const std::string text = value == nullptr ? "(none)" : std::string(value, length);
    braiddb_free(value);
    return text;
  }
  std::string GetIn(braiddb_transaction_t* transaction, std::string_view key) {
    size_t length = 0;
    char* const value = braiddb_transaction_get(transaction, read_, key.data(), key.size(), &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_pinnableslice_t* const pinned =
        braiddb_transaction_get_pinned(transaction, read_, key.data(), key.size(), error_.pointer());
    EXPECT_EQ("", error_.Take());
    size_t pinned_length = 0;
    const char* const bytes = braiddb_pinnableslice_value(pinned, &pinned_length);
    EXPECT_EQ(value == nullptr, bytes == nullptr);
    if (bytes != nullptr && value != nullptr) {
      EXPECT_EQ(std::string(bytes, pinned_length), std::string(value, length));
    }
    braiddb_pinnableslice_destroy(pinned);
    return Taken(value, length);
  }
  std::string GetOutside(std::string_view key) {
    size_t length = 0;
    char* const value = txn_db_ != nullptr
                            ? braiddb_transactiondb_get(txn_db_, read_, key.data(), key.size(), &length, error_.pointer())
                            : braiddb_get(braiddb_optimistictransactiondb_get_base_db(optimistic_), read_, key.data(), key.size(),
                                          &length, error_.pointer());
    EXPECT_EQ("", error_.Take());
    return Taken(value, length);
  }
  std::string SetName(braiddb_transaction_t* transaction, std::string_view name) {
    braiddb_transaction_set_name(transaction, name.data(), name.size(), error_.pointer());
    return error_.Take();
  }
  std::string Prepare(braiddb_transaction_t* transaction) {
    braiddb_transaction_prepare(transaction, error_.pointer());
    return error_.Take();
  }
  std::string Commit(braiddb_transaction_t* transaction) {
    braiddb_transaction_commit(transaction, error_.pointer());
    return error_.Take();
  }

  braiddb_transactiondb_options_t* const txn_db_options_ = braiddb_transactiondb_options_create();
  braiddb_transaction_options_t* const txn_options_ = braiddb_transaction_options_create();
  braiddb_optimistictransaction_options_t* const optimistic_options_ = braiddb_optimistictransaction_options_create();
  braiddb_transactiondb_t* txn_db_ = nullptr;
  braiddb_optimistictransactiondb_t* optimistic_ = nullptr;
};

TEST_F(CApiTransactionTest, UpdatesAreSeenInsideAndAfterTheCommit) {
  for (const bool optimistic : {false, true}) {
    optimistic ? OpenOptimistic() : OpenPessimistic();
    braiddb_transaction_t* transaction = Begin();
    EXPECT_EQ("", PutIn(transaction, "a", "1"));
    EXPECT_EQ("1", GetIn(transaction, "a"));
    EXPECT_EQ("(none)", GetOutside("a"));
    braiddb_transaction_set_savepoint(transaction);
    EXPECT_EQ("", PutIn(transaction, "a", "2"));
    EXPECT_EQ("", PutIn(transaction, "b", "2"));
    braiddb_transaction_rollback_to_savepoint(transaction, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_transaction_rollback_to_savepoint(transaction, error_.pointer());
    EXPECT_TRUE(error_.Take().starts_with("NotFound: "));
    EXPECT_EQ("1", GetIn(transaction, "a"));
    EXPECT_EQ("(none)", GetIn(transaction, "b"));

    braiddb_iterator_t* const iterator = braiddb_transaction_create_iterator(transaction, read_);
    braiddb_iter_seek_to_first(iterator);
    ASSERT_TRUE(braiddb_iter_valid(iterator));
    size_t length = 0;
    const char* const key = braiddb_iter_key(iterator, &length);
    EXPECT_EQ("a", std::string_view(key, length));
    braiddb_iter_next(iterator);
    EXPECT_FALSE(braiddb_iter_valid(iterator));
    braiddb_iter_destroy(iterator);

    EXPECT_EQ("", Commit(transaction));
    EXPECT_EQ("1", GetOutside("a"));
    EXPECT_EQ(optimistic, Commit(transaction).empty());  // a pessimistic one is over

    // The object is used again.
    ASSERT_EQ(transaction, Begin(transaction));
    braiddb_transaction_delete(transaction, "a", 1, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_transaction_rollback(transaction, error_.pointer());
    EXPECT_EQ("", error_.Take());
    EXPECT_EQ("1", GetOutside("a"));
    braiddb_writebatch_t* const batch = braiddb_writebatch_create();
    braiddb_writebatch_put(batch, "c", 1, "3", 1);
    braiddb_writebatch_delete(batch, "a", 1);
    braiddb_transaction_rebuild_from_writebatch(transaction, batch, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_writebatch_delete_range(batch, "a", 1, "b", 1);
    braiddb_transaction_rebuild_from_writebatch(transaction, batch, error_.pointer());
    EXPECT_TRUE(error_.Take().starts_with("Invalid argument: DeleteRangeCF not implemented"));
    braiddb_writebatch_destroy(batch);
    EXPECT_EQ("", Commit(transaction));
    EXPECT_EQ("(none)", GetOutside("a"));
    EXPECT_EQ("3", GetOutside("c"));
    braiddb_transaction_destroy(transaction);
    if (!optimistic) {
      braiddb_transactiondb_close(txn_db_);
      txn_db_ = nullptr;
      braiddb_destroy_db(options_, path().c_str(), error_.pointer());
      ASSERT_EQ("", error_.Take());
    }
  }
}

// Bindings do so, as RocksDB has no function for it.
TEST_F(CApiTransactionTest, PassesForADatabaseWhereAFamilyIsDropped) {
  OpenPessimistic();
  braiddb_column_family_handle_t* const family =
      braiddb_transactiondb_create_column_family(txn_db_, options_, "family", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_drop_column_family(reinterpret_cast<braiddb_t*>(txn_db_), family, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_column_family_handle_destroy(family);
}

TEST_F(CApiTransactionTest, ALockThatIsHeldTimesOut) {
  OpenPessimistic();
  braiddb_transaction_t* const first = Begin();
  braiddb_transaction_t* const second = Begin();
  size_t length = 0;
  EXPECT_EQ("(none)", Taken(braiddb_transaction_get_for_update(first, read_, "a", 1, &length, 1, error_.pointer()), length));
  EXPECT_TRUE(PutIn(second, "a", "2").starts_with("Operation timed out: "));
  EXPECT_EQ("", PutIn(first, "a", "1"));
  EXPECT_EQ("", Commit(first));
  EXPECT_EQ("", PutIn(second, "a", "2"));
  EXPECT_EQ("", Commit(second));
  EXPECT_EQ("2", GetOutside("a"));
  braiddb_transaction_destroy(first);
  braiddb_transaction_destroy(second);
}

TEST_F(CApiTransactionTest, AConflictIsBusy) {
  OpenOptimistic();
  braiddb_t* const base = braiddb_optimistictransactiondb_get_base_db(optimistic_);
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_EQ("", PutIn(transaction, "a", "1"));
  braiddb_put(base, write_, "a", 1, "other", 5, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_TRUE(Commit(transaction).starts_with("Resource busy: "));
  braiddb_transaction_destroy(transaction);
  braiddb_optimistictransactiondb_close_base_db(base);
  EXPECT_EQ("other", GetOutside("a"));
}

TEST_F(CApiTransactionTest, ReadsAndConflictsGoByTheSnapshot) {
  OpenPessimistic();
  braiddb_transactiondb_put(txn_db_, write_, "a", 1, "1", 1, error_.pointer());
  braiddb_transaction_options_set_set_snapshot(txn_options_, 1);
  braiddb_transaction_t* const transaction = Begin();
  braiddb_transactiondb_put(txn_db_, write_, "a", 1, "2", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  const braiddb_snapshot_t* const snapshot = braiddb_transaction_get_snapshot(transaction);
  braiddb_readoptions_set_snapshot(read_, snapshot);
  EXPECT_EQ("1", GetIn(transaction, "a"));
  braiddb_readoptions_set_snapshot(read_, nullptr);
  braiddb_free(const_cast<braiddb_snapshot_t*>(snapshot));
  EXPECT_EQ("2", GetIn(transaction, "a"));
  EXPECT_TRUE(PutIn(transaction, "a", "3").starts_with("Resource busy: "));
  braiddb_transaction_destroy(transaction);
}

// Read options hold the snapshot of a transaction until that is destroyed, or begun anew; what get_snapshot gave may be freed.
TEST_F(CApiTransactionTest, ASnapshotLastsBeyondTheCommit) {
  braiddb_transaction_options_set_set_snapshot(txn_options_, 1);
  braiddb_optimistictransaction_options_set_set_snapshot(optimistic_options_, 1);
  for (const bool optimistic : {false, true}) {
    for (const bool commits : {true, false}) {
      SCOPED_TRACE(std::string(optimistic ? "optimistic" : "pessimistic") + (commits ? ", commit" : ", rollback"));
      optimistic ? OpenOptimistic() : OpenPessimistic();
      braiddb_transaction_t* const first = Begin();
      EXPECT_EQ("", PutIn(first, "a", "old"));
      EXPECT_EQ("", Commit(first));
      braiddb_transaction_t* const transaction = Begin();
      const braiddb_snapshot_t* const snapshot = braiddb_transaction_get_snapshot(transaction);
      braiddb_readoptions_set_snapshot(read_, snapshot);
      braiddb_free(const_cast<braiddb_snapshot_t*>(snapshot));
      EXPECT_EQ("", PutIn(transaction, "a", "new"));
      if (commits) {
        EXPECT_EQ("", Commit(transaction));
      } else {
        braiddb_transaction_rollback(transaction, error_.pointer());
        EXPECT_EQ("", error_.Take());
      }
      ASSERT_EQ(first, Begin(first));
      EXPECT_EQ("", PutIn(first, "a", "newer"));
      EXPECT_EQ("", Commit(first));
      EXPECT_EQ("old", GetIn(transaction, "a"));
      EXPECT_EQ("old", GetOutside("a"));
      EXPECT_EQ("old", GetIn(first, "a")) << "read options say which state, whose ever their snapshot is";
      braiddb_readoptions_set_snapshot(read_, nullptr);
      EXPECT_EQ("newer", GetIn(transaction, "a"));
      braiddb_transaction_destroy(transaction);
      braiddb_transaction_destroy(first);
      optimistic ? CloseOptimistic() : ClosePessimistic();
    }
  }
}

TEST_F(CApiTransactionTest, AnOptimisticOneGoesOnAfterItsCommit) {
  OpenOptimistic();
  braiddb_transaction_t* const transaction = Begin();
  for (const char* const value : {"1", "2", "3"}) {
    EXPECT_EQ("", PutIn(transaction, "a", value));
    EXPECT_EQ(value, GetIn(transaction, "a"));
    EXPECT_EQ("", Commit(transaction));
    EXPECT_EQ(value, GetOutside("a"));
  }
  braiddb_transaction_rollback(transaction, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("", Commit(transaction));
  braiddb_transaction_destroy(transaction);
  EXPECT_EQ("3", GetOutside("a"));
}

// The snapshot of the read options chooses the value. Conflicts are a matter of the transaction's own snapshot.
TEST_F(CApiTransactionTest, AReadForUpdateThroughAnOlderSnapshotGivesItsValue) {
  for (const bool optimistic : {false, true}) {
    SCOPED_TRACE(optimistic);
    optimistic ? OpenOptimistic() : OpenPessimistic();
    braiddb_transaction_t* const writer = Begin();
    EXPECT_EQ("", PutIn(writer, "a", "old"));
    EXPECT_EQ("", Commit(writer));
    braiddb_transaction_options_set_set_snapshot(txn_options_, 1);
    braiddb_optimistictransaction_options_set_set_snapshot(optimistic_options_, 1);
    braiddb_transaction_t* const holder = Begin();
    const braiddb_snapshot_t* const snapshot = braiddb_transaction_get_snapshot(holder);
    braiddb_transaction_options_set_set_snapshot(txn_options_, 0);
    braiddb_optimistictransaction_options_set_set_snapshot(optimistic_options_, 0);
    ASSERT_EQ(writer, Begin(writer));
    EXPECT_EQ("", PutIn(writer, "a", "new"));
    EXPECT_EQ("", Commit(writer));

    braiddb_readoptions_set_snapshot(read_, snapshot);
    braiddb_transaction_t* const transaction = Begin();
    size_t length = 0;
    char* value = braiddb_transaction_get_for_update(transaction, read_, "a", 1, &length, 1, error_.pointer());
    EXPECT_EQ("old", Taken(value, length));
    EXPECT_EQ("", error_.Take());
    braiddb_pinnableslice_t* const pinned =
        braiddb_transaction_get_pinned_for_update(transaction, read_, "a", 1, 1, error_.pointer());
    EXPECT_EQ("", error_.Take());
    const char* const bytes = braiddb_pinnableslice_value(pinned, &length);
    EXPECT_EQ("old", std::string(bytes, length));
    braiddb_pinnableslice_destroy(pinned);
    braiddb_readoptions_set_snapshot(read_, nullptr);
    // It is protected like any other.
    ASSERT_EQ(writer, Begin(writer));
    const std::string error = PutIn(writer, "a", "newer");
    EXPECT_EQ(optimistic, error.empty()) << error;
    if (optimistic) {
      EXPECT_EQ("", Commit(writer));
    }
    const std::string result = Commit(transaction);
    EXPECT_EQ(optimistic, result.starts_with("Resource busy: ")) << result;
    // Through the snapshot of the transaction that holds it, it is a conflict.
    braiddb_readoptions_set_snapshot(read_, snapshot);
    braiddb_free(braiddb_transaction_get_for_update(holder, read_, "a", 1, &length, 1, error_.pointer()));
    const std::string conflict = optimistic ? error_.Take() + Commit(holder) : error_.Take();
    EXPECT_TRUE(conflict.starts_with("Resource busy: ")) << conflict;
    braiddb_readoptions_set_snapshot(read_, nullptr);
    braiddb_free(const_cast<braiddb_snapshot_t*>(snapshot));
    for (braiddb_transaction_t* const each : {writer, holder, transaction}) braiddb_transaction_destroy(each);
    optimistic ? CloseOptimistic() : ClosePessimistic();
  }
}

// ---- Two phases

TEST_F(CApiTransactionTest, FollowersSeeNoRecords) {
  OpenPessimistic();
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_EQ("", SetName(transaction, "x"));
  EXPECT_EQ("", PutIn(transaction, "a", "1"));
  EXPECT_EQ("", Prepare(transaction));
  EXPECT_EQ("", Commit(transaction));
  braiddb_transaction_destroy(transaction);
  braiddb_t* const copy = braiddb_open(options_, directory_.Sub("copy").c_str(), error_.pointer());
  ASSERT_EQ("", error_.Take());
  // The functions of every database take one with transactions.
  braiddb_wal_iterator_t* const log =
      braiddb_get_updates_since(reinterpret_cast<braiddb_t*>(txn_db_), 0, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  int batches = 0;
  for (; braiddb_wal_iter_valid(log); braiddb_wal_iter_next(log)) {
    braiddb_writebatch_t* const batch = braiddb_wal_iter_get_batch(log, nullptr);
    EXPECT_EQ(1, braiddb_writebatch_count(batch));
    braiddb_write(copy, write_, batch, error_.pointer());
    EXPECT_EQ("", error_.Take());
    braiddb_writebatch_destroy(batch);
    ++batches;
  }
  EXPECT_EQ(1, batches);
  braiddb_wal_iter_destroy(log);
  size_t length = 0;
  char* const value = braiddb_get(copy, read_, "a", 1, &length, error_.pointer());
  EXPECT_EQ("1", Taken(value, length));
  braiddb_close(copy);
}

TEST_F(CApiTransactionTest, PreparedOnesAreDecidedAfterAReopen) {
  OpenPessimistic();
  for (const std::string name : {"commit", "rollback"}) {
    braiddb_transaction_t* const transaction = Begin();
    EXPECT_EQ("", PutIn(transaction, name, "1"));
    EXPECT_TRUE(Prepare(transaction).starts_with("Invalid argument: "));  // it has no name
    EXPECT_EQ("", SetName(transaction, name));
    EXPECT_TRUE(SetName(transaction, name).starts_with("Invalid argument: "));
    EXPECT_EQ("", Prepare(transaction));
    EXPECT_TRUE(PutIn(transaction, "late", "1").starts_with("Invalid argument: "));
    braiddb_transaction_destroy(transaction);  // stays prepared
  }
  EXPECT_EQ("(none)", GetOutside("commit"));
  braiddb_transactiondb_close(txn_db_);
  OpenPessimistic();
  size_t count = 0;
  braiddb_transaction_t** const prepared = braiddb_transactiondb_get_prepared_transactions(txn_db_, &count);
  ASSERT_EQ(2u, count);
  braiddb_transactiondb_put(txn_db_, write_, "commit", 6, "x", 1, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Operation timed out: "));
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    char* const bytes = braiddb_transaction_get_name(prepared[i], &length);
    const std::string name = Taken(bytes, length);
    EXPECT_EQ(i == 0 ? "commit" : "rollback", name);
    EXPECT_EQ("1", GetIn(prepared[i], name));
    if (i == 0) {
      EXPECT_EQ("", Commit(prepared[i]));
      EXPECT_TRUE(Commit(prepared[i]).starts_with("Invalid argument: "));
    } else {
      braiddb_transaction_rollback(prepared[i], error_.pointer());
      EXPECT_EQ("", error_.Take());
    }
    braiddb_transaction_destroy(prepared[i]);
  }
  braiddb_free(prepared);
  EXPECT_EQ("1", GetOutside("commit"));
  EXPECT_EQ("(none)", GetOutside("rollback"));
  EXPECT_EQ(nullptr, braiddb_transactiondb_get_prepared_transactions(txn_db_, &count));
  EXPECT_EQ(0u, count);
}

TEST_F(CApiTransactionTest, OtherOpensRefusePreparedOnes) {
  OpenPessimistic();
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_EQ("", SetName(transaction, "x"));
  EXPECT_EQ("", Prepare(transaction));
  braiddb_transaction_destroy(transaction);
  braiddb_transactiondb_close(txn_db_);
  txn_db_ = nullptr;
  EXPECT_EQ(nullptr, braiddb_open(options_, path().c_str(), error_.pointer()));
  EXPECT_TRUE(error_.Take().starts_with("Not implemented: "));
  size_t count = 0;
  char** const names = braiddb_list_column_families(options_, path().c_str(), &count, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(1u, count);  // nobody sees where it is
  braiddb_list_column_families_destroy(names, count);
  OpenPessimistic();
}

TEST_F(CApiTransactionTest, WithoutSkipPrepareACommitHasToBePrepared) {
  OpenPessimistic();
  braiddb_transaction_options_set_skip_prepare(txn_options_, 0);
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_TRUE(Commit(transaction).starts_with("Invalid argument: "));
  EXPECT_EQ("", SetName(transaction, "x"));
  EXPECT_EQ("", Prepare(transaction));
  EXPECT_EQ("", Commit(transaction));
  braiddb_transaction_destroy(transaction);
}

TEST_F(CApiTransactionTest, ATransactionsBatchCanBeRead) {
  OpenPessimistic();
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_EQ("", PutIn(transaction, "a", "1"));
  braiddb_writebatch_wi_t* const view = braiddb_transaction_get_writebatch_wi(transaction);
  ASSERT_NE(nullptr, view);
  EXPECT_EQ(1, braiddb_writebatch_wi_count(view));
  EXPECT_EQ("", PutIn(transaction, "b", "2"));
  EXPECT_EQ(2, braiddb_writebatch_wi_count(view));
  size_t length = 0;
  char* const value = braiddb_writebatch_wi_get_from_batch(view, nullptr, "b", 1, &length, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("2", Taken(value, length));
  const char* bytes_of_view = braiddb_writebatch_wi_data(view, &length);
  braiddb_writebatch_t* const copy = braiddb_writebatch_create_from(bytes_of_view, length);
  EXPECT_EQ(2, braiddb_writebatch_count(copy));
  braiddb_writebatch_destroy(copy);
  braiddb_writebatch_wi_put(view, "c", 1, "3", 1);  // is not taken
  braiddb_writebatch_wi_clear(view);
  EXPECT_EQ(2, braiddb_writebatch_wi_count(view));
  EXPECT_EQ("(none)", GetIn(transaction, "c"));
  EXPECT_EQ("", Commit(transaction));
  EXPECT_EQ("2", GetOutside("b"));
  // The view is of the transaction, whatever becomes of that.
  EXPECT_EQ(0, braiddb_writebatch_wi_count(view));
  const auto size_of_data = [view] {
    size_t size = 0;
    EXPECT_NE(nullptr, braiddb_writebatch_wi_data(view, &size));
    return size;
  };
  const size_t empty = size_of_data();
  ASSERT_EQ(transaction, Begin(transaction));
  EXPECT_EQ(0, braiddb_writebatch_wi_count(view));
  EXPECT_EQ("", PutIn(transaction, "long key", "long value"));
  EXPECT_EQ(1, braiddb_writebatch_wi_count(view));
  const size_t of_one = size_of_data();
  EXPECT_EQ("", PutIn(transaction, "b", "2"));
  braiddb_transaction_set_savepoint(transaction);
  const size_t of_two = size_of_data();
  EXPECT_GT(of_two, of_one);
  EXPECT_EQ("", PutIn(transaction, "c", "a value that is not there later"));
  EXPECT_GT(size_of_data(), of_two);
  braiddb_transaction_rollback_to_savepoint(transaction, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("", PutIn(transaction, "c", "an even longer value that stays in the batch"));
  bytes_of_view = braiddb_writebatch_wi_data(view, &length);
  EXPECT_NE(std::string::npos, std::string(bytes_of_view, length).find("stays in the batch"));
  EXPECT_EQ(std::string::npos, std::string(bytes_of_view, length).find("not there later"));
  braiddb_transaction_rollback(transaction, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(empty, size_of_data());
  braiddb_free(view);
  braiddb_transaction_destroy(transaction);
}

TEST_F(CApiTransactionTest, OptimisticOnesCannotBeNamed) {
  OpenOptimistic();
  braiddb_transaction_t* const transaction = Begin();
  EXPECT_TRUE(SetName(transaction, "x").starts_with("Invalid argument: "));
  EXPECT_TRUE(Prepare(transaction).starts_with("Invalid argument: "));
  size_t length = 1;
  char* const name = braiddb_transaction_get_name(transaction, &length);
  EXPECT_EQ("", Taken(name, length));
  braiddb_transaction_destroy(transaction);
}

}  // namespace
}  // namespace braiddb::test
