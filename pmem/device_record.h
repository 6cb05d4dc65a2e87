// DeviceRecord: the file of a region that records its memory modules, and each module's count of unsafe shutdowns, when the
// region was opened last. It detects stores that were flushed and yet lost.
//
// WHY     A module counts an unsafe shutdown if the platform could not write out its buffers at a power loss (ADR failed).
//         Flushed stores may then be lost without a trace in the data. A power loss with working ADR is not counted.
//
// LAYOUT  `DEVICES` in the region's directory, lines of text:
//             braiddb-devices 1
//             state in-use                 or closed: the region was closed cleanly
//             module nmem0 2 8680-56341200 name, count of unsafe shutdowns ("-": unknown), identity, the rest of the line
//             checksum 0123456789abcdef    of all bytes before this line
//         A region on media without memory modules (disk, tmpfs) has no such file.
// COMMIT POINT   The rename of a complete, synced file to `DEVICES`.
// PERSIST ORDER  D1 `in-use`, with the present modules, before PMDK opens the pool  D2 the present modules, before a part is
//         added, if the modules have changed  D3 `closed`, after PMDK has closed the pool. [CC-39]
// RECOVERY  A record with `in-use` belongs to a session that did not end cleanly. If a module of the record has a larger count
//         now, or is missing, flushed stores may be lost. Then an open fails with Corruption until a user acknowledges the loss
//         (CheckDatabase). A record with `closed` is replaced, since the pool may have been moved. A region without a record
//         gets one.
// SOURCE  The files of /sys that libndctl reads: nmemN/nfit/id and nmemN/nfit/dirty_shutdown, or the same in papr/ or cxl/.
//         Only the files of the region's own device are read.
// CONCURRENCY  The thread that writes the record holds the region's lock.
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
  std::string name;                          // "nmem0"; may change at each boot, so `identity` is what is compared
  std::optional<uint64_t> unsafe_shutdowns;  // count over the life of the module; none: the system does not tell it
  std::string identity;                      // serial number; a module without one is not recorded
  bool operator==(const MemoryModule&) const = default;
};

// The content of the file.
struct DeviceRecord {
  bool in_use = false;
  std::vector<MemoryModule> modules;

  std::string ToText() const;
  // Parses a result of ToText. Corruption: the text is damaged. `path` is for the message.
  static Status Parse(std::string_view text, const std::string& path, DeviceRecord* record);
};

// Finds the memory modules of the device of the first part in `directory`, or of the directory itself if there is no part yet.
// *modules is sorted by identity, each module once; empty if the system knows none. *device: the name of the device, such as
// "pmem0". Errors as of FindDevice.
Status FindMemoryModules(const std::string& directory, std::vector<MemoryModule>* modules, std::string* device);

// Returns "" if the session of `record` lost no flushed store: the session ended cleanly, or no module has counted an unsafe
// shutdown since. Otherwise returns the event, with the module and the device.
std::string FindUnsafeShutdown(const DeviceRecord& record, const std::vector<MemoryModule>& now, const std::string& device);

// Returns a Corruption with the event `what` and advice.
Status UnsafeShutdown(const std::string& directory, const std::string& what);

// The record of one region. Thread safety: one thread at a time.
class RegionDevices {
 public:
  // `directory` must outlive the object. `log` gets one line for each record that could not be read or written; may be empty.
  RegionDevices(const std::string& directory, std::function<void(std::string_view)> log)
      : directory_(directory), log_(std::move(log)) {}

  // Sets *what to the unsafe shutdown of the region's last session, or to the damage of its record; "" if there is none.
  // Changes no file. An error: the record cannot be read.
  Status Examine(std::string* what);
  // D1. Corruption, with the module and advice, if the last session may have lost stores. Then nothing is written.
  Status Enter();
  // D2. Finds the modules again and replaces the record if they have changed: a new part may lie on another module.
  Status BeforeGrowth();
  // D3. Does nothing if Enter has recorded nothing. A failure is logged: the next open then compares counts, which is safe.
  void Leave();
  // A user accepts the possible loss: records the present modules as `closed`.
  Status Acknowledge();

 private:
  // Finds the present modules and reads the record; *stored is empty if there is none. If the modules cannot be found, logs the
  // reason and returns OK.
  Status Load(std::optional<DeviceRecord>* stored);
  // Replaces the record by the present modules; removes it if there are none. Does nothing if the modules are unknown.
  Status Store(bool in_use);

  const std::string& directory_;
  const std::function<void(std::string_view)> log_;
  std::vector<MemoryModule> modules_;  // the present ones
  std::string device_;                 // name of the region's device
  bool known_ = false;                 // modules_ is known; false without /proc, for example: then the record is left alone
  bool recorded_ = false;              // the record on media says `in-use`
};

}  // namespace braiddb
