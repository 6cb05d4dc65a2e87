// FindDevice: finds the mount, the device and the NUMA node of a path, from /proc and /sys. Writes nothing.
//
// MOUNT   The line of /proc/self/mountinfo whose mount point is the longest prefix of the path. Of two such lines the later one
//         counts, since a later mount hides an earlier one.
// DEVICE  /sys/dev/block of the mount's device number. If there is no such directory (btrfs, overlays): the device that the
//         mount names as its source. A character device of the bus dax (/dev/daxX.Y) is its own device.
// BOTTOM  Device-mapper and md devices lead to the devices in their slaves/, a loop device to the device of its backing file.
//         Other devices are at the bottom. A path's NUMA node is the node of all of its bottom devices, -1 if these differ.
// NODE    Of one device: the first file `numa_node` that names a node, from the device's directory in /sys upwards. Of tmpfs:
//         the mount option mpol, if it names one node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "util/numa_topology.h"

namespace braiddb {

enum class DeviceKind : uint8_t {
  kDisk,       // a file system without DAX, or one whose device is unknown
  kDax,        // a file system with DAX: mappings of its files are persistent memory
  kDeviceDax,  // a character device whose mapping is persistent memory, without a file system
  kMemory,     // tmpfs, ramfs, hugetlbfs: DRAM, or a memory device that the system uses as DRAM
};

// A path's device, and the mount through which the path reaches it.
struct Device {
  DeviceKind kind = DeviceKind::kDisk;
  std::string name;           // "pmem0", "dax0.0", "dm-3"; empty for kMemory, and if the device is unknown
  uint32_t major_number = 0;  // device number of the mount, or of the dax device
  uint32_t minor_number = 0;
  int numa_node = kUnknownNumaNode;  // the system's number of the node
  std::string numa_node_from;        // the file in /sys or the mount option that names the node; empty if none does
  // Directories in /sys of the bottom devices, sorted, without symbolic links.
  std::vector<std::string> bottom;

  // Fields of the mount; empty for kDeviceDax.
  std::string mount_point;
  std::string mount_source;
  std::string mount_options;  // options of the mount, then of the file system; separated by commas
  std::string file_system;    // "ext4"
};

// Fills *device for an existing path. `system_root`: prefix of /proc, /sys and /dev, for the trees of tests; empty for the
// system's own. An unknown device is no error: its fields stay empty. NotFound: the path does not exist. IOError: the path or
// the list of mounts cannot be read. Thread-safe.
Status FindDevice(const std::string& path, const std::string& system_root, Device* device);

// Returns "DAX", "devdax", "memory" or "disk".
const char* NameOf(DeviceKind kind);

// Finds a mount option in a comma-separated list. *value is "" for an option without a value, and is set only if the result is
// true. A value may itself be a list of numbers with commas, as in mpol=bind:0,1.
bool FindMountOption(std::string_view options, std::string_view name, std::string* value);

}  // namespace braiddb
