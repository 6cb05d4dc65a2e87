// Core: one open database as Python sees it, with everything that must end before it.
//
// CONCURRENCY  Calls into the database run without the GIL. A call counts itself in `uses` while it holds the GIL, and leaves when it
//              holds the GIL again. So what a call has made is a Child, or gone, before another thread gets the GIL. Close marks the
//              core as closed with the GIL held, so that no call begins any more. Then it waits without the GIL until `uses` is 0.
// LIFETIME     Iterators, snapshots, transactions and pinned values are Children. Close ends all of them. Their Python objects
//              then raise ClosedError.
// EXIT         The end of the interpreter waits for calls of daemon threads, and closes all databases. A database whose values
//              memoryviews show stays mapped until the process ends, as daemon threads and destructors may still read them.
// SIGNALS      A signal handler may raise an exception in a comparator or merge operator. The database cannot end in the middle of
//              a comparison. So the exception is kept, the function is called again, and the exception is raised in the main
//              thread when its call into the database has ended.
// FORK         A child process must not touch the database of its parent. After a fork the cores of the child are marked, raise
//              errors, and never run destructors of the database.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"
#include "braiddb/ttl.h"

namespace braiddb::python {

namespace nb = nanobind;

// Raises the Python exception of the status. OK: returns.
void Check(const Status& status);
[[noreturn]] void Raise(const Status& status);
[[noreturn]] void RaiseClosed(const char* what);
[[noreturn]] void RaiseBusy(const char* what);

// The bytes of a Python object: bytes directly, anything else through the buffer protocol. Valid while the object lives.
class Bytes {
 public:
  explicit Bytes(nb::handle object);
  Bytes(Bytes&& other) noexcept : slice_(other.slice_), buffer_(std::exchange(other.buffer_, Py_buffer{})) {}
  Bytes& operator=(Bytes&&) = delete;
  ~Bytes() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  Slice slice() const { return slice_; }

 private:
  Slice slice_;
  Py_buffer buffer_{};
};

nb::object ToBytes(Slice value);

// A path from str, bytes or os.PathLike. ValueError if there is a NUL.
std::string PathOf(nb::handle path);

// The comparator of a family, if it is a Python function.
class PythonOrder {
 public:
  virtual ~PythonOrder() = default;
  // Raises what the function raises for a key of the user, before the key comes into the database.
  virtual void Try(Slice key) const = 0;
};

// What ends when its database closes.
class Child {
 public:
  virtual ~Child() = default;
  // Called once, with the GIL held and no call of the child under way.
  virtual void End() = 0;
  // Whether Python may read its memory without a call.
  virtual bool shows_memory() const { return false; }
};

class Core {
 public:
  ~Core() {
    (void)Close();
    if (is_forked_) Abandon();
  }

  // With the GIL held. Idempotent.
  Status Close();
  void MarkForked() { is_forked_ = true; }
  bool is_closing() const { return is_closed_; }
  bool is_open() const { return !is_closed_ && !is_forked_; }
  void RequireOpen() const {
    if (!is_open()) RaiseClosed(is_forked_ ? "the database was opened before a fork: open it again in this process" : "the database is closed");
  }

  // With the GIL held. A child is removed before it is freed, also after Close has begun: Close may not have ended it yet.
  void Add(Child* child) { children_.insert(child); }
  void Remove(Child* child) { children_.erase(child); }
  // Raises what the family's comparator raises for the key.
  void Try(const ColumnFamilyHandle* family, Slice key) {
    if (!orders.empty()) TryInOrder(family, key);
  }
  // At the end of the interpreter. Closes the database, unless Python has views of its values.
  void End();

  bool is_forked() const { return is_forked_; }
  // Buffers of values that Python has; guarded by the GIL. The database cannot be closed while there are some.
  uint64_t exports = 0;

  DB* db() const { return db_.get(); }
  TransactionDB* pessimistic = nullptr;
  OptimisticTransactionDB* optimistic = nullptr;
  DBWithTTL* ttl = nullptr;
  bool is_read_only = false;

  // Python objects that the database calls. Released with the GIL held, after the database.
  std::vector<nb::object> kept;
  std::vector<std::shared_ptr<const Comparator>> comparators;
  std::unordered_map<const ColumnFamilyHandle*, const PythonOrder*> orders;  // of families that have one
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> dropped;  // Python objects may still refer to these
  std::unique_ptr<DB> db_;

 private:
  friend class Use;
  void TryInOrder(const ColumnFamilyHandle* family, Slice key);
  // In a child of fork(2): leaves the database to the parent.
  void Abandon();

  std::atomic<uint32_t> uses_{0};
  bool is_closed_ = false;  // guarded by the GIL
  bool is_forked_ = false;
  std::unordered_set<Child*> children_;
};

// Whether a call of an iterator or a transaction is under way. Guarded by the GIL. These objects are of one thread at a time: a
// second call, also one from a comparator or a merge operator that the first one has called, raises RuntimeError.
struct Mark {
  bool is_busy = false;
  const char* what = "";

  void Require() const {
    if (is_busy) RaiseBusy(what);
  }
};

// One call into the database: counted, and without the GIL. REQUIRES: the GIL is held when it begins.
class Use {
 public:
  // kHeld: for code that calls Python only, and must not see the database closed meanwhile.
  enum class Gil : uint8_t { kReleased, kHeld };
  // The marks may be null.
  explicit Use(Core* core, Mark* first = nullptr, Mark* second = nullptr, Gil gil = Gil::kReleased)
      : core_(core), marks_{first, second} {
    core->RequireOpen();
    for (const Mark* mark : marks_) {
      if (mark != nullptr) mark->Require();
    }
    SetMarks(true);
    core->uses_.fetch_add(1, std::memory_order_relaxed);
    below_ = std::exchange(top, this);
    thread_ = gil == Gil::kReleased ? PyEval_SaveThread() : nullptr;
  }
  ~Use() {
    if (thread_ != nullptr) PyEval_RestoreThread(thread_);
    top = below_;
    core_->uses_.fetch_sub(1, std::memory_order_release);
    SetMarks(false);
    if (deferred_.has_value()) RaiseSoon(std::move(*deferred_));
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  // Whether this thread has a call into the database under way, which runs a comparator or a merge operator.
  static bool IsInside(const Core* core) {
    const Use* use = top;
    while (use != nullptr && use->core_ != core) use = use->below_;
    return use != nullptr;
  }
  // Keeps what was raised inside of a callback until the thread's outermost call has ended. Of several, one that is no Exception
  // wins, such as KeyboardInterrupt; the others, and what a thread other than the main one raises, go to sys.unraisablehook. Runs
  // no Python code before the exception is kept.
  static void Defer(nb::python_error error);
  // Sets the kept exception as Python's and returns true, if there is one. For type slots, behind which the interpreter does not
  // look for pending calls at once.
  static bool RaiseKept();

 private:
  static thread_local Use* top;  // the thread's calls, the last one first

  static void RaiseSoon(nb::python_error error);

  void SetMarks(bool is_busy) {
    for (Mark* mark : marks_) {
      if (mark != nullptr) mark->is_busy = is_busy;
    }
  }

  Core* const core_;
  Mark* const marks_[2];
  Use* below_ = nullptr;
  PyThreadState* thread_;  // null: the GIL is held
  std::optional<nb::python_error> deferred_;  // of the outermost call
};

// A call without a database, such as an open, without the GIL. The end of the interpreter waits for it. REQUIRES: as Use.
class OutsideUse {
 public:
  OutsideUse();
  ~OutsideUse();
  OutsideUse(const OutsideUse&) = delete;
  OutsideUse& operator=(const OutsideUse&) = delete;

 private:
  PyThreadState* thread_;
};

// All cores of the process, for the end of the interpreter and for forks.
void CloseAll();
// Called in a child of fork(2).
void MarkAllForked();
// Called while the module is imported.
void NoteMainThread();
void Register(Core* core);
void Unregister(Core* core);

void DefineErrors(nb::module_& module);
void DefineReaders(nb::module_& module);
void DefineWriters(nb::module_& module);
void DefineIteration(nb::module_& module);

}  // namespace braiddb::python
