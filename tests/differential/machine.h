// Machine: one library and what a sequence of calls has made with it: a database, its families, iterators, batches, transactions.
//
// Two machines that run the same calls take the same decisions as long as their results are equal: what a call does depends on
// its seed and on earlier results only. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/differential/api.h"
#include "tests/differential/draw.h"

namespace braiddb::test {

struct Call {
  uint32_t operation;  // index into Operations()
  uint64_t seed;       // of its arguments
};

struct Step {
  std::string call;    // the operation with its arguments, for reports
  std::string result;  // what the caller sees; compared
};

// What holds for all opens of one database.
enum class DatabaseKind { kPlain, kTransactions, kOptimistic };

struct LifeOptions {
  DatabaseKind kind = DatabaseKind::kPlain;  // Reopen may change it
  bool reverse_order = false;                // a comparator of the user's own
  size_t prefix_length = 0;                  // of the prefix extractor; 0: none
  bool automatic_merges = true;              // compactions without a call
  bool adds_numbers = false;                 // the merge operator: RocksDB's uint64add, or one that joins texts
  size_t write_buffer_size = 64 << 10;
};

class Machine {
 public:
  using Kind = DatabaseKind;

  // The directory must not exist. Opens a database.
  Machine(const Api& api, std::string directory, const LifeOptions& life);
  // Closes the database and removes the directory.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Step Run(const Call& call);

  // ---- Operations: each draws its arguments, appends them to call_, and returns the result.
  // machine_write.cc
  std::string Put(Draw& draw);
  std::string Delete(Draw& draw);
  std::string SingleDelete(Draw& draw);
  std::string Merge(Draw& draw);
  std::string DeleteRange(Draw& draw);
  std::string Fill(Draw& draw);
  // machine_read.cc
  std::string Get(Draw& draw);
  std::string GetPinned(Draw& draw);
  std::string MultiGet(Draw& draw);
  std::string BatchedMultiGet(Draw& draw);
  std::string KeyMayExist(Draw& draw);
  std::string TakeSnapshot(Draw& draw);
  std::string ReleaseSnapshot(Draw& draw);
  std::string ScanAll(Draw& draw);
  // machine_iterator.cc
  std::string CreateIterator(Draw& draw);
  std::string CreateIterators(Draw& draw);
  std::string MoveIterator(Draw& draw);
  std::string TailingIterator(Draw& draw);
  std::string DestroyIterator(Draw& draw);
  // machine_batch.cc
  std::string BatchUpdate(Draw& draw);
  std::string BatchVectors(Draw& draw);
  std::string BatchSavePoint(Draw& draw);
  std::string BatchInspect(Draw& draw);
  std::string BatchCopy(Draw& draw);
  std::string BatchWrite(Draw& draw);
  std::string BatchClear(Draw& draw);
  // machine_indexed_batch.cc
  std::string IndexedUpdate(Draw& draw);
  std::string IndexedSavePoint(Draw& draw);
  std::string IndexedGet(Draw& draw);
  std::string IndexedInspect(Draw& draw);
  std::string IndexedIterate(Draw& draw);
  std::string IndexedWrite(Draw& draw);
  std::string IndexedClear(Draw& draw);
  // machine_transaction.cc
  std::string Begin(Draw& draw);
  std::string TransactionUpdate(Draw& draw);
  std::string TransactionGet(Draw& draw);
  std::string TransactionGetForUpdate(Draw& draw);
  std::string TransactionMultiGet(Draw& draw);
  std::string TransactionIterate(Draw& draw);
  std::string TransactionSavePoint(Draw& draw);
  std::string TransactionInspect(Draw& draw);
  std::string TransactionRebuild(Draw& draw);
  std::string TransactionEnd(Draw& draw);
  std::string TransactionTwoPhase(Draw& draw);
  // machine_admin.cc
  std::string Flush(Draw& draw);
  std::string Compact(Draw& draw);
  std::string CreateFamily(Draw& draw);
  std::string DropFamily(Draw& draw);
  std::string SetOptions(Draw& draw);
  std::string OptionString(Draw& draw);
  std::string Ingest(Draw& draw);
  std::string Checkpoint(Draw& draw);
  std::string Backup(Draw& draw);
  // machine_open.cc
  std::string Reopen(Draw& draw);
  std::string RefusedOpen(Draw& draw);
  std::string ReadOnly(Draw& draw);
  // Ends what is there, and empties all families: the next sequence begins.
  std::string NewSequence(Draw& draw);

 private:
  struct Family {
    braiddb_column_family_handle_t* handle;
    std::string name;
    bool dropped;
  };
  // A family of a call; by_default: through the function without one.
  struct Target {
    Family* family;
    bool by_default;
    braiddb_column_family_handle_t* handle() const { return family->handle; }
  };
  struct ReadOptionsDeleter {
    const Api* api;
    void operator()(braiddb_readoptions_t* options) const { api->rocksdb_readoptions_destroy(options); }
  };
  using ReadOptions = std::unique_ptr<braiddb_readoptions_t, ReadOptionsDeleter>;
  struct WriteOptionsDeleter {
    const Api* api;
    void operator()(braiddb_writeoptions_t* options) const { api->rocksdb_writeoptions_destroy(options); }
  };
  using WriteOptions = std::unique_ptr<braiddb_writeoptions_t, WriteOptionsDeleter>;
  struct OpenIterator {
    braiddb_iterator_t* iterator = nullptr;
    ReadOptions options{nullptr, {nullptr}};
    bool in_past = false;  // through a snapshot
  };
  struct OpenTransaction {
    braiddb_transaction_t* transaction = nullptr;
    bool named = false;
    bool ended = false;                                  // committed or rolled back
    std::set<std::pair<std::string, std::string>> keys;  // families and keys that it updates or locks
  };

  enum class Reads { kPoints, kIterator, kIteratorBelow };  // below: of a batch with an index, or a transaction

  // Arguments.
  Target PickFamily(Draw& draw);
  // One that is not dropped.
  Target PickLivingFamily(Draw& draw);
  Target Default() { return {&families_[0], true}; }
  std::string_view PickKey(Draw& draw);
  std::string PickValue(Draw& draw);
  // Two keys in the order of the database, or equal ones.
  std::pair<std::string_view, std::string_view> PickRange(Draw& draw);
  ReadOptions PickReadOptions(Draw& draw, Reads reads);
  WriteOptions PickWriteOptions(Draw& draw);
  // For a write to a family that may be dropped.
  WriteOptions PickWriteOptions(Draw& draw, const Target& target);
  ReadOptions PlainReadOptions() const { return {api_.rocksdb_readoptions_create(), {&api_}}; }
  WriteOptions PlainWriteOptions() const { return {api_.rocksdb_writeoptions_create(), {&api_}}; }
  void Say(std::string_view words);
  bool Mentions(const char* words) const { return call_.find(words) != std::string::npos; }

  // Results. Each frees what it is given.
  std::string TakeValue(char* value, size_t length, Error* error) const;
  std::string TakePinned(braiddb_pinnableslice_t* value, Error* error) const;
  std::string TakeValues(size_t count, char** values, const size_t* lengths, char** errors) const;
  std::string TellBatch(const char* data, size_t length) const;
  std::string Position(braiddb_iterator_t* iterator) const;
  std::string IteratorError(braiddb_iterator_t* iterator) const;

  // One movement of an iterator, or several.
  std::string Move(Draw& draw, braiddb_iterator_t* iterator);
  std::string Scan(braiddb_iterator_t* iterator) const;
  braiddb_iterator_t* NewIterator(const Target& target, braiddb_readoptions_t* options);
  // All keys of a family, forward and backward.
  std::string Content(const Target& target);

  std::string PutTo(const Target& target, braiddb_writeoptions_t* options, std::string_view key, std::string_view value);
  std::string DeleteFrom(const Target& target, braiddb_writeoptions_t* options, std::string_view key);

  braiddb_writebatch_t* PickBatch(Draw& draw);
  braiddb_writebatch_wi_t* PickIndexedBatch(Draw& draw);
  OpenTransaction* PickTransaction(Draw& draw);
  // Whether the database has all keys of the transaction: a deletion that was forgotten is no conflict (see KnownDifferences).
  std::string Presence(const OpenTransaction& transaction);
  void DestroyTransaction(OpenTransaction* transaction);

  // Opening and closing.
  braiddb_options_t* MakeOptions(bool reverse_order) const;
  std::string Open(Kind kind);
  std::string OpenFamilies(const std::string& path, const std::vector<std::string>& names, Kind kind);
  std::vector<std::string> ListFamilies(const std::string& path, std::string* result) const;
  // Opens a copy of the database and tells what it has. The database is closed meanwhile.
  std::string ContentOfCopy(const std::string& path);
  void EndBatches();
  void EndObjects();
  void Close();
  bool open() const { return db_ != nullptr || transaction_db_ != nullptr; }
  bool is(Kind kind) const { return kind_ == kind; }

  const Api& api_;
  const std::string directory_;  // the database is in it
  const std::string path_;
  const LifeOptions life_;
  braiddb_comparator_t* comparator_ = nullptr;
  braiddb_options_t* options_ = nullptr;

  Kind kind_ = Kind::kPlain;
  braiddb_t* db_ = nullptr;  // with kOptimistic: the base
  braiddb_transactiondb_t* transaction_db_ = nullptr;
  braiddb_optimistictransactiondb_t* optimistic_db_ = nullptr;
  std::vector<Family> families_;
  std::array<const braiddb_snapshot_t*, 2> snapshots_{};
  std::array<OpenIterator, 2> iterators_{};
  std::array<braiddb_writebatch_t*, 2> batches_{};
  std::array<braiddb_writebatch_wi_t*, 1> indexed_batches_{};
  std::array<OpenTransaction, 2> transactions_{};
  bool indexed_merges_ = false;  // a batch with an index has some
  // Keys that were put once since their last single deletion: RocksDB defines single deletions of these only.
  std::set<std::pair<std::string, std::string>> put_once_;
  bool has_ranges_ = false;    // ranges were deleted
  bool has_operands_ = false;  // keys were merged
  bool prepared_ = false;      // a transaction was: only databases with transactions may read the log (see KnownDifferences)
  int round_ = 0;              // of NewSequence, which deletes keys by other means
  int files_ = 0;
  std::string call_;
};

// The machine's operations, with how often they are drawn. Opens take a thousand times as long as other calls.
struct Operation {
  const char* name;
  unsigned weight;
  std::string (Machine::*run)(Draw&);
};
const std::vector<Operation>& Operations();

}  // namespace braiddb::test
