#include "pmem/database_file.h"

#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "pmem/checked_text.h"
#include "pmem/posix.h"
#include "util/check.h"

namespace braiddb {
namespace {

constexpr std::string_view kDatabaseTitle = "braiddb-database ";
constexpr unsigned kVersion = 1;
constexpr size_t kMaxFileBytes = 1u << 20;  // more than 16 paths of 4,095 bytes, each escaped to three times its length

using State = DatabaseFile::State;

// Returns the file name of a state. REQUIRES: not kNone.
const char* NameOf(State state) {
  if (state == State::kCreating) return "CREATING";
  return state == State::kDestroying ? "DESTROYING" : "DATABASE";
}

// Returns true if the text is what a crash may leave of a CREATING that was renamed before it was durable: a prefix of its
// bytes, then zeros. A text with a checksum line is complete, or damaged.
bool IsTorn(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  const std::string_view start = text.substr(0, kDatabaseTitle.size());
  return kDatabaseTitle.starts_with(start) && text.find(kChecksumWord) == text.npos;
}

// Parses a line of a keyword and an escaped path. Returns false if the keyword differs or the path is empty or not escaped
// right.
bool TakePath(std::string_view line, std::string_view word, std::string* path) {
  return line.starts_with(word) && UnescapePath(line.substr(word.size()), path) && !path->empty();
}

}  // namespace

// Escaped paths have no blank and no newline, so a path is one word of a line.
std::string EscapePath(std::string_view path) {
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 32 && byte < 127 && c != '%') {
      result += c;
      continue;
    }
    char digits[4];
    std::snprintf(digits, sizeof digits, "%%%02x", byte);
    result += digits;
  }
  return result;
}

bool UnescapePath(std::string_view escaped, std::string* path) {
  path->clear();
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      *path += escaped[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= escaped.size() || std::sscanf(std::string(escaped.substr(i + 1, 2)).c_str(), "%2x", &byte) != 1 || byte == 0)
      return false;
    *path += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

// Uses weakly_canonical, which resolves links in the part that exists, and falls back to the absolute path without links
// resolved.
std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::weakly_canonical(path, error).string();
  if (error || absolute.empty()) absolute = std::filesystem::absolute(path, error).string();
  if (error || absolute.empty()) return path;
  if (absolute.front() != '/') absolute = std::filesystem::absolute(absolute, error).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

std::string DatabaseFile::FilePath(const std::string& directory, State state) {
  return posix::JoinPath(directory, NameOf(state));
}

// A region inside the database's directory is written relative to it, so that the directory can be moved as a whole.
std::string DatabaseFile::ToText() const {
  char head[80];
  std::snprintf(head, sizeof head, "%s%u\ndatabase %016" PRIx64 "\n", kDatabaseTitle.data(), kVersion, database_id);
  std::string text = std::string(head) + "path " + EscapePath(path) + "\n";
  const std::string inside = path + "/";
  for (const std::string& region : regions) {
    text += "region " + EscapePath(region.starts_with(inside) ? region.substr(inside.size()) : region) + "\n";
  }
  return WithChecksum(std::move(text));
}

// STEPS  1 title  2 version  3 checksum  4 identity and path  5 regions, whose relative paths are completed. *result changes
//        only if all is right.
Status DatabaseFile::Parse(std::string_view text, const std::string& file, const std::string& directory, DatabaseFile* result) {
  const auto damaged = [&file](const std::string& how) {
    return Status::Corruption(file + " " + how + "; restore it from a copy, or move it away if it is not of a database");
  };
  // The version is checked before the checksum: another version may have another kind of checksum.
  unsigned version = 0;
  if (!text.starts_with(kDatabaseTitle)) return damaged("is not a file of BraidDB, or damaged");
  if (std::sscanf(std::string(text.substr(kDatabaseTitle.size(), 12)).c_str(), "%u", &version) != 1) return damaged("is damaged");
  if (version != kVersion) {
    return Status::NotSupported(file + " has format version " + std::to_string(version) + ", this program knows version " +
                                std::to_string(kVersion) + " only; use the BraidDB that wrote it");
  }
  const std::vector<std::string> lines = CheckedLines(text);
  if (lines.empty()) return damaged("is truncated, or has a wrong checksum");
  DatabaseFile read;
  bool is_sound = lines.size() >= 4 && std::sscanf(lines[1].c_str(), "database %" SCNx64, &read.database_id) == 1 &&
                  TakePath(lines[2], "path ", &read.path);
  for (size_t i = 3; is_sound && i < lines.size(); ++i) {
    std::string region;
    is_sound = TakePath(lines[i], "region ", &region);
    read.regions.push_back(region.starts_with("/") ? region : posix::JoinPath(directory, region));
  }
  if (!is_sound) return damaged("cannot be understood");
  *result = std::move(read);
  return Status::OK();
}

Status DatabaseFile::Read(const std::string& directory, State* state, DatabaseFile* result) {
  *state = State::kNone;
  // A removal renames DATABASE, and a creation CREATING. A crash leaves one file; the order decides only for files that were
  // copied into the directory.
  for (const State candidate : {State::kDestroying, State::kCreating, State::kWhole}) {
    const std::string file = FilePath(directory, candidate);
    std::string text;
    Status status = posix::ReadSmallFile(file, kMaxFileBytes, &text);
    if (status.IsNotFound()) continue;
    const bool is_torn = status.ok() && candidate == State::kCreating && IsTorn(text);
    if (is_torn) *result = DatabaseFile();
    if (status.ok() && !is_torn) status = Parse(text, file, AbsolutePath(directory), result);
    if (status.ok()) *state = candidate;
    return status;
  }
  return Status::OK();
}

Status DatabaseFile::Write(const std::string& directory, State state) const {
  return posix::ReplaceSmallFile(directory, NameOf(state), ToText());
}

Status DatabaseFile::WriteMark(const std::string& directory) const {
  return posix::CreateSmallFile(directory, NameOf(State::kCreating), ToText());
}

// CRASH  before the rename is durable: the state `from`. After it: the state `to`. Both files never exist together.
Status DatabaseFile::Change(const std::string& directory, State from, State to) {
  const std::string target = FilePath(directory, to);
  if (rename(FilePath(directory, from).c_str(), target.c_str()) != 0) {
    return posix::ErrnoStatus(errno, "rename into place", target);
  }
  return posix::SyncDirectory(directory);
}

// CRASH  before the sync: the file may still exist, and a repetition removes it.
Status DatabaseFile::Remove(const std::string& directory, State state) {
  if (Status status = posix::Remove(FilePath(directory, state)); !status.ok()) return status;
  return posix::SyncDirectory(directory);
}

}  // namespace braiddb
