// The module braiddb._braiddb: open, destroy, and what concerns databases that are not open. src/braiddb/__init__.py is its face.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/options_file.h"
#include "callbacks.h"
#include "reader.h"

namespace braiddb::python {
namespace {

using Texts = std::map<std::string, std::string>;

Options OptionsOf(const Texts& texts, const std::vector<std::string>& region_paths) {
  std::string text = "[DBOptions]\n[CFOptions \"default\"]\n[TableOptions/BraidDB \"default\"]\n";
  for (const auto& [name, value] : texts) {
    if ((name + value).find('\n') != std::string::npos) Raise(Status::InvalidArgument("the option " + name + " has a line break"));
    text += "  " + name + "=" + value + "\n";
  }
  LoadedOptions loaded;
  Check(OptionsFromText(text, &loaded));
  if (!region_paths.empty()) loaded.options.region_paths = region_paths;
  return loaded.options;
}

// The library would make the directory of the backups.
void RequireDirectory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) Raise(Status::NotFound("there is no directory " + directory));
}

std::vector<std::string> PathsOf(const std::vector<nb::object>& places) {
  std::vector<std::string> paths;
  for (const nb::object& place : places) paths.push_back(PathOf(place));
  return paths;
}

// Without the GIL.
template <class Call>
Status Released(const Call& call) {
  const OutsideUse use;
  return call();
}

Database Open(nb::handle place, bool create, bool error_if_exists, bool read_only, nb::handle secondary_place,
              const std::string& transactions, std::optional<int32_t> ttl, const Texts& texts,
              const std::vector<nb::object>& region_places, nb::handle comparator, nb::handle merge_operator,
              const std::map<std::string, nb::object>& family_comparators,
              const std::map<std::string, nb::object>& family_merge_operators) {
  const std::string path = PathOf(place);
  std::optional<std::string> secondary;
  if (!secondary_place.is_none()) secondary = PathOf(secondary_place);
  auto core = std::make_shared<Core>();
  Options options = OptionsOf(texts, PathsOf(region_places));
  options.create_if_missing = create;
  options.error_if_exists = error_if_exists;
  std::vector<std::shared_ptr<const Comparator>> comparators;
  const auto take_comparator = [&](nb::handle given) {
    comparators.push_back(MakeComparator(core.get(), given));
    return comparators.back().get();
  };
  if (!comparator.is_none()) options.comparator = take_comparator(comparator);
  if (!merge_operator.is_none()) options.merge_operator = MakeMergeOperator(core.get(), merge_operator);
  std::vector<std::string> names;
  const Status listed = Released([&] { return DB::ListColumnFamilies(options, path, &names); });
  if (!listed.ok()) names = {kDefaultColumnFamilyName};  // there is no database yet, or the open says what is wrong
  std::vector<ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    ColumnFamilyOptions of(options);
    if (name != kDefaultColumnFamilyName) {
      of.comparator = BytewiseComparator();
      of.merge_operator = nullptr;
    }
    if (const auto it = family_comparators.find(name); it != family_comparators.end()) of.comparator = take_comparator(it->second);
    if (const auto it = family_merge_operators.find(name); it != family_merge_operators.end())
      of.merge_operator = MakeMergeOperator(core.get(), it->second);
    families.push_back({name, of});
  }
  core->is_read_only = read_only || secondary.has_value();
  Check(Released([&]() -> Status {
    Status status;
    if (secondary.has_value()) return DB::OpenAsSecondary(options, path, *secondary, families, &core->handles, &core->db_);
    if (read_only) return DB::OpenForReadOnly(options, path, families, &core->handles, &core->db_);
    if (ttl.has_value()) {
      std::unique_ptr<DBWithTTL> db;
      TtlOptions ttl_options;
      ttl_options.ttl_seconds = *ttl;
      status = DBWithTTL::Open(options, ttl_options, path, families, &core->handles, &db);
      core->ttl = db.get();
      core->db_ = std::move(db);
    } else if (transactions == "pessimistic") {
      std::unique_ptr<TransactionDB> db;
      status = TransactionDB::Open(options, TransactionDBOptions(), path, families, &core->handles, &db);
      core->pessimistic = db.get();
      core->db_ = std::move(db);
    } else if (transactions == "optimistic") {
      std::unique_ptr<OptimisticTransactionDB> db;
      status = OptimisticTransactionDB::Open(options, path, families, &core->handles, &db);
      core->optimistic = db.get();
      core->db_ = std::move(db);
    } else {
      status = DB::Open(options, path, families, &core->handles, &core->db_);
    }
    return status;
  }));
  Register(core.get());
  for (size_t i = 0; i < families.size() && i < core->handles.size(); ++i) {
    if (const PythonOrder* const order = OrderOf(families[i].options.comparator)) core->orders[core->handles[i].get()] = order;
  }
  Database database;
  database.source.core = core;
  database.source.family = core->db()->DefaultColumnFamily();
  if (const PythonOrder* const order = OrderOf(options.comparator)) core->orders[database.source.family] = order;
  return database;
}

}  // namespace
}  // namespace braiddb::python

NB_MODULE(_braiddb, module) {
  using namespace braiddb;
  using namespace braiddb::python;
  nb::set_leak_warnings(false);  // an interpreter that ends with an open database has its objects still
  NoteMainThread();
  DefineErrors(module);
  DefineIteration(module);
  DefineReaders(module);
  DefineWriters(module);
  module.def("open", &Open, nb::arg("path"), nb::arg("create"), nb::arg("error_if_exists"), nb::arg("read_only"), nb::arg("secondary").none(),
             nb::arg("transactions"), nb::arg("ttl").none(), nb::arg("options"), nb::arg("region_paths"), nb::arg("comparator").none(),
             nb::arg("merge_operator").none(), nb::arg("family_comparators"), nb::arg("family_merge_operators"));
  module.def(
      "destroy",
      [](nb::handle place, const std::vector<nb::object>& region_places) {
        const std::string path = PathOf(place);
        Options options;
        options.region_paths = PathsOf(region_places);
        Check(Released([&] { return DB::Destroy(options, path); }));
      },
      nb::arg("path"), nb::arg("region_paths"));
  module.def(
      "list_families",
      [](nb::handle place) {
        const std::string path = PathOf(place);
        std::vector<std::string> names;
        Check(Released([&] { return DB::ListColumnFamilies(Options(), path, &names); }));
        return names;
      },
      nb::arg("path"));
  module.def(
      "check",
      [](nb::handle place) {
        const std::string path = PathOf(place);
        CheckReport report;
        Check(Released([&] { return CheckDatabase(CheckOptions(), path, &report); }));
        nb::list findings;
        for (const CheckFinding& finding : report.findings) findings.append(finding.what);
        return findings;
      },
      nb::arg("path"));
  module.def(
      "restore",
      [](nb::handle from, nb::handle to, std::optional<uint32_t> id) {
        const std::string directory = PathOf(from), path = PathOf(to);
        RequireDirectory(directory);
        Check(Released([&]() -> Status {
          std::unique_ptr<BackupEngine> engine;
          if (Status status = BackupEngine::Open(directory, &engine); !status.ok()) return status;
          if (!id.has_value()) {
            const std::vector<BackupInfo> backups = engine->GetBackupInfo();
            if (backups.empty()) return Status::NotFound("there is no backup in " + directory);
            id = backups.back().id;
          }
          return engine->RestoreBackup(*id, Options(), path);
        }));
      },
      nb::arg("directory"), nb::arg("path"), nb::arg("id").none());
  module.def(
      "list_backups",
      [](nb::handle place) {
        const std::string directory = PathOf(place);
        RequireDirectory(directory);
        nb::list result;
        std::vector<BackupInfo> backups;
        Check(Released([&]() -> Status {
          std::unique_ptr<BackupEngine> engine;
          Status status = BackupEngine::Open(directory, &engine);
          if (status.ok()) backups = engine->GetBackupInfo();
          return status;
        }));
        for (const BackupInfo& backup : backups) {
          nb::dict entry;
          entry["id"] = backup.id;
          entry["timestamp"] = backup.timestamp;
          entry["size"] = backup.size;
          entry["keys"] = backup.keys;
          result.append(entry);
        }
        return result;
      },
      nb::arg("directory"));
  module.def("_close_all", &CloseAll);
  module.def("_mark_forked", &MarkAllForked);
}
