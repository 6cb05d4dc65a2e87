#include "tools/import_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "pmem/database_file.h"
#include "tools/bytes.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

using StateJson = nlohmann::json;

constexpr size_t kMaxStateFile = 1 << 20;
constexpr uint64_t kCheckedBytes = 64 << 10;

// FNV-1a.
uint64_t ChecksumOf(std::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  AppendHex(bytes, &text);
  return text;
}

bool TakeNumber(const StateJson& json, const char* name, uint64_t* number) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_number_unsigned()) return false;
  *number = json[name].get<uint64_t>();
  return true;
}

bool TakeBytes(const StateJson& json, const char* name, std::string* bytes) {
  return json.is_object() && json.contains(name) && json[name].is_string() &&
         DecodeHex(json[name].get_ref<const std::string&>(), bytes);
}

// Corruption: the file was not written by SaveImportState.
Status ReadState(const std::string& path, ImportState* state) {
  std::string text;
  if (Status status = ReadSmallFile(path, kMaxStateFile, &text); !status.ok()) return status;
  const StateJson json = StateJson::parse(text, nullptr, false);
  if (TakeNumber(json, "database", &state->database) && TakeBytes(json, "source", &state->source) &&
      TakeBytes(json, "settings", &state->settings) && TakeBytes(json, "reader", &state->reader) &&
      TakeNumber(json, "checksum", &state->checksum))
    return Status::OK();
  return Status::Corruption(path + ": is not the state of an import");
}

// Sets *is_of_others if something is there that no import has written.
Status Judge(const std::string& path, bool* is_of_others) {
  struct stat file {};
  *is_of_others = false;
  if (lstat(path.c_str(), &file) != 0) return errno == ENOENT ? Status::OK() : StatusFromErrno(errno, path);
  *is_of_others = !S_ISREG(file.st_mode);
  if (*is_of_others) return Status::OK();
  ImportState ignored;
  const Status status = ReadState(path, &ignored);
  *is_of_others = status.IsCorruption();
  return *is_of_others ? Status::OK() : status;
}

Status InTheWay(const std::string& path) {
  return Status::InvalidArgument(
      path + ": is in the way, or is of an older version; an import keeps there how far it is, so move the file elsewhere");
}

}  // namespace

std::string ImportStatePath(const std::string& database) {
  std::string path = database;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".import";
}

Status SaveImportState(const std::string& database, const ImportState& state) {
  const StateJson json{{"database", state.database},
                       {"source", Hex(state.source)},
                       {"settings", Hex(state.settings)},
                       {"reader", Hex(state.reader)},
                       {"checksum", state.checksum}};
  const std::string path = ImportStatePath(database);
  bool is_of_others = false;
  if (Status status = Judge(path, &is_of_others); !status.ok()) return status;
  return is_of_others ? InTheWay(path) : WriteSmallFile(path, json.dump() + "\n");
}

Status LoadImportState(const std::string& database, ImportState* state) {
  const std::string path = ImportStatePath(database);
  bool is_of_others = false;
  if (Status status = Judge(path, &is_of_others); !status.ok()) return status;
  if (is_of_others) return InTheWay(path);
  return FileExists(path) ? ReadState(path, state) : Status::NotFound(path + ": there is no stopped import");
}

Status RemoveImportState(const std::string& database) {
  const std::string path = ImportStatePath(database);
  bool is_of_others = false;
  const Status status = Judge(path, &is_of_others);
  return !status.ok() || is_of_others ? status : RemoveFile(path);
}

Status ReadDatabaseId(const std::string& database, uint64_t* id) {
  DatabaseFile file;
  DatabaseFile::State state;
  if (Status status = DatabaseFile::Read(database, &state, &file); !status.ok()) return status;
  *id = file.database_id;
  return state == DatabaseFile::State::kWhole ? Status::OK() : Status::NotFound(database + ": there is no complete database");
}

Status ChecksumBefore(int fd, uint64_t offset, uint64_t* checksum) {
  std::string bytes(std::min(offset, kCheckedBytes), '\0');
  const ssize_t read = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset - bytes.size()));
  if (read < 0) return StatusFromErrno(errno, "reading the input");
  if (static_cast<size_t>(read) != bytes.size()) return Status::InvalidArgument("the input is shorter than it was");
  *checksum = ChecksumOf(bytes);
  return Status::OK();
}

}  // namespace braiddb::tools
