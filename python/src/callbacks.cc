// Comparators and merge operators that are Python functions. The database calls them from its own threads too.
#include <cstdio>
#include <cstdlib>

#include "callbacks.h"

namespace braiddb::python {
namespace {

// Calls of a function in which signal handlers may raise exceptions, one after another.
constexpr int kTries = 16;

// WHY IT ENDS THE PROCESS  A comparison in the middle of a write or a merge cannot fail, and a wrong answer would bring keys out of
//                          order for good. So a function that raises again and again ends the process. Nothing is lost, since the
//                          database is safe against that. Try finds most such functions before.
class PythonComparator final : public Comparator, public PythonOrder {
 public:
  PythonComparator(std::string name, const nb::object& compare) : name_(std::move(name)), compare_(compare.ptr()) {}

  int Compare(Slice a, Slice b) const override {
    const nb::gil_scoped_acquire gil;
    for (int left = kTries;; --left) {
      try {
        return Call(a, b);
      } catch (nb::python_error& error) {
        if (left == 1) End(error.what());
        Use::Defer(std::move(error));
      } catch (const std::exception& error) {
        End(error.what());
      }
    }
  }
  const char* Name() const override { return name_.c_str(); }

  void Try(Slice key) const override { Require(Call(key, key) == 0, "does not say that a key equals itself"); }
  // The same for an order that is not yet in use.
  void TryPair(Slice a, Slice b) const {
    Try(a);
    Try(b);
    const int one = Call(a, b), other = Call(b, a);
    Require((one < 0) == (other > 0) && (one > 0) == (other < 0), "gives two keys no order");
  }

 private:
  int Call(Slice a, Slice b) const {
    const nb::object result = nb::handle(compare_)(ToBytes(a), ToBytes(b));
    if (!PyLong_Check(result.ptr())) {
      PyErr_Format(PyExc_TypeError, "the comparator %s returned %R, not an int", name_.c_str(), result.ptr());
      throw nb::python_error();
    }
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(result.ptr(), &overflow);
    if (overflow != 0) return overflow;
    return value < 0 ? -1 : value > 0 ? 1 : 0;
  }
  void Require(bool holds, const char* what) const {
    if (!holds) Raise(Status::InvalidArgument("the comparator " + name_ + " " + what));
  }
  [[noreturn]] void End(const char* what) const {
    std::fprintf(stderr,
                 "braiddb: the comparator %s failed inside of the database, which needs an order of all its keys. The process ends "
                 "here, before keys are stored in a wrong order.\n%s\n",
                 name_.c_str(), what);
    std::abort();
  }

  const std::string name_;
  PyObject* const compare_;  // the core keeps it
};

class PythonMergeOperator final : public MergeOperator {
 public:
  PythonMergeOperator(std::string name, nb::object merge) : name_(std::move(name)), merge_(merge.ptr()) {}

  const char* Name() const override { return name_.c_str(); }
  bool FullMerge(Slice key, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    const nb::gil_scoped_acquire gil;
    for (int left = kTries;; --left) {
      try {
        nb::list list;
        for (const Slice operand : operands) list.append(ToBytes(operand));
        const nb::object before = existing == nullptr ? nb::none() : ToBytes(*existing);
        const nb::object result = nb::handle(merge_)(ToBytes(key), before, list);
        if (result.is_none()) return false;
        value->assign(Bytes(result).slice());
        return true;
      } catch (nb::python_error& error) {
        if (left == 1 || error.matches(PyExc_Exception)) {
          error.discard_as_unraisable("a merge operator of braiddb");
          return false;
        }
        Use::Defer(std::move(error));  // KeyboardInterrupt or SystemExit
      }
    }
  }

 private:
  const std::string name_;
  PyObject* const merge_;  // the core keeps it
};

std::pair<std::string, nb::object> NameAndFunction(nb::handle given, const char* what) {
  std::pair<std::string, nb::object> pair;
  if (!nb::try_cast(given, pair) || PyCallable_Check(pair.second.ptr()) == 0) Raise(Status::InvalidArgument(what));
  return pair;
}

}  // namespace

const PythonOrder* OrderOf(const Comparator* comparator) { return dynamic_cast<const PythonOrder*>(comparator); }

std::shared_ptr<const Comparator> MakeComparator(Core* core, nb::handle given) {
  if (PyUnicode_Check(given.ptr())) {
    const auto name = nb::cast<std::string>(given);
    if (name == "bytewise") return {std::shared_ptr<void>(), BytewiseComparator()};
    if (name == "reverse-bytewise") return {std::shared_ptr<void>(), ReverseBytewiseComparator()};
    Raise(Status::InvalidArgument("there is no comparator " + name + "; give bytewise, reverse-bytewise or (name, function)"));
  }
  const auto [name, compare] = NameAndFunction(given, "a comparator is bytewise, reverse-bytewise or (name, function)");
  auto comparator = std::make_shared<PythonComparator>(name, compare);
  comparator->TryPair("", "a");
  core->kept.push_back(compare);
  core->comparators.push_back(comparator);
  return comparator;
}

std::shared_ptr<const MergeOperator> MakeMergeOperator(Core* core, nb::handle given) {
  if (PyUnicode_Check(given.ptr())) {
    const auto name = nb::cast<std::string>(given);
    if (name == "uint64add") return UInt64AddOperator();
    Raise(Status::InvalidArgument("there is no merge operator " + name + "; give uint64add or (name, function)"));
  }
  const auto [name, merge] = NameAndFunction(given, "a merge operator is uint64add or (name, function)");
  core->kept.push_back(merge);
  return std::make_shared<PythonMergeOperator>(name, merge);
}

}  // namespace braiddb::python
