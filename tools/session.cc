#include "tools/session.h"

#include <algorithm>

#include "db/db_impl.h"
#include "index/level_kind.h"
#include "tools/stored_families.h"

namespace braiddb::tools {
namespace {

// Reads of one process that ends soon need no cache and no filter.
void MakeSmall(Options* options) {
  options->lookup_cache_size = 0;
  options->filter_bits_per_key = 0;
  options->verify_at_open = false;
}

}  // namespace

bool ParseL1(const std::string& name, L1Kind* kind) {
  const LevelKind* const known = FindLevelKind(name);
  if (known != nullptr) *kind = known->id;
  return known != nullptr;
}

std::string NameOf(L1Kind kind) { return std::string(FindLevelKind(kind)->name); }

Session::~Session() { (void)Close(); }

Status Session::Open(const std::string& where, const OpenSettings& settings) {
  path = where;
  access = settings.access;
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status status = LoadStoredFamilies(path, {}, nullptr, &options, &descriptors);
  if (status.IsNotFound() && access == Access::kCreate) {
    options.create_if_missing = true;
    options.regions = settings.regions;
    options.region_paths = settings.region_paths;
    options.l1 = settings.l1;
    descriptors = {{kDefaultColumnFamilyName, ColumnFamilyOptions(options)}};
    return DB::Open(options, path, descriptors, &families, &db);
  }
  if (!status.ok()) return status;
  if (access != Access::kRead) return DB::Open(options, path, descriptors, &families, &db);
  MakeSmall(&options);
  is_secondary_ = !settings.secondary.empty();
  if (is_secondary_) return DB::OpenAsSecondary(options, path, settings.secondary, descriptors, &families, &db);
  status = DB::OpenForReadOnly(options, path, descriptors, &families, &db);
  is_live_ = status.ok() && dynamic_cast<DBImpl*>(db->GetRootDB()) == nullptr;
  if (!status.IsBusy() && !status.IsNotSupported()) return status;
  const std::string message = std::string(status.message()) +
                              "; --secondary DIRECTORY reads beside the program, from a copy that is kept in that directory";
  return status.IsBusy() ? Status::Busy(message) : Status::NotSupported(message);
}

Status Session::RefuseLive(const std::string& what) const {
  if (!is_live_) return Status::OK();
  return Status::NotSupported("a program has the database open, and only that program has its " + what +
                              "; --secondary DIRECTORY reads beside the program, from a copy that is kept in that directory");
}

Status Session::Close() {
  families.clear();
  if (db == nullptr) return Status::OK();
  const Status status = db->Close();
  db.reset();
  return status;
}

ColumnFamilyHandle* Session::Find(const std::string& name) const {
  const auto found = std::find_if(families.begin(), families.end(), [&name](const auto& it) { return it->GetName() == name; });
  return found == families.end() ? nullptr : found->get();
}

Status Session::Current(ColumnFamilyHandle** handle) const {
  *handle = Find(family);
  return *handle != nullptr ? Status::OK() : Status::NotFound("there is no column family '" + family + "'");
}

Status Session::FindOrCreate(const std::string& name, ColumnFamilyHandle** handle) {
  *handle = Find(name);
  if (*handle != nullptr) return Status::OK();
  ColumnFamilyOptions options;
  options.l1 = db->DefaultColumnFamily()->GetOptions().l1;
  std::unique_ptr<ColumnFamilyHandle> created;
  Status status = db->CreateColumnFamily(options, name, &created);
  if (!status.ok()) return status;
  *handle = created.get();
  families.push_back(std::move(created));
  return status;
}

}  // namespace braiddb::tools
