// DatabaseFile: what the directory of a database says about it: its identity, and the directories of its regions.
//
// LAYOUT  Text, the last line is the XXH3 of all bytes before it:
//           braiddb-database 1              format version
//           database 00c0ffee00c0ffee       identity; the PARTS file of each region has the same one
//           path /data/shop                 the directory, absolute and without symbolic links; escaped (EscapePath)
//           region region-0                 one line for each region, in order; relative to the directory if it is inside
//           region /mnt/pmem1/shop
//           checksum 0123456789abcdef
// STATE   The name of the file is the state of the database:
//           CREATING      its creation is not complete; it holds no data
//           DATABASE      it is complete
//           DESTROYING    its removal is not complete
// TORN    CREATING has its name before it is durable, which saves a commit of the file system's journal. So a crash may leave it
//         with a part of its bytes, and zeros behind them. Then the creation has made no other file yet.
// COMMIT POINT  Of a creation the rename of CREATING to DATABASE, of a removal the rename of DATABASE to DESTROYING.
// OWNERSHIP  A creation, its repetition and a removal touch a region's directory only if the identity there (PARTS, or the mark
//         CREATING of a region) is the identity in this file. [CC-60]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

struct DatabaseFile {
  enum class State { kNone, kCreating, kWhole, kDestroying };

  uint64_t database_id = 0;
  std::string path;
  std::vector<std::string> regions;  // absolute

  // Of a CREATING that a crash has left without all of its bytes: nothing is known, and there is nothing but this file.
  bool is_torn() const { return database_id == 0; }

  std::string ToText() const;
  // Corruption if the text is damaged, NotSupported if another version wrote it. `file` is for the messages; relative regions are
  // made absolute by `directory`.
  static Status Parse(std::string_view text, const std::string& file, const std::string& directory, DatabaseFile* result);

  // What `directory` says. kNone if it has no such file, or does not exist. An error means that nobody can tell.
  static Status Read(const std::string& directory, State* state, DatabaseFile* result);
  // Replaces the file of that state, durably and whole.
  Status Write(const std::string& directory, State state) const;
  // The same of CREATING, where no state has a file; see TORN. In one commit of the file system's journal.
  Status WriteMark(const std::string& directory) const;
  // Moves the file from one state to the next one, durably.
  static Status Change(const std::string& directory, State from, State to);
  // Removes the file of a state, durably. OK if there is none.
  static Status Remove(const std::string& directory, State state);

  static std::string FilePath(const std::string& directory, State state);
};

// One line of text for any path: a blank, '%', and bytes outside of 33 to 126 become '%' and two hexadecimal digits.
std::string EscapePath(std::string_view path);
// False if `escaped` is no result of EscapePath.
bool UnescapePath(std::string_view escaped, std::string* path);

// The lines of a text whose last line is the checksum of the others; empty if the checksum is missing or wrong.
std::vector<std::string> CheckedLines(std::string_view text);
// `body`, which ends with a newline, and its checksum line.
std::string WithChecksum(std::string body);

// Absolute, without symbolic links in the part that exists.
std::string AbsolutePath(const std::string& path);

}  // namespace braiddb
