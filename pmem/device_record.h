// DeviceRecord: the memory modules that a region lay on when it was opened last, and the unsafe shutdowns each had counted.
//
// A module counts an unsafe shutdown if the platform could not write its buffers out at a power loss (ADR failed). Flushed
// stores may then be lost. A power loss with working ADR is not counted.
//
// LAYOUT  `DEVICES` in the region's directory, text:
//             braiddb-devices 1
//             state in-use                 or closed: the region was closed cleanly
//             module nmem0 2 8680-56341200 name, count of unsafe shutdowns ("-": unknown), identity, the rest of the line
//             checksum 0123456789abcdef    of all bytes before this line
//         Replaced by the rename of a complete, synced file. There is none on media without memory modules (disk, tmpfs).
//
// PERSIST ORDER  D1 `in-use`, with the modules of now, before PMDK opens the pool  D2 the modules of now, before a part is added,
//         if they have changed  D3 `closed`, after PMDK has closed the pool.
// RECOVERY  A record that says `in-use` is of a life that did not end cleanly. If a module of it has counted more since, or is no
//         longer there, flushed stores may be lost: an open is Corruption until a user acknowledges that (CheckDatabase). A
//         record that says `closed` is made anew: the pool may have moved. A region of an older version, without one, gets one.
// SOURCE  The files of /sys that libndctl reads: nmemN/nfit/id and nmemN/nfit/dirty_shutdown (papr/, cxl/). A look at one device
//         takes some ten files; a context of libndctl looks at every device of the machine, at each open.
// CONCURRENCY  Whoever writes the record has the region's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

inline constexpr char kDeviceRecordName[] = "DEVICES";

struct MemoryModule {
  std::string name;                          // "nmem0"; another one after each boot, perhaps
  std::optional<uint64_t> unsafe_shutdowns;  // since it was made
  std::string identity;                      // "" if the system does not know it: then the module is not recorded
  bool operator==(const MemoryModule&) const = default;
};

struct DeviceRecord {
  bool in_use = false;
  std::vector<MemoryModule> modules;

  std::string ToText() const;
  // Corruption if the text is not what ToText makes.
  static Status Parse(std::string_view text, const std::string& path, DeviceRecord* record);
};

// The memory modules behind the device that the first part in `directory`, or the directory, lies on, in a stable order; none if
// the system knows none. `device`: the name of the device, such as "pmem0".
Status FindMemoryModules(const std::string& directory, std::vector<MemoryModule>* modules, std::string* device);

// "" if the life that `record` is of lost nothing: it ended cleanly, or no module has counted since. Else what happened, to which
// module of which device.
std::string FindUnsafeShutdown(const DeviceRecord& record, const std::vector<MemoryModule>& now, const std::string& device);

// Corruption that says what happened to the region, and what to do.
Status UnsafeShutdown(const std::string& directory, const std::string& what);

// The record of one region. Thread safety: one thread at a time.
class RegionDevices {
 public:
  // `directory` outlives the object. `log` may be empty.
  RegionDevices(const std::string& directory, std::function<void(std::string_view)> log)
      : directory_(directory), log_(std::move(log)) {}

  // What is wrong with the last life of the region, "" for nothing. Changes nothing. An error if the record cannot be read.
  Status Examine(std::string* what);
  // D1. Corruption, which names the module and what to do, if the last life was not safe.
  Status Enter();
  // D2
  Status BeforeGrowth();
  // D3. Does nothing unless Enter was OK.
  void Leave();
  // The user says that the data are as they should be: the modules of now are recorded, closed.
  Status Acknowledge();

 private:
  Status Load(std::optional<DeviceRecord>* stored);
  Status Store(bool in_use);

  const std::string& directory_;
  const std::function<void(std::string_view)> log_;
  std::vector<MemoryModule> modules_;  // of now
  std::string device_;
  bool known_ = false;     // false without /proc, say: then nothing is told, and the record stays as it is
  bool recorded_ = false;  // there is a record, and it says that the region is in use
};

}  // namespace braiddb
