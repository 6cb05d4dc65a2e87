// FindDevice: the mount and the device that a path lies on, from /proc and /sys. Nothing is written.
//
// MOUNT   the line of /proc/self/mountinfo with the longest mount point that the path begins with; of two such lines the later.
// DEVICE  /sys/dev/block of the mount's device number. If there is none (btrfs, overlays): the device that the mount names as its
//         source. A character device of the bus dax (/dev/daxX.Y) is its own device.
// BELOW   Device-mapper and md devices lead to their slaves/, loop devices to the device of their backing file, all others are
//         at the bottom. The NUMA node is that of all devices at the bottom; -1 if they differ.
// NODE    of one device: the first file `numa_node` with a node in it, from the device's directory in /sys upwards. Of tmpfs: its
//         mount option mpol, if that names one node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "util/numa_topology.h"

namespace braiddb {

enum class DeviceKind : uint8_t {
  kDisk,       // a file system without DAX, or one whose device is not known
  kDax,        // a file system that maps persistent memory into the process
  kDeviceDax,  // a character device that does so, without a file system
  kMemory,     // tmpfs, ramfs, hugetlbfs: DRAM, or a memory device that the system uses as DRAM
};

struct Device {
  DeviceKind kind = DeviceKind::kDisk;
  std::string name;           // "pmem0", "dax0.0", "dm-3"; empty for kMemory, and if there is none
  uint32_t major_number = 0;  // of `name`
  uint32_t minor_number = 0;
  int numa_node = kUnknownNumaNode;  // as the system numbers them
  std::string numa_node_from;        // the file or the mount option that says so; empty if none does
  // Directories in /sys of the devices at the bottom, without symbolic links.
  std::vector<std::string> bottom;

  // Of the mount. Empty for kDeviceDax.
  std::string mount_point;
  std::string mount_source;
  std::string mount_options;  // of the mount, then of the file system; separated by commas
  std::string file_system;    // "ext4"
};

// `path` exists. `system_root` stands before /proc, /sys and /dev: tests have a tree of their own there.
// IOError: the path, or the list of mounts, cannot be read. A device that is not known is no error.
Status FindDevice(const std::string& path, const std::string& system_root, Device* device);

// "DAX", "devdax", "memory" or "disk".
const char* NameOf(DeviceKind kind);

// The value of one of the options, which commas separate: "" for one without a value. False if it is not there.
bool FindMountOption(std::string_view options, std::string_view name, std::string* value);

}  // namespace braiddb
