// Slice: a pointer and a length, of any bytes. The memory must stay valid during the call that the slice is passed to.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace braiddb {

using Slice = std::string_view;

}  // namespace braiddb
#pragma GCC visibility pop
