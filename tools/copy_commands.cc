// braiddb backup, restore, checkpoint: copies of a database. A copy that is stopped leaves nothing.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "braiddb/backup.h"
#include "braiddb/options_file.h"
#include "db/temporary_place.h"
#include "tools/child_job.h"
#include "tools/command.h"
#include "tools/import_state.h"
#include "tools/output.h"
#include "tools/session.h"
#include "util/file.h"
#include "util/format.h"

namespace braiddb::tools {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Takes = CommandLine::Takes;

// The options of the verbs that read a database and write a copy.
struct CopyArguments {
  std::string secondary;
  bool as_json = false;

  void AddTo(CommandLine* line) {
    line->Add()("secondary", po::value(&secondary)->value_name("DIRECTORY"),
                "read beside a program that has the database open; DIRECTORY keeps a copy of the database")(
        "json", po::bool_switch(&as_json), "print JSON");
  }
  Status Open(const std::string& path, Session* session) const {
    OpenSettings settings;
    settings.secondary = secondary;
    session->style.output = as_json ? OutputForm::kJson : OutputForm::kRaw;
    const Status status = session->Open(path, settings);
    return status.ok() ? session->RefuseLive("prepared transactions and internal families, which a copy has, too") : status;
  }
};

Style StyleOf(bool as_json) { return {as_json ? OutputForm::kJson : OutputForm::kRaw, ByteForm::kRaw}; }

int MakeBackup(const CopyArguments& arguments, const std::string& database, const std::string& directory,
               const std::string& metadata) {
  Session session;
  std::unique_ptr<BackupEngine> engine;
  uint32_t id = 0;
  Status status = arguments.Open(database, &session);
  if (status.ok()) status = BackupEngine::Open(directory, &engine);
  if (status.ok()) status = engine->CreateBackup(session.db.get(), metadata, &id);
  if (!status.ok()) return CannotLook(status);
  Facts facts;
  for (const BackupInfo& info : engine->GetBackupInfo()) {
    if (info.id != id) continue;
    facts.Add("backup", id);
    facts.Add("keys", info.keys);
    facts.Add("bytes", info.size);
    facts.Add("sequence", info.sequence);
  }
  facts.Print(session.style);
  return kSound;
}

bool IsEmptyOrAbsent(const std::string& directory) {
  std::error_code error;
  return !fs::exists(directory, error) || fs::is_empty(directory, error);
}

// An open of a directory of backups removes unfinished files. `is_new`, `was_empty`: what the directory was before the backup.
Status RemoveUnfinishedBackup(const std::string& directory, bool is_new, bool was_empty) {
  if (IsEmptyOrAbsent(directory)) return Status::OK();
  {
    std::unique_ptr<BackupEngine> engine;
    if (Status status = BackupEngine::Open(directory, &engine); !status.ok() || !was_empty) return status;
    if (!engine->GetBackupInfo().empty()) return Status::OK();
  }
  std::error_code error;
  fs::remove(directory + "/BACKUP_LOCK", error);
  if (is_new && !error) fs::remove(directory, error);  // only if it is empty
  return error ? StatusFromErrno(error.value(), directory) : Status::OK();
}

int MakeCheckpoint(const CopyArguments& arguments, const std::string& database, const std::string& path) {
  Session session;
  uint64_t sequence = 0;
  Status status = arguments.Open(database, &session);
  if (status.ok()) status = CreateCheckpoint(session.db.get(), path, &sequence);
  if (!status.ok()) return CannotLook(status);
  Facts facts;
  facts.Add("database", path);
  facts.Add("sequence", sequence);
  facts.Print(session.style);
  return kSound;
}

// Checks that there are backups in the directory, because an open of the engine leaves a lock file.
Status CheckHoldsBackups(const std::string& directory) {
  std::vector<std::string> names;
  if (Status status = ListDir(directory, &names); !status.ok()) return status;
  const bool is_found = std::any_of(names.begin(), names.end(),
                                    [](const std::string& name) { return name == "BACKUP_LOCK" || name.ends_with(".backup"); });
  return is_found ? Status::OK() : Status::NotFound(directory + ": there are no backups");
}

int ListBackups(const std::string& directory, bool as_json) {
  std::unique_ptr<BackupEngine> engine;
  if (Status status = BackupEngine::Open(directory, &engine); !status.ok()) return CannotLook(status);
  for (const BackupInfo& info : engine->GetBackupInfo()) {
    if (as_json) {
      Facts facts;
      facts.Add("backup", info.id);
      facts.Add("timestamp", info.timestamp);
      facts.Add("keys", info.keys);
      facts.Add("bytes", info.size);
      facts.Add("sequence", info.sequence);
      facts.Add("metadata", info.metadata);
      facts.Print(StyleOf(true));
    } else {
      std::printf("backup %" PRIu32 ": %" PRIu64 " keys, %s, sequence %" PRIu64 ", %" PRId64 " s since 1970 %s\n", info.id,
                  info.keys, BytesText(info.size).c_str(), info.sequence, info.timestamp, Escaped(info.metadata).c_str());
    }
  }
  const std::vector<uint32_t> damaged = engine->GetDamagedBackups();
  for (const uint32_t id : damaged) std::fprintf(stderr, "braiddb: backup %" PRIu32 " is damaged\n", id);
  return damaged.empty() ? kSound : kDamaged;
}

// Uses the options that the backup has stored.
int RestoreOne(const std::string& directory, uint32_t id, const std::string& path, bool as_json) {
  std::unique_ptr<BackupEngine> engine;
  if (Status status = BackupEngine::Open(directory, &engine); !status.ok()) return CannotLook(status);
  BackupInfo chosen;
  for (const BackupInfo& info : engine->GetBackupInfo()) {
    if (id == 0 || info.id == id) chosen = info;
  }
  const std::vector<uint32_t> damaged = engine->GetDamagedBackups();
  if (id == 0 && !damaged.empty() && damaged.back() > chosen.id)
    return CannotLook(
        Status::Corruption("the newest backup, " + std::to_string(damaged.back()) + ", is damaged; choose by --id"));
  if (chosen.id == 0) return CannotLook(Status::NotFound(directory + ": there is no such backup; --list lists them"));
  LoadedOptions stored;
  Status status = OptionsFromText(chosen.options, &stored, true);
  stored.options.region_paths.clear();
  stored.options.region_nodes.clear();
  if (status.ok()) status = engine->RestoreBackup(chosen.id, stored.options, path);
  if (status.ok()) status = RemoveImportState(path);
  if (!status.ok()) return CannotLook(status);
  Facts facts;
  facts.Add("backup", chosen.id);
  facts.Add("database", path);
  facts.Add("keys", chosen.keys);
  facts.Print(StyleOf(as_json));
  return kSound;
}

}  // namespace

int RunBackup(const Arguments& given) {
  CommandLine line("braiddb backup [option...] <database> <directory>", {"database", "directory"}, Takes::kArguments);
  CopyArguments arguments;
  std::string metadata;
  arguments.AddTo(&line);
  line.Add()("metadata", po::value(&metadata)->value_name("TEXT"), "text that the backup keeps, and restore --list shows");
  int exit_code = kSound;
  if (!line.Parse(given, &exit_code)) return exit_code;
  const std::string database = line.Positional(0);
  const std::string directory = line.Positional(1);
  if (LiesIn(directory, database)) return line.Refuse("the backups must not lie in the directory of the database");
  const uint64_t before = BytesOnDisk(directory.c_str());
  const bool is_new = !FileExists(directory);
  const bool was_empty = IsEmptyOrAbsent(directory);
  return ChildJob{"backing up", [&] { return MakeBackup(arguments, database, directory, metadata); },
                  [&] { return RemoveUnfinishedBackup(directory, is_new, was_empty); },
                  [&] { return BytesOnDisk(directory.c_str()) - std::min(before, BytesOnDisk(directory.c_str())); },
                  BytesOnDisk(database.c_str())}
      .Run();
}

int RunCheckpoint(const Arguments& given) {
  CommandLine line("braiddb checkpoint [option...] <database> <new database>", {"database", "new database"}, Takes::kArguments);
  CopyArguments arguments;
  arguments.AddTo(&line);
  int exit_code = kSound;
  if (!line.Parse(given, &exit_code)) return exit_code;
  const std::string database = line.Positional(0);
  const std::string path = line.Positional(1);
  return ChildJob{"copying", [&] { return MakeCheckpoint(arguments, database, path); },
                  [&] { return RemoveUnfinishedCopy(path); }, [&] { return BytesOnDisk((path + ".tmp").c_str()); },
                  BytesOnDisk(database.c_str())}
      .Run();
}

int RunRestore(const Arguments& given) {
  CommandLine line("braiddb restore [option...] <directory of backups> <database>", {"directory"}, Takes::kArguments, 1);
  bool list = false;
  bool as_json = false;
  uint32_t id = 0;
  bool has_id = false;
  line.Add()("id", po::value(&id)->value_name("N")->notifier([&has_id](uint32_t) { has_id = true; }),
             "the backup; default: the newest")("list", po::bool_switch(&list), "list the backups; needs no database")(
      "json", po::bool_switch(&as_json), "print JSON");
  int exit_code = kSound;
  if (!line.Parse(given, &exit_code)) return exit_code;
  const std::string directory = line.Positional(0);
  if (list != (line.values().size() == 1)) return line.Refuse("restore takes a database, or --list");
  if (has_id && id == 0) return line.Refuse("the first backup has the number 1");
  if (Status status = CheckHoldsBackups(directory); !status.ok()) return CannotLook(status);
  if (list) return ListBackups(directory, as_json);
  const std::string path = line.Positional(1);
  if (LiesIn(directory, path)) return line.Refuse("the database must not replace the directory of the backups");
  return ChildJob{"restoring", [&] { return RestoreOne(directory, id, path, as_json); },
                  [&] { return RemoveUnfinishedCopy(path); }, [&] { return BytesOnDisk((path + ".tmp").c_str()); },
                  BytesOnDisk(directory.c_str())}
      .Run();
}

}  // namespace braiddb::tools
