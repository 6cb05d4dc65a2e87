// Options by the names that RocksDB gives them, as text.
#pragma once

#include <string_view>

#include "capi/options.h"

namespace braiddb::capi {

// Sets one. NotFound: RocksDB has no option with this name. InvalidArgument with RocksDB's text: it has no such value. What
// RocksDB knows, and has no meaning here, is checked and forgotten unless there is a setter for it.
Status SetNamedOption(std::string_view name, std::string_view text, braiddb_options_t* options);

// "name=value;…". With an error some may be set.
Status SetOptionsFromString(std::string_view text, braiddb_options_t* options);

}  // namespace braiddb::capi
