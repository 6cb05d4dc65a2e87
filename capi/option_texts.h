// The options of the tables by name, as text.
#pragma once

#include <string>
#include <string_view>

#include "capi/options.h"

namespace braiddb::capi {

// Whether the option of the table is one of a column family, and not of the whole database.
bool IsFamilyOption(std::string_view name);

// Puts the options of the table into the options file of a database that is opened with `to`.
void NoteOptions(const braiddb_options_t& from, Options* to);

// Sets the option of the table. InvalidArgument, in RocksDB's words, if there is none, or it has no such value.
Status SetOption(std::string_view name, std::string_view value, braiddb_options_t* options);

// Its value as text; empty if there is no such option in the table.
std::string OptionText(std::string_view name, const braiddb_options_t& options);

// Sets all options of the table that are not a column family's to what they are in `from`.
void CopyDatabaseOptions(const braiddb_options_t& from, braiddb_options_t* to);

}  // namespace braiddb::capi
