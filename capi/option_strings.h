// Options as text, by RocksDB's names.
#pragma once

#include <string_view>

#include "capi/option_values.h"
#include "capi/options.h"

namespace braiddb::capi {

// Sets one option. Returns NotFound if RocksDB has no such option, and InvalidArgument with RocksDB's text for a wrong value. An
// option without effect and without a setter is only checked.
Status SetNamedOption(std::string_view name, std::string_view text, braiddb_options_t* options);

// Sets an option of block-based tables. Returns false if no such option exists.
bool SetBlockOption(const NamedText& option, braiddb_block_based_table_options_t* table, Status* status);

// Parses "name=value;…". After an error some options may be set.
Status SetOptionsFromString(std::string_view text, braiddb_options_t* options);

}  // namespace braiddb::capi
