// Writes, batches, transactions, and what concerns a whole database.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>

#include "braiddb/backup.h"
#include "callbacks.h"
#include "reader.h"

namespace braiddb::python {
namespace {

using FamilyName = std::optional<std::string>;

template <class Call>
void Run(const Source& source, const Call& call) {
  Status status;
  {
    Use use(source.core.get(), source.mark());
    status = call();
  }
  Check(status);
}

WriteOptions Write(bool sync) {
  WriteOptions options;
  options.sync = sync;
  return options;
}

// Updates that are written together. Names of families are looked up when they are added.
struct Batch {
  Source source;
  WriteBatch batch;
  bool sync = true;
  Mark mark{false, "the batch"};

  const ColumnFamilyHandle* Of(const FamilyName& family) const {
    source.core->RequireOpen();
    mark.Require();
    return family.has_value() ? FindFamily(*source.core, *family) : source.family;
  }
  // The family of an update, whose keys must suit its comparator.
  const ColumnFamilyHandle* Of(const FamilyName& family, std::initializer_list<Slice> keys) const {
    const ColumnFamilyHandle* const of = Of(family);
    for (const Slice key : keys) source.core->Try(of, key);
    return of;
  }
  void Commit() {
    Status status;
    {
      Use use(source.core.get(), &mark);
      status = source.core->db()->Write(Write(sync), batch);
    }
    Check(status);
    batch.Clear();
  }
  void Clear() {
    mark.Require();
    batch.Clear();
  }
};

struct PythonTransaction {
  Source source;

  ColumnFamilyHandle* Of(const FamilyName& family) const {
    source.core->RequireOpen();
    return family.has_value() ? FindFamily(*source.core, *family) : source.family;
  }
  ColumnFamilyHandle* Of(const FamilyName& family, Slice key) const {
    ColumnFamilyHandle* const of = Of(family);
    source.core->Try(of, key);
    return of;
  }
  Source In(const FamilyName& family) const {
    Source in = source;
    in.family = Of(family);
    return in;
  }
  Transaction* get() const { return source.transaction->get(); }
};

// Deletes the keys of one view. Transactions have no locks for ranges, so with them each key is deleted.
Status Clear(const Source& source) {
  constexpr uint32_t kKeysPerBatch = 4096;
  DB* const db = source.core->db();
  const bool has_ranges = source.core->pessimistic == nullptr && source.core->optimistic == nullptr;
  const std::unique_ptr<Iterator> iterator = db->NewIterator(ReadOptions(), source.family);
  WriteBatch batch;
  Status status;
  if (has_ranges) {
    iterator->SeekToFirst();
    if (!iterator->Valid()) return iterator->status();
    const std::string first(iterator->key());
    iterator->SeekToLast();
    if (!iterator->Valid()) return iterator->status();
    batch.DeleteRange(source.family, first, iterator->key());
    batch.Delete(source.family, iterator->key());
    return db->Write(WriteOptions(), batch);
  }
  for (iterator->SeekToFirst(); status.ok() && iterator->Valid(); iterator->Next()) {
    batch.Delete(source.family, iterator->key());
    if (batch.Count() < kKeysPerBatch) continue;
    status = db->Write(WriteOptions(), batch);
    batch.Clear();
  }
  if (status.ok()) status = iterator->status();
  return status.ok() && batch.Count() > 0 ? db->Write(WriteOptions(), batch) : status;
}

template <class Class>
void DefineWrites(Class& type) {
  type.def(
          "put",
          [](const Table& self, nb::handle key, nb::handle value, bool sync) {
            const Bytes key_bytes(key), value_bytes(value);
            self.source.Try(key_bytes.slice());
            Run(self.source, [&] {
              return self.source.core->db()->Put(Write(sync), self.source.family, key_bytes.slice(), value_bytes.slice());
            });
          },
          nb::arg("key"), nb::arg("value"), nb::kw_only(), nb::arg("sync") = true,
          "Writes the value of `key`. Durable when it returns; on an ordinary file system only with `sync`.")
      .def(
          "delete",
          [](const Table& self, nb::handle key, bool sync) {
            const Bytes key_bytes(key);
            self.source.Try(key_bytes.slice());
            Run(self.source, [&] { return self.source.core->db()->Delete(Write(sync), self.source.family, key_bytes.slice()); });
          },
          nb::arg("key"), nb::kw_only(), nb::arg("sync") = true, "Deletes `key`. A key that does not exist is no error.")
      .def(
          "merge",
          [](const Table& self, nb::handle key, nb::handle operand, bool sync) {
            const Bytes key_bytes(key), operand_bytes(operand);
            self.source.Try(key_bytes.slice());
            Run(self.source, [&] {
              return self.source.core->db()->Merge(Write(sync), self.source.family, key_bytes.slice(), operand_bytes.slice());
            });
          },
          nb::arg("key"), nb::arg("operand"), nb::kw_only(), nb::arg("sync") = true,
          "Writes an operand for the family's merge operator, without reading the key.")
      .def(
          "delete_range",
          [](const Table& self, nb::handle start, nb::handle stop) {
            const Bytes start_bytes(start), stop_bytes(stop);
            self.source.Try(start_bytes.slice());
            self.source.Try(stop_bytes.slice());
            Run(self.source, [&] {
              return self.source.core->db()->DeleteRange(WriteOptions(), self.source.family, start_bytes.slice(), stop_bytes.slice());
            });
          },
          nb::arg("start"), nb::arg("stop"), "Deletes all keys from `start`, before `stop`, by one small write.")
      .def("clear", [](const Table& self) { Run(self.source, [&] { return Clear(self.source); }); },
           "Deletes the keys that there are: by one small write, or with transactions by batches of deletions.")
      .def(
          "compact",
          [](const Table& self, nb::handle start, nb::handle stop) {
            std::optional<Bytes> from, to;
            if (!start.is_none()) from.emplace(start);
            if (!stop.is_none()) to.emplace(stop);
            for (const std::optional<Bytes>* bound : {&from, &to}) {
              if (bound->has_value()) self.source.Try((*bound)->slice());
            }
            Slice begin = from.has_value() ? from->slice() : Slice(), end = to.has_value() ? to->slice() : Slice();
            Run(self.source, [&] {
              return self.source.core->db()->CompactRange(CompactRangeOptions(), self.source.family,
                                                          from.has_value() ? &begin : nullptr, to.has_value() ? &end : nullptr);
            });
          },
          nb::arg("start") = nb::none(), nb::arg("stop") = nb::none(), "Merges everything into the last level.")
      .def(
          "property",
          [](const Table& self, const std::string& name) -> nb::object {
            std::string value;
            bool found = false;
            {
              Use use(self.source.core.get());
              found = self.source.core->db()->GetProperty(self.source.family,
                                                          name.starts_with("braiddb.") ? name : "braiddb." + name, &value);
            }
            if (!found) return nb::none();
            return nb::str(value.data(), value.size());
          },
          nb::arg("name"), "The text of a property, such as \"stats\" or \"num-l0-tables\", or None.")
      .def(
          "batch",
          [](const Table& self, bool sync) {
            Batch batch;
            batch.source = self.source;
            batch.sync = sync;
            return batch;
          },
          nb::kw_only(), nb::arg("sync") = true,
          "A batch of updates: all become durable and visible together, when the `with` block ends without an exception.")
      .def(
          "snapshot",
          [](const Table& self) {
            SnapshotView view;
            view.source = self.source;
            view.source.snapshot = std::make_shared<SnapshotHold>(self.source.core);
            return view;
          },
          "An immutable view of the database.");
}

void DefineBatch(nb::module_& module) {
  nb::class_<Batch>(module, "Batch", "Updates that are written together.")
      .def(
          "put",
          [](Batch& self, nb::handle key, nb::handle value, const FamilyName& family) {
            const Bytes key_bytes(key), value_bytes(value);
            self.batch.Put(self.Of(family, {key_bytes.slice()}), key_bytes.slice(), value_bytes.slice());
          },
          nb::arg("key"), nb::arg("value"), nb::arg("family") = nb::none())
      .def(
          "delete",
          [](Batch& self, nb::handle key, const FamilyName& family) {
            const Bytes bytes(key);
            self.batch.Delete(self.Of(family, {bytes.slice()}), bytes.slice());
          },
          nb::arg("key"), nb::arg("family") = nb::none())
      .def(
          "merge",
          [](Batch& self, nb::handle key, nb::handle operand, const FamilyName& family) {
            const Bytes key_bytes(key), operand_bytes(operand);
            self.batch.Merge(self.Of(family, {key_bytes.slice()}), key_bytes.slice(), operand_bytes.slice());
          },
          nb::arg("key"), nb::arg("operand"), nb::arg("family") = nb::none())
      .def(
          "delete_range",
          [](Batch& self, nb::handle start, nb::handle stop, const FamilyName& family) {
            const Bytes first(start), last(stop);
            self.batch.DeleteRange(self.Of(family, {first.slice(), last.slice()}), first.slice(), last.slice());
          },
          nb::arg("start"), nb::arg("stop"), nb::arg("family") = nb::none())
      .def("write", &Batch::Commit, "Writes the updates and empties the batch.")
      .def("clear", [](Batch& self) { self.Clear(); }, "Forgets the updates.")
      .def("__len__", [](const Batch& self) { return self.batch.Count(); })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Batch& self, nb::handle type, nb::handle, nb::handle) {
        if (type.is_none()) {
          self.Commit();
        } else {
          self.Clear();
        }
      }, nb::arg().none(), nb::arg().none(), nb::arg().none());
}

void DefineTransaction(nb::module_& module) {
  nb::class_<PythonTransaction>(module, "Transaction",
                                "A unit of work: its updates become durable and visible together at commit(), or never.")
      .def(
          "get",
          [](const PythonTransaction& self, nb::handle key, nb::handle missing, const FamilyName& family) {
            return Get(self.In(family), key, missing);
          },
          nb::arg("key"), nb::arg("default") = nb::none(), nb::arg("family") = nb::none())
      .def(
          "get_for_update",
          [](const PythonTransaction& self, nb::handle key, nb::handle missing, const FamilyName& family,
             bool exclusive) -> nb::object {
            const Bytes bytes(key);
            const ReadOptions options = self.source.options();
            ColumnFamilyHandle* const handle = self.Of(family, bytes.slice());
            Transaction* const transaction = self.get();
            std::string value;
            Status status;
            {
              Use use(self.source.core.get(), self.source.mark());
              status = transaction->GetForUpdate(options, handle, bytes.slice(), &value, exclusive);
            }
            if (status.IsNotFound()) return nb::borrow(missing);
            Check(status);
            return ToBytes(value);
          },
          nb::arg("key"), nb::arg("default") = nb::none(), nb::arg("family") = nb::none(), nb::kw_only(), nb::arg("exclusive") = true,
          "Reads `key` and protects it: no other write comes between this read and the commit.")
      .def(
          "put",
          [](const PythonTransaction& self, nb::handle key, nb::handle value, const FamilyName& family) {
            const Bytes key_bytes(key), value_bytes(value);
            ColumnFamilyHandle* const handle = self.Of(family, key_bytes.slice());
            Transaction* const transaction = self.get();
            Run(self.source, [&] { return transaction->Put(handle, key_bytes.slice(), value_bytes.slice()); });
          },
          nb::arg("key"), nb::arg("value"), nb::arg("family") = nb::none())
      .def(
          "delete",
          [](const PythonTransaction& self, nb::handle key, const FamilyName& family) {
            const Bytes key_bytes(key);
            ColumnFamilyHandle* const handle = self.Of(family, key_bytes.slice());
            Transaction* const transaction = self.get();
            Run(self.source, [&] { return transaction->Delete(handle, key_bytes.slice()); });
          },
          nb::arg("key"), nb::arg("family") = nb::none())
      .def(
          "merge",
          [](const PythonTransaction& self, nb::handle key, nb::handle operand, const FamilyName& family) {
            const Bytes key_bytes(key), operand_bytes(operand);
            ColumnFamilyHandle* const handle = self.Of(family, key_bytes.slice());
            Transaction* const transaction = self.get();
            Run(self.source, [&] { return transaction->Merge(handle, key_bytes.slice(), operand_bytes.slice()); });
          },
          nb::arg("key"), nb::arg("operand"), nb::arg("family") = nb::none())
      .def(
          "multi_get",
          [](const PythonTransaction& self, nb::iterable keys, nb::handle missing, const FamilyName& family) {
            return MultiGet(self.In(family), keys, missing);
          },
          nb::arg("keys"), nb::arg("default") = nb::none(), nb::arg("family") = nb::none())
      .def(
          "items",
          [](const PythonTransaction& self, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse,
             std::optional<int64_t> limit, const FamilyName& family) {
            return Iterate(self.In(family), Shows::kItems, prefix, start, stop, reverse, limit);
          },
          nb::kw_only(), nb::arg("prefix") = nb::none(), nb::arg("start") = nb::none(), nb::arg("stop") = nb::none(),
          nb::arg("reverse") = false, nb::arg("limit") = nb::none(), nb::arg("family") = nb::none(),
          "The database with the updates of this transaction.")
      .def("set_snapshot", [](const PythonTransaction& self) {
        Transaction* const transaction = self.get();
        Run(self.source, [&] { return transaction->SetSnapshot(), Status::OK(); });
      }, "From now on a key that somebody else has written since is a conflict.")
      .def("set_savepoint", [](const PythonTransaction& self) { self.get()->SetSavePoint(); })
      .def("rollback_to_savepoint", [](const PythonTransaction& self) {
        Transaction* const transaction = self.get();
        Run(self.source, [&] { return transaction->RollbackToSavePoint(); });
      })
      .def("set_name", [](const PythonTransaction& self, const std::string& name) { Check(self.get()->SetName(name)); }, nb::arg("name"))
      .def_prop_ro("name", [](const PythonTransaction& self) { return self.get()->GetName(); })
      .def("prepare", [](const PythonTransaction& self) {
        Transaction* const transaction = self.get();
        Run(self.source, [&] { return transaction->Prepare(); });
      }, "Makes the updates durable. Then only commit() or rollback() ends the transaction, also after a crash.")
      .def("commit", [](const PythonTransaction& self) {
        Transaction* const transaction = self.get();
        Run(self.source, [&] { return transaction->Commit(); });
      })
      .def("rollback", [](const PythonTransaction& self) {
        Transaction* const transaction = self.get();
        Run(self.source, [&] { return transaction->Rollback(); });
      })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](const PythonTransaction& self, nb::handle type, nb::handle, nb::handle) {
        Transaction* const transaction = self.get();
        const TransactionState state = transaction->GetState();
        if (state == TransactionState::kCommitted || state == TransactionState::kRolledBack) return;
        Status status;
        const bool fails = !type.is_none();
        {
          Use use(self.source.core.get(), self.source.mark());
          status = fails ? transaction->Rollback() : transaction->Commit();
          if (!fails && !status.ok()) (void)transaction->Rollback();
        }
        Check(status);
      }, nb::arg().none(), nb::arg().none(), nb::arg().none());
}

Family MakeFamily(const Database& self, const std::string& name) {
  Family family;
  family.source.core = self.source.core;
  family.source.family = FindFamily(*self.source.core, name);
  return family;
}

constexpr double kMostSeconds = 1e12;

// Looks for signals now and then.
std::optional<uint64_t> WaitForUpdate(const Database& self, uint64_t after, std::optional<double> timeout) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kLongestSleep{0.1};
  if (timeout.has_value() && !(*timeout >= 0 && *timeout <= kMostSeconds))
    Raise(Status::InvalidArgument("timeout is no number of seconds"));
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const Seconds left = Seconds(timeout.value_or(kMostSeconds)) - (std::chrono::steady_clock::now() - begin);
    uint64_t latest = 0;
    Status status;
    {
      Use use(self.source.core.get());
      const auto sleep = std::chrono::duration_cast<std::chrono::microseconds>(std::clamp(left, Seconds(0), kLongestSleep));
      status = self.source.core->db()->WaitForUpdate(after, sleep, &latest);
    }
    if (status.ok()) return latest;
    if (!status.IsTimedOut()) Check(status);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left <= Seconds(0)) return std::nullopt;
  }
}

}  // namespace

void DefineWriters(nb::module_& module) {
  auto database = nb::borrow<nb::class_<Database, Table>>(module.attr("Database"));
  auto family = nb::borrow<nb::class_<Family, Table>>(module.attr("ColumnFamily"));
  DefineBatch(module);
  DefineTransaction(module);
  DefineWrites(database);
  DefineWrites(family);
  family.def_prop_ro("name", [](const Family& self) {
    self.source.core->RequireOpen();
    return self.source.family->GetName();
  });
  database
      .def("close", [](Database& self) {
        if (self.source.core->is_open() && self.source.core->exports > 0) {
          PyErr_SetString(PyExc_BufferError, "memoryviews of values exist; release them before the database is closed");
          throw nb::python_error();
        }
        Check(self.source.core->Close());
      }, "Closes the database, its iterators, snapshots and transactions. Idempotent.")
      .def_prop_ro("closed", [](const Database& self) { return !self.source.core->is_open(); })
      .def_prop_ro("path", [](const Database& self) {
        self.source.core->RequireOpen();
        const std::string& path = self.source.core->db()->GetName();
        return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
      })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](nb::object self, nb::args) { self.attr("close")(); })
      .def("family", &MakeFamily, nb::arg("name"), "The column family of that name.")
      .def_prop_ro("families", [](const Database& self) {
        self.source.core->RequireOpen();
        nb::list names;
        names.append(kDefaultColumnFamilyName);
        for (const auto& handle : self.source.core->handles) {
          if (handle->GetName() != kDefaultColumnFamilyName) names.append(handle->GetName());
        }
        return names;
      })
      .def(
          "create_family",
          [](const Database& self, const std::string& name, nb::handle comparator, nb::handle merge_operator) {
            Core* const core = self.source.core.get();
            core->RequireOpen();
            // As open() takes a family that is not named there.
            ColumnFamilyOptions options(core->db()->GetOptions());
            options.comparator = BytewiseComparator();
            options.merge_operator = nullptr;
            std::shared_ptr<const Comparator> own;
            if (!comparator.is_none()) options.comparator = (own = MakeComparator(core, comparator)).get();
            if (!merge_operator.is_none()) options.merge_operator = MakeMergeOperator(core, merge_operator);
            std::unique_ptr<ColumnFamilyHandle> handle;
            Run(self.source, [&] { return core->db()->CreateColumnFamily(options, name, &handle); });
            if (const PythonOrder* const order = OrderOf(options.comparator)) core->orders[handle.get()] = order;
            core->handles.push_back(std::move(handle));
            return MakeFamily(self, name);
          },
          nb::arg("name"), nb::kw_only(), nb::arg("comparator") = nb::none(), nb::arg("merge_operator") = nb::none())
      .def(
          "drop_family",
          [](const Database& self, const std::string& name) {
            ColumnFamilyHandle* const handle = FindFamily(*self.source.core, name);
            Run(self.source, [&] { return self.source.core->db()->DropColumnFamily(handle); });
            auto& handles = self.source.core->handles;
            for (auto it = handles.begin(); it != handles.end(); ++it) {
              if (it->get() != handle) continue;
              self.source.core->dropped.push_back(std::move(*it));
              handles.erase(it);
              break;
            }
          },
          nb::arg("name"))
      .def(
          "transaction",
          [](const Database& self, std::optional<double> lock_timeout, bool snapshot) {
            Core* const core = self.source.core.get();
            std::unique_ptr<Transaction> made;
            core->RequireOpen();
            if (core->pessimistic == nullptr && core->optimistic == nullptr) {
              Raise(Status::NotSupported("the database was opened without transactions: braiddb.open(..., transactions=True)"));
            }
            TransactionOptions options;
            options.set_snapshot = snapshot;
            options.deadlock_detect = true;
            if (lock_timeout.has_value() && !(*lock_timeout >= -kMostSeconds && *lock_timeout <= kMostSeconds)) {
              Raise(Status::InvalidArgument("lock_timeout is no number of seconds"));
            }
            if (lock_timeout.has_value()) options.lock_timeout_ms = static_cast<int64_t>(*lock_timeout * 1000);
            {
              Use use(core);
              made = core->pessimistic != nullptr
                         ? core->pessimistic->BeginTransaction(WriteOptions(), options)
                         : core->optimistic->BeginTransaction(WriteOptions(), OptimisticTransactionOptions{snapshot});
            }
            PythonTransaction transaction;
            transaction.source = self.source;
            transaction.source.transaction = std::make_shared<TransactionHold>(self.source.core, std::move(made));
            return transaction;
          },
          nb::kw_only(), nb::arg("lock_timeout") = nb::none(), nb::arg("snapshot") = false,
          "Begins a transaction; as a context manager it commits, or rolls back on an exception. `lock_timeout`: seconds.")
      .def("prepared_transactions", [](const Database& self) {
        Core* const core = self.source.core.get();
        core->RequireOpen();
        if (core->pessimistic == nullptr)
          Raise(Status::NotSupported("the database was opened without transactions: braiddb.open(..., transactions=True)"));
        std::vector<std::unique_ptr<Transaction>> found;
        {
          Use use(core);
          core->pessimistic->GetAllPreparedTransactions(&found);
        }
        nb::list result;
        for (std::unique_ptr<Transaction>& each : found) {
          PythonTransaction transaction;
          transaction.source = self.source;
          transaction.source.transaction = std::make_shared<TransactionHold>(self.source.core, std::move(each));
          result.append(nb::cast(std::move(transaction)));
        }
        return result;
      }, "The transactions that were prepared before this open and are not ended. commit() or rollback() ends each of them.")
      .def("flush", [](const Database& self) { Run(self.source, [&] { return self.source.core->db()->Flush(); }); },
           "Moves the memtable into level 0.")
      .def("wait_for_compaction",
           [](const Database& self) { Run(self.source, [&] { return self.source.core->db()->WaitForCompaction(); }); })
      .def("wait_for_update", &WaitForUpdate, nb::arg("after") = 0, nb::arg("timeout") = nb::none(),
           "Sleeps until there is a write with a larger sequence number than `after`, also in another process that this one reads "
           "beside; at most `timeout` seconds, or without limit. Returns a number up to which all writes are visible, for the next "
           "call, or None if no write came. Begin with 0.")
      .def("refresh", [](const Database& self) { Run(self.source, [&] { return self.source.core->db()->Refresh(); }); },
           "Shows the newest state: a reader beside another process attaches to the process that writes now.")
      .def("catch_up", [](const Database& self) { Run(self.source, [&] { return self.source.core->db()->TryCatchUpWithPrimary(); }); },
           "Of a secondary: shows everything that the primary has acknowledged.")
      .def("statistics", [](const Database& self) {
        std::string text;
        {
          Use use(self.source.core.get());
          text = self.source.core->db()->GetStatistics().ToString();
        }
        return text;
      }, "Counters of the database as text.")
      .def_prop_ro("latest_sequence", [](const Database& self) {
        self.source.core->RequireOpen();
        return self.source.core->db()->GetLatestSequenceNumber();
      })
      .def(
          "checkpoint",
          [](const Database& self, nb::handle place) {
            const std::string path = PathOf(place);
            Run(self.source, [&] { return CreateCheckpoint(self.source.core->db(), path); });
          },
          nb::arg("path"), "Makes a copy of the database that can be opened, while writing goes on.")
      .def(
          "backup",
          [](const Database& self, nb::handle place) {
            const std::string directory = PathOf(place);
            uint32_t id = 0;
            Run(self.source, [&] {
              std::unique_ptr<BackupEngine> engine;
              Status status = BackupEngine::Open(directory, &engine);
              return status.ok() ? engine->CreateBackup(self.source.core->db(), {}, &id) : status;
            });
            return id;
          },
          nb::arg("directory"), "Makes a backup in `directory` and returns its number.")
      .def(
          "ingest",
          [](const Database& self, const std::vector<nb::object>& paths) {
            std::vector<std::string> files;
            for (const nb::object& path : paths) files.push_back(PathOf(path));
            Run(self.source, [&] { return IngestExternalFiles(self.source.core->db(), files); });
          },
          nb::arg("files"), "Takes in sorted files.");
}

}  // namespace braiddb::python
