// Iteration: Python iterators over a range of keys.
#include <algorithm>
#include <limits>

#include "reader.h"

namespace braiddb::python {
namespace {

// Steps run with the GIL held: a step takes less time than to give the GIL away. The GIL is released for a moment every kStepsWithGil steps,
// and for the seek. With a comparator or a merge operator in Python each step runs without the GIL.
constexpr uint32_t kStepsWithGil = 256;

class Range final : public Child {
 public:
  Range(Source source, Shows shows, bool reverse) : source_(std::move(source)), shows_(shows), reverse_(reverse) {}
  ~Range() override {
    source_.core->Remove(this);
    if (source_.core->is_forked()) (void)iterator_.release();
  }
  void End() override { iterator_.reset(); }

  void Start(nb::handle prefix, nb::handle start, nb::handle stop, std::optional<int64_t> limit);
  PyObject* Next();

 private:
  void Move(bool first);

  Source source_;
  const Shows shows_;
  const bool reverse_;
  std::string start_, stop_, prefix_;
  bool has_start_ = false, has_stop_ = false, has_prefix_ = false;
  int64_t left_ = std::numeric_limits<int64_t>::max();
  uint32_t steps_ = 0;
  bool is_first_ = true;
  bool is_over_ = false;
  Mark mark_{false, "the iterator"};
  std::unique_ptr<Iterator> iterator_;
};

void Range::Start(nb::handle prefix, nb::handle start, nb::handle stop, std::optional<int64_t> limit) {
  const auto take = [](nb::handle from, std::string* to) {
    if (from.is_none()) return false;
    to->assign(Bytes(from).slice());
    return true;
  };
  has_prefix_ = take(prefix, &prefix_);
  has_start_ = take(start, &start_);
  has_stop_ = take(stop, &stop_);
  if (limit.has_value()) {
    if (*limit < 0) Raise(Status::InvalidArgument("limit is " + std::to_string(*limit) + "; it must not be negative"));
    left_ = *limit;
  }
  if (has_start_) source_.Try(start_);
  if (has_stop_) source_.Try(stop_);
  ReadOptions options = source_.options();
  const SnapshotRead read(source_);
  if (has_start_) options.iterate_lower_bound = start_;
  if (has_stop_) options.iterate_upper_bound = stop_;
  if (has_prefix_) options.prefix = prefix_;
  Transaction* const transaction = source_.transaction == nullptr ? nullptr : source_.transaction->get();
  {
    Use use(source_.core.get(), source_.mark());
    iterator_ = transaction != nullptr ? transaction->NewIterator(options, source_.family)
                                       : source_.core->db()->NewIterator(options, source_.family);
  }
  source_.core->Add(this);
  Check(iterator_->status());
}

void Range::Move(bool first) {
  if (first) {
    reverse_ ? iterator_->SeekToLast() : iterator_->SeekToFirst();
  } else {
    reverse_ ? iterator_->Prev() : iterator_->Next();
  }
}

PyObject* Range::Next() {
  source_.core->RequireOpen();
  mark_.Require();
  if (const Mark* const mark = source_.mark(); mark != nullptr) mark->Require();
  if (iterator_ == nullptr) {
    if (is_over_) return nullptr;
    RaiseClosed("the database is closed");
  }
  if (is_over_ || left_ == 0) {
    is_over_ = true;
    source_.core->Remove(this);
    iterator_.reset();
    return nullptr;
  }
  if (is_first_ || !source_.core->kept.empty() || ++steps_ % kStepsWithGil == 0) {
    Use use(source_.core.get(), &mark_, source_.mark());
    Move(is_first_);
  } else {
    Move(false);
  }
  is_first_ = false;
  if (!iterator_->Valid()) {
    const Status status = iterator_->status();
    is_over_ = true;
    source_.core->Remove(this);
    iterator_.reset();
    Check(status);
    return nullptr;
  }
  --left_;
  if (shows_ == Shows::kKeys) return ToBytes(iterator_->key()).release().ptr();
  if (shows_ == Shows::kValues) return ToBytes(iterator_->value()).release().ptr();
  PyObject* const pair = PyTuple_New(2);
  if (pair == nullptr) throw nb::python_error();
  const Slice key = iterator_->key(), value = iterator_->value();
  PyTuple_SET_ITEM(pair, 0, PyBytes_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size())));
  PyTuple_SET_ITEM(pair, 1, PyBytes_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
  if (PyTuple_GET_ITEM(pair, 0) == nullptr || PyTuple_GET_ITEM(pair, 1) == nullptr) {
    Py_DECREF(pair);
    throw nb::python_error();
  }
  return pair;
}

PyObject* NextOf(PyObject* self) {
  try {
    if (nb::inst_ready(nb::handle(self))) {
      const nb::object next = nb::steal(nb::inst_ptr<Range>(nb::handle(self))->Next());
      return Use::RaiseKept() ? nullptr : nb::object(next).release().ptr();
    }
    PyErr_SetString(PyExc_TypeError, "the object was not made by items(), keys() or values()");
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

PyObject* IterOf(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyType_Slot range_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(IterOf)},
                             {Py_tp_iternext, reinterpret_cast<void*>(NextOf)},
                             {0, nullptr}};

}  // namespace

nb::object Iterate(const Source& source, Shows shows, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse,
                   std::optional<int64_t> limit) {
  auto range = std::make_unique<Range>(source, shows, reverse);
  range->Start(prefix, start, stop, limit);
  return nb::cast(range.release(), nb::rv_policy::take_ownership);
}

void DefineIteration(nb::module_& module) {
  nb::class_<Range>(module, "Range", nb::type_slots(range_slots),
                    "An iterator over one consistent view. One thread at a time may use it.");
}

}  // namespace braiddb::python
