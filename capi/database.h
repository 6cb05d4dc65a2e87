// Opening and closing, for the parts of the C API that open databases of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "braiddb/status.h"
#include "capi/objects.h"

namespace braiddb::capi {

// What makes the object: DB::Open, or that of a database with transactions.
using Opener = std::function<Status(const Options&, const std::string&, std::unique_ptr<DB>*)>;

inline Status OpenPlain(const Options& options, const std::string& path, std::unique_ptr<DB>* db) {
  return DB::Open(options, path, db);
}

Status OpenDatabase(const braiddb_options_t& options, const std::string& path, braiddb_t** db, const Opener& open = OpenPlain);
// With the names of column families and a handle for each; there is only the default one.
Status OpenFamilies(const braiddb_options_t& options, const char* path, int count, const char* const* names,
                    const braiddb_options_t* const* family_options, braiddb_column_family_handle_t** handles, braiddb_t** db,
                    const Opener& open = OpenPlain);
Status CloseDatabase(braiddb_t* db);

}  // namespace braiddb::capi
