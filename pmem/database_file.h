// DatabaseFile: the text file in a database's directory that records the identity of the database and the directories of its
// regions. The name of the file is the state of the database.
//
// LAYOUT  Lines of text. The last line is the XXH3 of all bytes before it.
//           braiddb-database 1              format version
//           database 00c0ffee00c0ffee       identity; the PARTS file of each region has the same one
//           path /data/shop                 the directory, absolute and without symbolic links; escaped (EscapePath)
//           region region-0                 one line for each region, in order; relative to the directory if it is inside
//           region /mnt/pmem1/shop
//           checksum 0123456789abcdef
// STATE   Name of the file:
//           CREATING      the creation of the database is not complete; the database holds no data
//           DATABASE      the database is complete
//           DESTROYING    the removal of the database is not complete
// COMMIT POINT  Of a creation: the rename of CREATING to DATABASE. Of a removal: the rename of DATABASE to DESTROYING.
// PERSIST ORDER  Write: P1 the complete file under a temporary name, synced  P2 the rename  P3 the sync of the directory.
//         WriteMark: the rename comes before the sync, so that both are one commit of the file system's journal.
// RECOVERY  A file is valid if and only if its title and version are known and its checksum matches. CREATING may be torn: a
//         crash may leave the file with a prefix of its bytes, and zeros behind them. Then the creation has made no other file,
//         and an open removes CREATING. A damaged DATABASE or DESTROYING is an error.
// OWNERSHIP  A creation, its repetition and a removal touch a region's directory only if the identity there (PARTS, or the mark
//         CREATING of a region) equals the identity in this file. [CC-60]
// CONCURRENCY  The caller of a method that writes holds the lock of the database.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

struct DatabaseFile {
  // The state of a database, by the name of its file. kWhole: DATABASE.
  enum class State { kNone, kCreating, kWhole, kDestroying };

  uint64_t database_id = 0;          // the identity; 0 only in a torn CREATING
  std::string path;                  // the database's directory, absolute and without symbolic links
  std::vector<std::string> regions;  // absolute

  // True of a CREATING that a crash has torn. Its other fields are empty, and the creation has made no other file.
  bool is_torn() const { return database_id == 0; }

  std::string ToText() const;
  // Parses the text of a file. `file`: the path for messages. `directory`: the absolute directory of the database, which
  // completes relative paths of regions. Corruption: the text is damaged. NotSupported: another version wrote the text.
  static Status Parse(std::string_view text, const std::string& file, const std::string& directory, DatabaseFile* result);

  // Reads the state and the file of the database in `directory`. *state is kNone if there is no such file, or no such
  // directory. If several files exist, DESTROYING counts before CREATING, and CREATING before DATABASE. An error leaves the
  // state unknown.
  static Status Read(const std::string& directory, State* state, DatabaseFile* result);
  // Replaces the file of that state durably. After a crash the file has the old bytes or the new ones.
  Status Write(const std::string& directory, State state) const;
  // Writes CREATING durably, with one commit of the file system's journal. A crash may leave it torn (RECOVERY).
  // REQUIRES: no state has a file.
  Status WriteMark(const std::string& directory) const;
  // Renames the file of `from` to the name of `to`, durably. The content does not change.
  static Status Change(const std::string& directory, State from, State to);
  // Removes the file of a state, durably. OK if the file does not exist.
  static Status Remove(const std::string& directory, State state);

  static std::string FilePath(const std::string& directory, State state);
};

// Encodes any path as printable ASCII without blanks: a '%' and each byte outside 33 to 126 become '%' and two hexadecimal
// digits.
std::string EscapePath(std::string_view path);
// Decodes a result of EscapePath. Returns false if an escape is cut off, is not hexadecimal, or stands for a zero byte.
bool UnescapePath(std::string_view escaped, std::string* path);

// Returns the absolute path. Symbolic links in the part that exists are resolved; slashes at the end are removed. If the system
// cannot tell the current directory, returns `path` as it is.
std::string AbsolutePath(const std::string& path);

}  // namespace braiddb
