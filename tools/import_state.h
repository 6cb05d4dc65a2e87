// ImportState: the point from which a stopped import goes on, in the file <database>.import.
#pragma once

#include <string>

#include "braiddb/status.h"

namespace braiddb::tools {

struct ImportState {
  uint64_t database = 0;  // identity of the database, so that the state of a replaced database is refused
  std::string source;     // absolute path of the file or of the store
  std::string settings;   // the arguments that give records their meaning: format, form of bytes, family
  std::string reader;     // RecordReader::SaveState
  // Checksum of the file's bytes that end at the saved position, so that another file of that name is not taken for it. 0 for
  // stores.
  uint64_t checksum = 0;
};

std::string ImportStatePath(const std::string& database);
// Atomic: after a crash the file has the old or the new state. InvalidArgument: a file that no import has written has the name.
Status SaveImportState(const std::string& database, const ImportState& state);
// NotFound if there is none.
Status LoadImportState(const std::string& database, ImportState* state);
// A file of this name that no import has written stays.
Status RemoveImportState(const std::string& database);
// The identity of the database in that directory. NotFound if there is no complete database.
Status ReadDatabaseId(const std::string& database, uint64_t* id);
// Of up to 64 KiB before `offset`.
Status ChecksumBefore(int fd, uint64_t offset, uint64_t* checksum);

}  // namespace braiddb::tools
