// Import: writes the records of a reader to a database.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "tools/progress.h"
#include "tools/record.h"
#include "tools/session.h"

namespace braiddb::tools {

struct ImportJob {
  Session* session = nullptr;  // records that name no family go to session->family
  RecordReader* reader = nullptr;
  std::string source;                            // name of the reader's source, for messages
  std::string skip_file;                         // receives broken records; empty: a broken record ends the import
  Progress::Unit unit = Progress::Unit::kBytes;  // of RecordReader::Done
  uint64_t total = 0;                            // of the source, in the same unit; 0 if unknown
  size_t threads = 1;                            // that write
  // Keeps a state of the reader (RecordReader::SaveState). All records before it are written and durable.
  std::function<Status(const std::string& state)> save_state;
};

struct ImportReport {
  uint64_t records = 0;  // written
  uint64_t skipped = 0;
  bool is_sorted = true;  // every key was larger than the one before, in its family
  bool is_complete = false;
};

// Records are written in batches. As long as keys ascend they are all different, so several threads write batches at once.
// OK after an interrupt too (tools/interrupt.h), with is_complete false. Saves the state about once a second, and if it does not
// complete.
//   InvalidArgument  a record is broken; the message has its position. All records before it are written
Status Import(const ImportJob& job, ImportReport* report);

}  // namespace braiddb::tools
