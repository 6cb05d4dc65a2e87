#include "core.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace braiddb::python {
namespace {

struct ErrorClass {
  const char* name;
  const char* base;  // of builtins
};

// By Status::Code.
constexpr std::array<ErrorClass, 14> kErrors = {{
    {"Error", nullptr},
    {"NotFoundError", "KeyError"},
    {"CorruptionError", nullptr},
    {"NotSupportedError", nullptr},
    {"InvalidArgumentError", "ValueError"},
    {"IOError", "OSError"},
    {"BusyError", nullptr},
    {"NoSpaceError", nullptr},
    {"ReadOnlyError", nullptr},
    {"AbortedError", nullptr},
    {"MemoryLimitError", "MemoryError"},
    {"TimedOutError", "TimeoutError"},
    {"ExpiredError", nullptr},
    {"IncompleteError", nullptr},
}};

// Borrowed for ever: an error may be raised while the interpreter ends.
std::array<PyObject*, 14> error_classes{};
PyObject* closed_error = nullptr;

// Guarded by the GIL.
unsigned long main_thread = 0;
uint32_t outside_uses = 0;
bool is_ending = false;

// A close under way, for which the end of the interpreter waits.
struct Ending {
  Ending() { ++outside_uses; }
  ~Ending() { --outside_uses; }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
};

std::unordered_set<Core*>& Cores() {
  static auto* const cores = new std::unordered_set<Core*>;
  return *cores;
}

}  // namespace

void Raise(const Status& status) {
  const auto code = static_cast<size_t>(status.code());
  PyErr_SetString(error_classes[code < error_classes.size() ? code : 0], std::string(status.message()).c_str());
  throw nb::python_error();
}

void Check(const Status& status) {
  if (!status.ok()) Raise(status);
}

void RaiseClosed(const char* what) {
  PyErr_SetString(closed_error, what);
  throw nb::python_error();
}

Bytes::Bytes(nb::handle object) {
  if (PyBytes_CheckExact(object.ptr())) {
    slice_ = Slice(PyBytes_AS_STRING(object.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(object.ptr())));
    return;
  }
  if (PyUnicode_Check(object.ptr())) {
    PyErr_SetString(PyExc_TypeError, "keys and values are bytes, not str: encode the text first");
    throw nb::python_error();
  }
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  slice_ = Slice(static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len));
}

nb::object ToBytes(Slice value) {
  PyObject* const bytes = PyBytes_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
  if (bytes == nullptr) throw nb::python_error();
  return nb::steal(bytes);
}

std::string PathOf(nb::handle path) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw nb::python_error();  // also if there is a NUL
  const nb::object bytes = nb::steal(encoded);
  return std::string(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
}

thread_local Use* Use::top = nullptr;

void Use::Defer(nb::python_error error) {
  Use* outermost = top;
  while (outermost != nullptr && outermost->below_ != nullptr) outermost = outermost->below_;
  if (outermost == nullptr || outermost->deferred_.has_value() || PyThread_get_thread_ident() != main_thread) {
    error.discard_as_unraisable("a comparator or a merge operator of braiddb");
    return;
  }
  outermost->deferred_.emplace(std::move(error));
}

void Use::RaiseSoon(nb::python_error error) {
  auto kept = std::make_unique<nb::python_error>(std::move(error));
  const auto raise = [](void* given) {
    const std::unique_ptr<nb::python_error> deferred(static_cast<nb::python_error*>(given));
    deferred->restore();
    return -1;
  };
  if (Py_AddPendingCall(raise, kept.get()) == 0) {
    (void)kept.release();
  } else {
    kept->discard_as_unraisable("a call of braiddb");
  }
}

OutsideUse::OutsideUse() {
  if (is_ending) RaiseClosed("the interpreter ends");
  ++outside_uses;
  thread_ = PyEval_SaveThread();
}

OutsideUse::~OutsideUse() {
  PyEval_RestoreThread(thread_);
  --outside_uses;
}

void RaiseBusy(const char* what) {
  PyErr_Format(PyExc_RuntimeError, "another call of %s is under way; give each thread its own", what);
  throw nb::python_error();
}

void Core::TryInOrder(const ColumnFamilyHandle* family, Slice key) const {
  RequireOpen();
  const auto order = orders.find(family);
  if (order != orders.end()) order->second->Try(key);
}

Status Core::Close() {
  if (is_closed_) return Status::OK();
  if (Use::IsInside(this)) return Status::Busy("the database is closed inside one of its calls, which the close would wait for");
  is_closed_ = true;
  Unregister(this);
  const Ending ending;
  if (is_forked_) {
    // The database is the parent's.
    (void)db_.release();
    for (auto* list : {&handles, &dropped}) {
      for (std::unique_ptr<ColumnFamilyHandle>& handle : *list) (void)handle.release();
    }
    return Status::OK();
  }
  PyThreadState* thread = PyEval_SaveThread();
  while (uses_.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(thread);
  // With the GIL: another thread may be about to free the Python object of a child.
  for (Child* child : children_) child->End();
  children_.clear();
  // Without: background threads that end may call Python.
  thread = PyEval_SaveThread();
  Status status;
  handles.clear();
  dropped.clear();
  if (db_ != nullptr) status = db_->Close();
  db_.reset();
  PyEval_RestoreThread(thread);
  pessimistic = nullptr;
  optimistic = nullptr;
  ttl = nullptr;
  orders.clear();
  comparators.clear();
  kept.clear();
  return status;
}

// With Python functions the database is closed in any case: its threads must not call Python when the interpreter has ended.
void Core::End() {
  if (exports == 0 || !kept.empty() || !is_open()) {
    (void)Close();
    return;
  }
  {
    const Use use(this);
    (void)db_->Flush();
  }
  is_closed_ = true;
  Unregister(this);
  PyThreadState* const thread = PyEval_SaveThread();
  while (uses_.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(thread);
  for (Child* child : std::vector<Child*>(children_.begin(), children_.end())) {
    if (child->shows_memory()) continue;
    child->End();
    children_.erase(child);
  }
  for (auto* list : {&handles, &dropped}) {
    for (std::unique_ptr<ColumnFamilyHandle>& handle : *list) (void)handle.release();
  }
  (void)db_.release();
}

void Register(Core* core) { Cores().insert(core); }
void Unregister(Core* core) { Cores().erase(core); }

void CloseAll() {
  is_ending = true;
  // What another thread opens or closes meanwhile ends first.
  while (outside_uses != 0 || !Cores().empty()) {
    if (!Cores().empty()) {
      (*Cores().begin())->End();
      continue;
    }
    PyThreadState* const thread = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    PyEval_RestoreThread(thread);
  }
}

void NoteMainThread() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

void MarkAllForked() {
  main_thread = PyThread_get_thread_ident();  // the thread that called fork(2) is the only one
  for (Core* core : Cores()) core->MarkForked();
}

void DefineErrors(nb::module_& module) {
  const nb::object builtins = nb::module_::import_("builtins");
  const auto make = [&](const char* name, const nb::object& bases, const char* text) {
    const std::string full = std::string("braiddb.") + name;
    PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), text, bases.ptr(), nullptr);
    if (made == nullptr) throw nb::python_error();
    module.attr(name) = nb::borrow(made);
    return made;
  };
  error_classes[0] = make("Error", nb::borrow(PyExc_Exception), "The base of all errors of the database.");
  const nb::object base = nb::borrow(error_classes[0]);
  for (size_t i = 1; i < kErrors.size(); ++i) {
    const nb::object bases = kErrors[i].base == nullptr ? base : nb::object(nb::make_tuple(base, builtins.attr(kErrors[i].base)));
    error_classes[i] = make(kErrors[i].name, bases, "Raised where the library returns the status of this name.");
  }
  closed_error = make("ClosedError", nb::make_tuple(base, builtins.attr("ValueError")),
                      "The database, or what was made by it, is closed.");
}

}  // namespace braiddb::python
