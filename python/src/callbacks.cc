// Comparators and merge operators that are Python functions. The database calls them from its own threads too.
#include <cstdio>

#include "callbacks.h"

namespace braiddb::python {
namespace {

// A comparator must not throw. What a Python one raises ends up on stderr, and the keys are compared by their bytes.
class PythonComparator final : public Comparator {
 public:
  PythonComparator(std::string name, nb::object compare) : name_(std::move(name)), compare_(compare.ptr()) {}

  int Compare(Slice a, Slice b) const override {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<int>(nb::handle(compare_)(ToBytes(a), ToBytes(b)));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a comparator of braiddb");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "braiddb: the comparator %s: %s\n", name_.c_str(), error.what());
    }
    return a.compare(b);
  }
  const char* Name() const override { return name_.c_str(); }

 private:
  const std::string name_;
  PyObject* const compare_;  // the core keeps it
};

class PythonMergeOperator final : public MergeOperator {
 public:
  PythonMergeOperator(std::string name, nb::object merge) : name_(std::move(name)), merge_(merge.ptr()) {}

  const char* Name() const override { return name_.c_str(); }
  bool FullMerge(Slice key, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    const nb::gil_scoped_acquire gil;
    try {
      nb::list list;
      for (const Slice operand : operands) list.append(ToBytes(operand));
      const nb::object before = existing == nullptr ? nb::none() : ToBytes(*existing);
      const nb::object result = nb::handle(merge_)(ToBytes(key), before, list);
      if (result.is_none()) return false;
      value->assign(Bytes(result).slice());
      return true;
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a merge operator of braiddb");
      return false;
    }
  }

 private:
  const std::string name_;
  PyObject* const merge_;  // the core keeps it
};

}  // namespace

std::shared_ptr<const Comparator> MakeComparator(Core* core, nb::handle given) {
  if (PyUnicode_Check(given.ptr())) {
    const auto name = nb::cast<std::string>(given);
    if (name == "bytewise") return {std::shared_ptr<void>(), BytewiseComparator()};
    if (name == "reverse-bytewise") return {std::shared_ptr<void>(), ReverseBytewiseComparator()};
    Raise(Status::InvalidArgument("there is no comparator " + name + "; give bytewise, reverse-bytewise or (name, function)"));
  }
  const auto pair = nb::cast<std::pair<std::string, nb::object>>(given);
  core->kept.push_back(pair.second);
  auto comparator = std::make_shared<PythonComparator>(pair.first, pair.second);
  core->comparators.push_back(comparator);
  return comparator;
}

std::shared_ptr<const MergeOperator> MakeMergeOperator(Core* core, nb::handle given) {
  if (PyUnicode_Check(given.ptr())) {
    const auto name = nb::cast<std::string>(given);
    if (name == "uint64add") return UInt64AddOperator();
    Raise(Status::InvalidArgument("there is no merge operator " + name + "; give uint64add or (name, function)"));
  }
  const auto pair = nb::cast<std::pair<std::string, nb::object>>(given);
  core->kept.push_back(pair.second);
  return std::make_shared<PythonMergeOperator>(pair.first, pair.second);
}

}  // namespace braiddb::python
