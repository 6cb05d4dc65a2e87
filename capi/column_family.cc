// Column families: open, handles, create, drop.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "braiddb/ttl.h"
#include "capi/database.h"
#include "capi/objects.h"
#include "capi/option_texts.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::ColumnFamilyOptions;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

braiddb_column_family_handle_t* MakeHandle(const braiddb_t& db, std::unique_ptr<ColumnFamilyHandle> handle) {
  std::shared_ptr<ColumnFamilyHandle> rep;
  if (handle->GetID() == 0) {
    rep = std::shared_ptr<ColumnFamilyHandle>(std::shared_ptr<void>(), db.db->DefaultColumnFamily());
  } else {
    rep = std::move(handle);
  }
  auto* const result = new braiddb_column_family_handle_t(std::move(rep));
  db.open_objects.Add(result);
  return result;
}

Status FamilyOptions(const braiddb_options_t& from, const char* path, ColumnFamilyOptions* to) {
  braiddb::Options own;
  Status status = MakeOptions(from, path, &own);
  if (status.ok()) *to = ColumnFamilyOptions(own);
  return status;
}

// `ttl`: time to live of the family in a database whose keys expire. 0 or less means forever. RocksDB uses this value for a
// family that is created without a time to live, also if the database has one.
Status CreateFamily(braiddb_t* db, const braiddb_options_t& options, const char* name, int ttl,
                    braiddb_column_family_handle_t** result) {
  auto* const expiring = dynamic_cast<braiddb::DBWithTTL*>(db->db.get());
  if (ttl > 0 && expiring == nullptr)
    return Status::NotSupported("create_column_family_with_ttl: the database was not opened with a time to live");
  ColumnFamilyOptions own;
  std::unique_ptr<ColumnFamilyHandle> handle;
  Status status = FamilyOptions(options, db->db->GetName().c_str(), &own);
  if (status.ok()) {
    status = expiring != nullptr ? expiring->CreateColumnFamilyWithTtl(own, name, ttl, &handle)
                                 : db->db->CreateColumnFamily(own, name, &handle);
  }
  if (status.ok()) *result = MakeHandle(*db, std::move(handle));
  return status;
}

// Copies the names into a C array for braiddb_list_column_families_destroy. Returns null if memory is short.
char** CopyNames(const std::vector<std::string>& names) {
  auto** const result = static_cast<char**>(std::calloc(names.size(), sizeof(char*)));
  for (size_t i = 0; result != nullptr && i < names.size(); ++i) {
    result[i] = CopyBytes(names[i]);
    if (result[i] != nullptr) continue;
    braiddb_list_column_families_destroy(result, i);
    return nullptr;
  }
  return result;
}

Status GiveHandles(const braiddb_t& db, FamilyHandles* opened, braiddb_column_family_handle_t** handles) {
  for (size_t i = 0; i < opened->size(); ++i) handles[i] = nullptr;
  Status status = Guarded([&] {
    for (size_t i = 0; i < opened->size(); ++i) handles[i] = MakeHandle(db, std::move((*opened)[i]));
    return Status::OK();
  });
  for (size_t i = 0; i < opened->size() && !status.ok(); ++i) {
    delete handles[i];
    handles[i] = nullptr;
  }
  opened->clear();
  return status;
}

}  // namespace

Status braiddb::capi::ListFamilies(const braiddb_options_t& options, const char* path, std::vector<std::string>* names) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(path) / "LOCK", error)) return NothingToRead(path, error.value());
  Options own;
  Status status = MakeOptions(options, path, &own);
  if (status.ok()) status = DB::ListColumnFamilies(own, path, names);
  return status.IsNotFound() ? NothingToRead(path) : status;
}

// Family options come from the family's options object, all others from the database's.
Status braiddb::capi::OpenFamilies(const braiddb_options_t& options, const char* path, int count, const char* const* names,
                                   const braiddb_options_t* const* family_options, braiddb_column_family_handle_t** handles,
                                   braiddb_t** db, const Opener& open) {
  Families families;
  const braiddb_options_t* of_default = nullptr;
  for (int i = 0; i < count; ++i) {
    families.push_back({names[i], {}});
    if (Status status = FamilyOptions(*family_options[i], path, &families.back().options); !status.ok()) return status;
    if (std::strcmp(names[i], kDefaultColumnFamilyName) == 0) of_default = family_options[i];
  }
  if (of_default == nullptr) return Status::InvalidArgument("Default column family not specified");
  braiddb_options_t both = *of_default;
  both.own = options.own;
  both.own.comparator = of_default->own.comparator;
  both.own.prefix_extractor = of_default->own.prefix_extractor;
  both.own.l1 = of_default->own.l1;
  both.own.nv_leaf_size = of_default->own.nv_leaf_size;
  CopyDatabaseOptions(options, &both);
  if (!options.unfit.ok()) both.unfit = options.unfit;
  FamilyHandles opened;
  Status status = OpenDatabase(both, path, families, &opened, db, open);
  if (!status.ok()) return status;
  status = GiveHandles(**db, &opened, handles);
  if (status.ok()) return status;
  (void)CloseDatabase(*db);
  *db = nullptr;
  return status;
}

braiddb_t* braiddb_open_column_families(const braiddb_options_t* options, const char* path, int count,
                                        const char* const* column_family_names,
                                        const braiddb_options_t* const* column_family_options,
                                        braiddb_column_family_handle_t** handles, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, &db);
            }));
  return db;
}

// A time to live of 0 or less means forever.
braiddb_t* braiddb_open_column_families_with_ttl(const braiddb_options_t* options, const char* path, int count,
                                                 const char* const* column_family_names,
                                                 const braiddb_options_t* const* column_family_options,
                                                 braiddb_column_family_handle_t** handles, const int* ttls, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(*options, path, count, column_family_names, column_family_options, handles, &db,
                                  OpenerWithTtl(0, {ttls, ttls + count}));
            }));
  return db;
}

char** braiddb_list_column_families(const braiddb_options_t* options, const char* path, size_t* count, char** errptr) {
  *count = 0;
  std::vector<std::string> names;
  if (SaveError(errptr, Guarded([&] { return ListFamilies(*options, path, &names); }))) return nullptr;
  char** const result = CopyNames(names);
  if (result == nullptr) {
    SaveError(errptr, NoMemory());
  } else {
    *count = names.size();
  }
  return result;
}

void braiddb_list_column_families_destroy(char** names, size_t count) {
  for (size_t i = 0; i < count; ++i) std::free(names[i]);
  std::free(names);
}

void braiddb_column_family_handle_destroy(braiddb_column_family_handle_t* column_family) { delete column_family; }
uint32_t braiddb_column_family_handle_get_id(braiddb_column_family_handle_t* column_family) {
  return column_family->rep->GetID();
}
char* braiddb_column_family_handle_get_name(braiddb_column_family_handle_t* column_family, size_t* length) {
  const std::string& name = column_family->rep->GetName();
  *length = name.size();
  return CopyBytes(name);
}

// ---- Create and drop

braiddb_column_family_handle_t* braiddb_create_column_family(braiddb_t* db, const braiddb_options_t* options, const char* name,
                                                             char** errptr) {
  braiddb_column_family_handle_t* result = nullptr;
  SaveError(errptr, Guarded([&] { return CreateFamily(db, *options, name, 0, &result); }));
  return result;
}

// A time to live of 0 or less means forever.
braiddb_column_family_handle_t* braiddb_create_column_family_with_ttl(braiddb_t* db, const braiddb_options_t* options,
                                                                      const char* name, int ttl, char** errptr) {
  braiddb_column_family_handle_t* result = nullptr;
  SaveError(errptr, Guarded([&] { return CreateFamily(db, *options, name, ttl, &result); }));
  return result;
}

braiddb_column_family_handle_t** braiddb_create_column_families(braiddb_t* db, const braiddb_options_t* options, int count,
                                                                const char* const* names, size_t* created, char** errptr) {
  *created = 0;
  auto** const handles =
      static_cast<braiddb_column_family_handle_t**>(std::calloc(static_cast<size_t>(count) + 1, sizeof(void*)));
  if (handles == nullptr) {
    SaveError(errptr, NoMemory());
    return nullptr;
  }
  for (int i = 0; i < count; ++i) {
    if (SaveError(errptr, Guarded([&] { return CreateFamily(db, *options, names[i], 0, &handles[i]); }))) break;
    ++*created;
  }
  return handles;
}

void braiddb_create_column_families_destroy(braiddb_column_family_handle_t** list) { std::free(list); }

braiddb_column_family_handle_t* braiddb_get_default_column_family_handle(braiddb_t* db) {
  auto* const handle = Make<braiddb_column_family_handle_t>(
      std::shared_ptr<ColumnFamilyHandle>(std::shared_ptr<void>(), db->db->DefaultColumnFamily()));
  if (handle != nullptr) db->open_objects.Add(handle);
  return handle;
}

void braiddb_drop_column_family(braiddb_t* db, braiddb_column_family_handle_t* column_family, char** errptr) {
  SaveError(errptr, Guarded([&] { return db->db->DropColumnFamily(FamilyOf(column_family)); }));
}

braiddb_t* braiddb_open_for_read_only_column_families(const braiddb_options_t* options, const char* path, int count,
                                                      const char* const* column_family_names,
                                                      const braiddb_options_t* const* column_family_options,
                                                      braiddb_column_family_handle_t** handles,
                                                      unsigned char error_if_wal_file_exists, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(WithoutCreation(*options), path, count, column_family_names, column_family_options, handles,
                                  &db, OpenerToRead(error_if_wal_file_exists != 0));
            }));
  return db;
}

braiddb_t* braiddb_open_as_secondary_column_families(const braiddb_options_t* options, const char* path,
                                                     const char* secondary_path, int count,
                                                     const char* const* column_family_names,
                                                     const braiddb_options_t* const* column_family_options,
                                                     braiddb_column_family_handle_t** handles, char** errptr) {
  braiddb_t* db = nullptr;
  SaveError(errptr, Guarded([&] {
              return OpenFamilies(WithoutCreation(*options), path, count, column_family_names, column_family_options, handles,
                                  &db, OpenerOfSecondary(secondary_path));
            }));
  return db;
}
