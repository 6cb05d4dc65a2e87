// Opening and closing, for the parts of the C API that open databases of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "capi/objects.h"

namespace braiddb::capi {

// What makes the object: DB::Open, or that of a database with transactions.
using FamilyHandles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;
using Families = std::vector<ColumnFamilyDescriptor>;
using Opener = std::function<Status(const Options&, const std::string&, const Families&, FamilyHandles*, std::unique_ptr<DB>*)>;

inline Status OpenPlain(const Options& options, const std::string& path, const Families& families, FamilyHandles* handles,
                        std::unique_ptr<DB>* db) {
  return DB::Open(options, path, families, handles, db);
}

// `families`, `handles`: as of DB::Open.
Status OpenDatabase(const braiddb_options_t& options, const std::string& path, const Families& families, FamilyHandles* handles,
                    braiddb_t** db, const Opener& open = OpenPlain);
inline Status OpenDatabase(const braiddb_options_t& options, const std::string& path, braiddb_t** db,
                           const Opener& open = OpenPlain) {
  FamilyHandles none;
  return OpenDatabase(options, path, {}, &none, db, open);
}
// With the names of all column families, in which "default" is, and a handle for each.
Status OpenFamilies(const braiddb_options_t& options, const char* path, int count, const char* const* names,
                    const braiddb_options_t* const* family_options, braiddb_column_family_handle_t** handles, braiddb_t** db,
                    const Opener& open = OpenPlain);
// The names of those of a database, be it open or not.
Status ListFamilies(const braiddb_options_t& options, const char* path, std::vector<std::string>* names);
// Databases that are opened to be read only, with options of which nothing is created.
Opener OpenerToRead(bool error_if_wal_file_exists);
Opener OpenerOfSecondary(std::string secondary_path);
braiddb_options_t WithoutCreation(const braiddb_options_t& options);
// Of databases whose keys expire: those of all column families, or `family_seconds` of them.
Opener OpenerWithTtl(int seconds, std::vector<int32_t> family_seconds = {});
Status CloseDatabase(braiddb_t* db);

// In RocksDB's words: of a database that is not there, to those who would read it; and of one that somebody has open, which is
// Busy in `status`. Others stay as they are.
Status NothingToRead(const std::string& path);
Status LockedAsRocksDB(Status status, const std::string& path);

}  // namespace braiddb::capi
