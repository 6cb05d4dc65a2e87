// Open and close, for the parts of the C API that open databases.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "capi/objects.h"

namespace braiddb::capi {

// Types of the function that opens the database: DB::Open, or Open of a database with transactions.
using FamilyHandles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;
using Families = std::vector<ColumnFamilyDescriptor>;
using Opener = std::function<Status(const Options&, const std::string&, const Families&, FamilyHandles*, std::unique_ptr<DB>*)>;

inline Status OpenPlain(const Options& options, const std::string& path, const Families& families, FamilyHandles* handles,
                        std::unique_ptr<DB>* db) {
  return DB::Open(options, path, families, handles, db);
}

// `families`, `handles`: as in DB::Open.
Status OpenDatabase(const braiddb_options_t& options, const std::string& path, const Families& families, FamilyHandles* handles,
                    braiddb_t** db, const Opener& open = OpenPlain);
inline Status OpenDatabase(const braiddb_options_t& options, const std::string& path, braiddb_t** db,
                           const Opener& open = OpenPlain) {
  FamilyHandles none;
  return OpenDatabase(options, path, {}, &none, db, open);
}
// Opens a database with all its column families, including "default", and returns a handle for each.
Status OpenFamilies(const braiddb_options_t& options, const char* path, int count, const char* const* names,
                    const braiddb_options_t* const* family_options, braiddb_column_family_handle_t** handles, braiddb_t** db,
                    const Opener& open = OpenPlain);
// The family names of a database, open or closed.
Status ListFamilies(const braiddb_options_t& options, const char* path, std::vector<std::string>* names);
// Openers for read-only databases and secondaries. They create no database.
Opener OpenerToRead(bool error_if_wal_file_exists);
Opener OpenerOfSecondary(std::string secondary_path);
braiddb_options_t WithoutCreation(const braiddb_options_t& options);
// Opener for databases whose keys expire. `family_seconds`: times to live by family; if empty, all families use `seconds`.
Opener OpenerWithTtl(int seconds, std::vector<int32_t> family_seconds = {});
Status CloseDatabase(braiddb_t* db);

// Errors with RocksDB's texts. NothingToRead: the database does not exist, or the search for it has ended with the errno `error`.
// LockedAsRocksDB: translates Busy, if another process has the database open, and returns any other status unchanged.
Status NothingToRead(const std::string& path, int error = 0);
Status LockedAsRocksDB(Status status, const std::string& path);

}  // namespace braiddb::capi
