#include "tools/import_state.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tools/bytes.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

using Json = nlohmann::json;

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

}  // namespace

std::string ImportStatePath(const std::string& database) {
  std::string path = database;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".import";
}

Status SaveImportState(const std::string& database, const ImportState& state) {
  const Json json{{"source", Hex(state.source)}, {"reader", Hex(state.reader)}, {"checksum", state.checksum}};
  return WriteSmallFile(ImportStatePath(database), json.dump() + "\n");
}

Status LoadImportState(const std::string& database, ImportState* state) {
  const std::string path = ImportStatePath(database);
  if (!FileExists(path)) return Status::NotFound(path + ": there is no stopped import");
  std::string text;
  if (Status status = ReadSmallFile(path, kMaxStateFile, &text); !status.ok()) return status;
  const Json json = Json::parse(text, nullptr, false);
  const Status damaged = Status::Corruption(path + ": is damaged; import without --resume");
  if (!json.is_object() || !json.contains("source") || !json["source"].is_string() || !json.contains("reader") ||
      !json["reader"].is_string() || !json.contains("checksum") || !json["checksum"].is_number_unsigned())
    return damaged;
  if (!DecodeHex(json["source"].get_ref<const std::string&>(), &state->source) ||
      !DecodeHex(json["reader"].get_ref<const std::string&>(), &state->reader))
    return damaged;
  state->checksum = json["checksum"].get<uint64_t>();
  return Status::OK();
}

Status RemoveImportState(const std::string& database) { return RemoveFile(ImportStatePath(database)); }

Status ChecksumBefore(int fd, uint64_t offset, uint64_t* checksum) {
  std::string bytes(std::min(offset, kCheckedBytes), '\0');
  const ssize_t read = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset - bytes.size()));
  if (read < 0) return StatusFromErrno(errno, "reading the input");
  if (static_cast<size_t>(read) != bytes.size()) return Status::InvalidArgument("the input is shorter than it was");
  *checksum = ChecksumOf(bytes);
  return Status::OK();
}

}  // namespace braiddb::tools
