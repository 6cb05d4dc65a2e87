// The options of the tables as text, by name.
#pragma once

#include <string>
#include <string_view>

#include "capi/options.h"

namespace braiddb::capi {

// Whether an option of the table belongs to a column family.
bool IsFamilyOption(std::string_view name);

// Stores the options of the table in the options file of a database that is opened with `to`.
void NoteOptions(const braiddb_options_t& from, Options* to);

// Sets an option of the table. Returns InvalidArgument, with RocksDB's text, for an unknown option or a wrong value.
Status SetOption(std::string_view name, std::string_view value, braiddb_options_t* options);

// The value of an option of the table as text. Empty if no such option exists.
std::string OptionText(std::string_view name, const braiddb_options_t& options);

// Copies all options of the table from `from`, except family options.
void CopyDatabaseOptions(const braiddb_options_t& from, braiddb_options_t* to);

}  // namespace braiddb::capi
