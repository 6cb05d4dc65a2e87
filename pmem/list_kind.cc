#include "pmem/list_kind.h"

namespace braiddb {

std::span<const ListKindName> ListKindNames() {
  static constexpr ListKindName kNames[] = {{ListKind::kBraided, "braided"}, {ListKind::kOblivious, "oblivious"}};
  return kNames;
}

std::string_view NameOf(ListKind kind) {
  for (const ListKindName& known : ListKindNames()) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

}  // namespace braiddb
