// Doctor: examines a path as a place for a database, and advises what to change. Reads /proc and /sys; leaves no file behind.
//
// EXAMINED  Media and mount, permissions, MAP_SYNC, the way stores become durable, NUMA node, unsafe shutdowns, huge pages,
//           free space, limits of the process. Each result is a finding with a topic and a level.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "pmem/device.h"

namespace braiddb {

enum class DoctorLevel : uint8_t {
  kGood,    // right, or a fact
  kNote,    // a database works; `advice` names an improvement
  kChange,  // a database does not work there, or not as promised, unless the user follows `advice`
};

// One result of an examination.
struct DoctorFinding {
  DoctorLevel level = DoctorLevel::kGood;
  std::string topic;  // "media", "mount", "map_sync", …
  std::string what;
  std::string advice;  // empty for kGood
};

// The result of Diagnose.
struct Diagnosis {
  std::string path;      // the path as it was given
  std::string examined;  // its absolute path, or the nearest parent that exists
  Device device;
  PersistMode persist_mode = PersistMode::kPage;  // the mode that kAuto resolves to for a database there
  uint64_t first_part_bytes = 0;                  // first size of each region; on a dax device all of it
  uint64_t available_bytes = 0;
  std::vector<DoctorFinding> findings;

  // Returns true if a finding has the level kChange.
  bool needs_change() const;
};

struct DoctorOptions {
  // Prefix of /proc, /sys and /dev, for tests; empty for the system's own.
  std::string system_root;
  // Maps a new file of the directory with MAP_SYNC and removes it. Returns 0 or an errno. Null: the Doctor's own function does
  // so.
  std::function<int(const std::string& directory)> try_map_sync;
};

// Examines `path` and fills *diagnosis. A path that does not exist is no error: its nearest parent is examined.
// InvalidArgument: the path is empty. IOError: the path, or the list of mounts, cannot be read. Thread-safe.
Status Diagnose(const std::string& path, const DoctorOptions& options, Diagnosis* diagnosis);

// Returns "good", "note" or "change".
const char* NameOf(DoctorLevel level);

}  // namespace braiddb
