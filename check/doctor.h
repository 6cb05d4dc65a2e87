// Doctor: what a path is worth as a place for a database, and what to change there. Reads /proc and /sys; leaves no file behind.
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
  kGood,    // as it should be, or a fact
  kNote,    // a database works; `advice` says what would be better
  kChange,  // a database there does not work, or not as promised, unless `advice` is followed
};

struct DoctorFinding {
  DoctorLevel level = DoctorLevel::kGood;
  std::string topic;  // "media", "mount", "map_sync", …
  std::string what;
  std::string advice;  // empty if nothing is to be changed
};

struct Diagnosis {
  std::string path;      // as it was given
  std::string examined;  // the same, absolute; or the nearest directory above it that exists
  Device device;
  PersistMode persist_mode = PersistMode::kPage;  // of a database there
  uint64_t first_part_bytes = 0;                  // of each of its regions; of devdax all of the device
  uint64_t available_bytes = 0;
  std::vector<DoctorFinding> findings;

  bool needs_change() const;
};

struct DoctorOptions {
  // Stands before /proc, /sys and /dev.
  std::string system_root;
  // Maps a new file of the directory with MAP_SYNC, and removes it: 0, or the errno of what failed. Null: does so.
  std::function<int(const std::string& directory)> try_map_sync;
};

// IOError: the path, or the system, cannot be looked at. A path that does not exist is no error.
Status Diagnose(const std::string& path, const DoctorOptions& options, Diagnosis* diagnosis);

// "good", "note" or "change".
const char* NameOf(DoctorLevel level);

}  // namespace braiddb
