#include "core.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
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
nb::python_error* kept_error = nullptr;  // owned; to be raised in the main thread
uint32_t outside_uses = 0;
bool is_ending = false;

std::unordered_set<Core*>& Cores() {
  static auto* const cores = new std::unordered_set<Core*>;
  return *cores;
}

}  // namespace

// A message may have a path, which need not be UTF-8.
void Raise(const Status& status) {
  const auto code = static_cast<size_t>(status.code());
  const std::string_view message = status.message();
  const nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text.is_valid()) PyErr_SetObject(error_classes[code < error_classes.size() ? code : 0], text.ptr());
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
  if (outermost != nullptr && PyThread_get_thread_ident() == main_thread) {
    std::optional<nb::python_error>& kept = outermost->deferred_;
    const bool wins = !kept.has_value() || (kept->matches(PyExc_Exception) && !error.matches(PyExc_Exception));
    if (!kept.has_value()) {
      kept.emplace(std::move(error));
      return;
    }
    if (wins) {
      nb::python_error lost = std::move(*kept);
      kept.emplace(std::move(error));
      lost.discard_as_unraisable("a comparator or a merge operator of braiddb");
      return;
    }
  }
  error.discard_as_unraisable("a comparator or a merge operator of braiddb");
}

bool Use::RaiseKept() {
  if (kept_error == nullptr || PyThread_get_thread_ident() != main_thread) return false;
  const std::unique_ptr<nb::python_error> kept(std::exchange(kept_error, nullptr));
  kept->restore();
  return true;
}

void Use::RaiseSoon(nb::python_error error) {
  if (kept_error != nullptr) {
    error.discard_as_unraisable("a call of braiddb");
    return;
  }
  kept_error = new nb::python_error(std::move(error));
  if (Py_AddPendingCall([](void*) { return RaiseKept() ? -1 : 0; }, nullptr) == 0) return;
  std::unique_ptr<nb::python_error>(std::exchange(kept_error, nullptr))->discard_as_unraisable("a call of braiddb");
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

// The function may give the GIL away, so a close waits for it.
void Core::TryInOrder(const ColumnFamilyHandle* family, Slice key) {
  {
    const Use use(this, nullptr, nullptr, Use::Gil::kHeld);
    const auto order = orders.find(family);
    if (order != orders.end()) order->second->Try(key);
  }
  RequireOpen();
}

void Core::Abandon() {
  (void)db_.release();
  for (auto* list : {&handles, &dropped}) {
    for (std::unique_ptr<ColumnFamilyHandle>& handle : *list) (void)handle.release();
  }
}

Status Core::Close() {
  if (is_closed_) return Status::OK();
  if (Use::IsInside(this)) return Status::Busy("the database is closed inside one of its calls, which the close would wait for");
  is_closed_ = true;
  // Until the close is over, a fork must mark the core.
  struct Registration {
    Core* core;
    ~Registration() { Unregister(core); }
  };
  const Registration registration{this};
  if (is_forked_) {
    Abandon();
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
  Abandon();
}

void Register(Core* core) { Cores().insert(core); }
void Unregister(Core* core) { Cores().erase(core); }

// CPython up to 3.13 ends a daemon thread that asks for the GIL after this by an unwinding of its stack. That ends the process
// where a frame of C++ may throw nothing, such as a destructor in which Python code runs. The thread waits instead, as it does
// from 3.14 on.
static void KeepDaemonThreads() {
  static std::terminate_handler before = nullptr;
  if (before != nullptr) return;
  before = std::set_terminate([] {
    if (std::current_exception() == nullptr && PyThread_get_thread_ident() != main_thread) {
      for (;;) pause();
    }
    before();
  });
}

void CloseAll() {
  is_ending = true;
  KeepDaemonThreads();
  // What another thread opens or closes meanwhile ends first.
  while (outside_uses != 0 || !Cores().empty()) {
    const auto open = std::ranges::find_if(Cores(), [](const Core* core) { return !core->is_closing(); });
    if (open != Cores().end()) {
      (*open)->End();
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
  outside_uses = 0;
  for (Core* core : Cores()) core->MarkForked();
  std::erase_if(Cores(), [](const Core* core) { return core->is_closing(); });  // nobody ends these closes here
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
