// What of comparators and merge operators the user may give from Python.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "core.h"

namespace braiddb::python {

// `given`: a name ("bytewise", "reverse-bytewise"), or (name, function(a, b) -> int).
std::shared_ptr<const Comparator> MakeComparator(Core* core, nb::handle given);
// Null unless the comparator is a Python function.
const PythonOrder* OrderOf(const Comparator* comparator);
// `given`: "uint64add", or (name, function(key, existing or None, operands) -> bytes or None).
std::shared_ptr<const MergeOperator> MakeMergeOperator(Core* core, nb::handle given);

}  // namespace braiddb::python
