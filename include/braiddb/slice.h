// Slice: a pointer and a length; any bytes. The memory must outlive the call it is passed to.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace braiddb {

using Slice = std::string_view;

}  // namespace braiddb
#pragma GCC visibility pop
