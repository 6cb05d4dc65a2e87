// The names of ListKind.
#pragma once

#include <span>
#include <string_view>

#include "braiddb/options.h"

namespace braiddb {

// The name of a kind of list in options files, flags and reports.
struct ListKindName {
  ListKind kind;
  std::string_view name;
};
// Returns the names of all kinds.
std::span<const ListKindName> ListKindNames();
// Returns the name of a kind, or "unknown" for a value that is no kind.
std::string_view NameOf(ListKind kind);

}  // namespace braiddb
