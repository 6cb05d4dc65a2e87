#include "reader.h"

#include <cstring>
#include <limits>

namespace braiddb::python {
namespace {

// Copies the value while the database holds it: small ones to a buffer of the call.
class Copy final : public ValueReceiver {
 public:
  bool Receive(Slice value) override {
    size_ = value.size();
    if (size_ <= sizeof(small_)) {
      std::memcpy(small_, value.data(), size_);
    } else {
      large_.assign(value);
    }
    return true;
  }
  Slice slice() const { return size_ <= sizeof(small_) ? Slice(small_, size_) : Slice(large_); }

 private:
  size_t size_ = 0;
  char small_[1024];
  std::string large_;
};

// A value that stays where it is, in persistent memory. Its buffer is exported to memoryviews.
class Pinned final : public Child {
 public:
  explicit Pinned(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Pinned() override {
    core_->Remove(this);
    if (core_->is_forked()) (void)new PinnableSlice(std::move(value));  // the parent's
  }
  void End() override { value.Reset(); }
  bool shows_memory() const override { return true; }

  PinnableSlice value;
  std::shared_ptr<Core> core_;
};

}  // namespace

SnapshotHold::SnapshotHold(std::shared_ptr<Core> core) : core_(std::move(core)) {
  {
    Use use(core_.get());
    snapshot_ = core_->db()->GetSnapshot();
    if (snapshot_ != nullptr) sequence_ = snapshot_->GetSequenceNumber();
  }
  core_->Add(this);
}

SnapshotHold::~SnapshotHold() { Release(); }

void SnapshotHold::EndRead() {
  if (--reads_ == 0 && is_released_) Release();
}

void SnapshotHold::Release() {
  is_released_ = true;
  if (snapshot_ == nullptr || reads_ > 0) return;
  core_->Remove(this);
  if (!core_->is_forked()) End();
  snapshot_ = nullptr;
}

void SnapshotHold::End() {
  if (snapshot_ != nullptr) core_->db()->ReleaseSnapshot(snapshot_);
  snapshot_ = nullptr;
}

const Snapshot* SnapshotHold::get() const {
  core_->RequireOpen();
  if (snapshot_ == nullptr || is_released_) RaiseClosed("the snapshot was released");
  return snapshot_;
}

TransactionHold::TransactionHold(std::shared_ptr<Core> core, std::unique_ptr<Transaction> transaction)
    : core_(std::move(core)), transaction_(std::move(transaction)) {
  core_->Add(this);
}

TransactionHold::~TransactionHold() {
  core_->Remove(this);
  if (core_->is_forked()) (void)transaction_.release();
}

void TransactionHold::End() { transaction_.reset(); }

Transaction* TransactionHold::get() const {
  core_->RequireOpen();
  if (transaction_ == nullptr) RaiseClosed("the transaction is over");
  mark_.Require();
  return transaction_.get();
}

Mark* Source::mark() const { return transaction == nullptr ? nullptr : transaction->mark(); }

ReadOptions Source::options() const {
  ReadOptions options;
  if (snapshot != nullptr) options.snapshot = snapshot->get();
  return options;
}

nb::object Get(const Source& source, nb::handle key, nb::handle missing) {
  const Bytes bytes(key);
  source.Try(bytes.slice());
  const ReadOptions options = source.options();
  const SnapshotRead read(source);
  Transaction* const transaction = source.transaction == nullptr ? nullptr : source.transaction->get();
  Status status;
  if (transaction != nullptr) {
    std::string value;
    {
      Use use(source.core.get(), source.mark());
      status = transaction->Get(options, source.family, bytes.slice(), &value);
    }
    if (status.ok()) return ToBytes(value);
  } else {
    Copy value;
    {
      Use use(source.core.get());
      status = source.core->db()->GetTo(options, source.family, bytes.slice(), &value);
    }
    if (status.ok()) return ToBytes(value.slice());
  }
  if (!status.IsNotFound()) Raise(status);
  return nb::borrow(missing);
}

bool Contains(const Source& source, nb::handle key) { return !Get(source, key, Py_None).is_none(); }

nb::list MultiGet(const Source& source, nb::iterable keys, nb::handle missing) {
  std::vector<Bytes> bytes;
  std::vector<nb::object> held;
  for (nb::handle key : keys) {
    held.push_back(nb::borrow(key));
    bytes.emplace_back(key);
    source.Try(bytes.back().slice());
  }
  std::vector<Slice> slices;
  slices.reserve(bytes.size());
  for (const Bytes& key : bytes) slices.push_back(key.slice());
  const std::vector<ColumnFamilyHandle*> families(slices.size(), source.family);
  std::vector<std::string> values;
  std::vector<Status> statuses;
  const ReadOptions options = source.options();
  const SnapshotRead read(source);
  Transaction* const transaction = source.transaction == nullptr ? nullptr : source.transaction->get();
  {
    Use use(source.core.get(), source.mark());
    statuses = transaction != nullptr ? transaction->MultiGet(options, families, slices, &values)
                                      : source.core->db()->MultiGet(options, families, slices, &values);
  }
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(slices.size()));
  if (list == nullptr) throw nb::python_error();
  nb::list result = nb::steal<nb::list>(list);
  for (size_t i = 0; i < slices.size(); ++i) {
    if (!statuses[i].ok() && !statuses[i].IsNotFound()) Raise(statuses[i]);
    const nb::object value = statuses[i].ok() ? ToBytes(values[i]) : nb::borrow(missing);
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), nb::object(value).release().ptr());
  }
  return result;
}

ColumnFamilyHandle* FindFamily(const Core& core, const std::string& name) {
  core.RequireOpen();
  for (const std::unique_ptr<ColumnFamilyHandle>& handle : core.handles) {
    if (handle->GetName() == name) return handle.get();
  }
  if (name == kDefaultColumnFamilyName) return core.db()->DefaultColumnFamily();
  Raise(Status::NotFound("there is no column family " + name));
}

namespace {

// Type slots are not checked by nanobind: an object of Class.__new__(Class) has no Class.
template <class Class>
Class* Self(PyObject* self) {
  if (nb::inst_ready(nb::handle(self))) return nb::inst_ptr<Class>(nb::handle(self));
  PyErr_SetString(PyExc_TypeError, "the object was not made by braiddb.open()");
  throw nb::python_error();
}

Table* TableOf(PyObject* self) { return Self<Table>(self); }

// db[key], db[key] = value, del db[key] and key in db go by type slots, which cost less than methods.
PyObject* Subscript(PyObject* self, PyObject* key) {
  try {
    nb::object value = Get(TableOf(self)->source, key, Py_NotImplemented);
    if (Use::RaiseKept()) return nullptr;
    if (value.ptr() != Py_NotImplemented) return value.release().ptr();
    PyErr_SetObject(PyExc_KeyError, key);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

int AssignSubscript(PyObject* self, PyObject* key, PyObject* value) {
  try {
    const Source& source = TableOf(self)->source;
    const Bytes key_bytes(key);
    source.Try(key_bytes.slice());
    if (value == nullptr) {
      // As a dict: a key that is not there is an error.
      if (!Contains(source, key)) {
        PyErr_SetObject(PyExc_KeyError, key);
        return -1;
      }
      Status status;
      {
        Use use(source.core.get());
        status = source.core->db()->Delete(WriteOptions(), source.family, key_bytes.slice());
      }
      Check(status);
      return Use::RaiseKept() ? -1 : 0;
    }
    const Bytes value_bytes(value);
    Status status;
    {
      Use use(source.core.get());
      status = source.core->db()->Put(WriteOptions(), source.family, key_bytes.slice(), value_bytes.slice());
    }
    Check(status);
    return Use::RaiseKept() ? -1 : 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return -1;
}

int IsIn(PyObject* self, PyObject* key) {
  try {
    const bool is_there = Contains(TableOf(self)->source, key);
    return Use::RaiseKept() ? -1 : is_there ? 1 : 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return -1;
}

PyType_Slot table_slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(Subscript)},
                             {Py_mp_ass_subscript, reinterpret_cast<void*>(AssignSubscript)},
                             {Py_sq_contains, reinterpret_cast<void*>(IsIn)},
                             {0, nullptr}};
PyType_Slot view_slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(Subscript)},
                            {Py_sq_contains, reinterpret_cast<void*>(IsIn)},
                            {0, nullptr}};

int ExportBuffer(PyObject* self, Py_buffer* buffer, int flags) {
  Pinned* const pinned = nb::inst_ready(nb::handle(self)) ? nb::inst_ptr<Pinned>(nb::handle(self)) : nullptr;
  if (pinned == nullptr || !pinned->core_->is_open()) {
    PyErr_SetString(PyExc_ValueError, "the database of this value is closed");
    buffer->obj = nullptr;
    return -1;
  }
  const Slice value = pinned->value.slice();
  const int result = PyBuffer_FillInfo(buffer, self, const_cast<char*>(value.data()), static_cast<Py_ssize_t>(value.size()), 1, flags);
  if (result == 0) ++pinned->core_->exports;
  return result;
}

void ReleaseBuffer(PyObject* self, Py_buffer*) { --nb::inst_ptr<Pinned>(nb::handle(self))->core_->exports; }

PyType_Slot pinned_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(ExportBuffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(ReleaseBuffer)},
                              {0, nullptr}};

// The number of keys, or `most` if there are more.
size_t Count(const Source& source, size_t most) {
  ReadOptions options = source.options();
  const SnapshotRead read(source);
  size_t count = 0;
  Status status;
  {
    Use use(source.core.get());
    const std::unique_ptr<Iterator> iterator = source.core->db()->NewIterator(options, source.family);
    for (iterator->SeekToFirst(); count < most && iterator->Valid(); iterator->Next()) ++count;
    status = iterator->status();
  }
  Check(status);
  return count;
}

template <class Class>
void DefineReads(Class& type) {
  type.def(
          "get", [](const Table& self, nb::handle key, nb::handle missing) { return Get(self.source, key, missing); }, nb::arg("key"),
          nb::arg("default") = nb::none(), "The value of `key`, or `default` if the key does not exist.")
      .def(
          "multi_get",
          [](const Table& self, nb::iterable keys, nb::handle missing) { return MultiGet(self.source, keys, missing); },
          nb::arg("keys"), nb::arg("default") = nb::none(), "The values of `keys` in one consistent view, as a list.")
      .def(
          "get_view",
          [](const Table& self, nb::handle key) -> nb::object {
            const Bytes bytes(key);
            self.source.Try(bytes.slice());
            auto pinned = std::make_unique<Pinned>(self.source.core);
            Status status;
            const ReadOptions options = self.source.options();
            const SnapshotRead read(self.source);
            {
              Use use(self.source.core.get());
              status = self.source.core->db()->Get(options, self.source.family, bytes.slice(), &pinned->value);
            }
            if (status.IsNotFound()) return nb::none();
            Check(status);
            self.source.core->Add(pinned.get());
            return nb::cast(pinned.release(), nb::rv_policy::take_ownership);
          },
          nb::arg("key"), "The value of `key` as a PinnedValue, which is not copied, or None.")
      .def(
          "items",
          [](const Table& self, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse, std::optional<int64_t> limit) {
            return Iterate(self.source, Shows::kItems, prefix, start, stop, reverse, limit);
          },
          nb::kw_only(), nb::arg("prefix") = nb::none(), nb::arg("start") = nb::none(), nb::arg("stop") = nb::none(),
          nb::arg("reverse") = false, nb::arg("limit") = nb::none(),
          "(key, value) pairs in order: of keys with `prefix`, from `start`, before `stop`, at most `limit`.")
      .def(
          "keys",
          [](const Table& self, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse, std::optional<int64_t> limit) {
            return Iterate(self.source, Shows::kKeys, prefix, start, stop, reverse, limit);
          },
          nb::kw_only(), nb::arg("prefix") = nb::none(), nb::arg("start") = nb::none(), nb::arg("stop") = nb::none(),
          nb::arg("reverse") = false, nb::arg("limit") = nb::none(), "Keys in order; parameters as of items().")
      .def(
          "values",
          [](const Table& self, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse, std::optional<int64_t> limit) {
            return Iterate(self.source, Shows::kValues, prefix, start, stop, reverse, limit);
          },
          nb::kw_only(), nb::arg("prefix") = nb::none(), nb::arg("start") = nb::none(), nb::arg("stop") = nb::none(),
          nb::arg("reverse") = false, nb::arg("limit") = nb::none(), "Values in the order of their keys; parameters as of items().")
      .def("__iter__", [](const Table& self) {
        return Iterate(self.source, Shows::kKeys, nb::none(), nb::none(), nb::none(), false, std::nullopt);
      })
      .def("__reversed__", [](const Table& self) {
        return Iterate(self.source, Shows::kKeys, nb::none(), nb::none(), nb::none(), true, std::nullopt);
      })
      .def("__len__", [](const Table& self) { return Count(self.source, std::numeric_limits<size_t>::max()); },
           "The number of keys. Walks over all of them.")
      .def("__bool__", [](const Table& self) { return Count(self.source, 1) > 0; }, "Whether there is a key.");
}

}  // namespace

void DefineReaders(nb::module_& module) {
  nb::class_<Pinned>(module, "PinnedValue", nb::type_slots(pinned_slots),
                     "A value in persistent memory, for memoryview(). Its space is not reused while the object lives. The database "
                     "cannot be closed while a view exists.")
      .def("__len__", [](const Pinned& self) { return self.value.size(); })
      .def("__bytes__", [](const Pinned& self) {
        self.core_->RequireOpen();
        return ToBytes(self.value.slice());
      });
  nb::class_<Table> table(module, "Table", nb::type_slots(view_slots), "The keys of one column family.");
  DefineReads(table);
  nb::class_<Database, Table>(module, "Database", nb::type_slots(table_slots), nb::is_weak_referenceable(),
                              "An open database; use braiddb.open(). As a mapping it has the keys of the default column family.");
  nb::class_<Family, Table>(module, "ColumnFamily", nb::type_slots(table_slots), "A column family of a database, as a mapping.");
  nb::class_<SnapshotView, Table>(module, "Snapshot", "What a database held when the snapshot was made.")
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](SnapshotView& self, nb::args) { self.source.snapshot->Release(); })
      .def("release", [](SnapshotView& self) { self.source.snapshot->Release(); }, "Releases the snapshot. Idempotent.")
      .def("family",
           [](const SnapshotView& self, const std::string& name) {
             SnapshotView view = self;
             view.source.family = FindFamily(*self.source.core, name);
             return view;
           },
           nb::arg("name"), "The same snapshot of another column family.")
      .def_prop_ro("sequence", [](const SnapshotView& self) { return self.source.snapshot->sequence(); },
                   "The sequence number of the newest write that the snapshot shows.");
}

}  // namespace braiddb::python
