#include "pmem/device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "pmem/posix.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLayers = 16;  // stacked devices that FindBottom follows; a cycle would not end otherwise

// Parses a decimal number with optional blanks or a newline behind it. Returns false for anything else.
bool ParseInt(std::string_view text, int* value) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Returns the first line of a file; "" if there is none.
std::string FirstLine(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Decodes a field of mountinfo: the kernel writes blanks, backslashes and newlines as a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  std::string plain;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) && is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Returns true if `directory` is the path or one of its parents: "/mnt/a" does not contain "/mnt/ab".
bool BeginsWithDirectory(const std::string& path, const std::string& directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

// Fills the mount's fields and the device number. A line with an equally long mount point replaces an earlier one.
Status FindMount(const std::string& path, const std::string& system_root, Device* device) {
  const std::string file = system_root + "/proc/self/mountinfo";
  std::ifstream in(file);
  if (!in) return Status::IOError("cannot read " + file + ", the list of mounts; mount /proc");
  bool found = false;
  for (std::string line; std::getline(in, line);) {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    std::istringstream words(line);
    std::string id, parent, number, root, point, options, word, type, source, super;
    words >> id >> parent >> number >> root >> point >> options;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> super;
    point = Unescape(point);
    const size_t colon = number.find(':');
    int major_number = 0, minor_number = 0;
    if (colon == std::string::npos || !ParseInt(number.substr(0, colon), &major_number) ||
        !ParseInt(number.substr(colon + 1), &minor_number) || !BeginsWithDirectory(path, point) ||
        point.size() < device->mount_point.size()) {
      continue;
    }
    found = true;
    device->major_number = static_cast<uint32_t>(major_number);
    device->minor_number = static_cast<uint32_t>(minor_number);
    device->mount_point = point;
    device->mount_source = Unescape(source);
    device->mount_options = options + (super.empty() ? "" : "," + super);
    device->file_system = type;
  }
  return found ? Status::OK() : Status::IOError(file + " has no mount of " + path + "; mount /proc of this mount namespace");
}

// Returns the directory in /sys of a device number; empty if there is none. `kind`: "block" or "char".
std::string DirectoryOf(const std::string& system_root, const char* kind, uint32_t major_number, uint32_t minor_number) {
  std::error_code error;
  const fs::path link =
      system_root + "/sys/dev/" + kind + "/" + std::to_string(major_number) + ":" + std::to_string(minor_number);
  const fs::path directory = fs::canonical(link, error);
  return error ? std::string() : directory.string();
}

// Returns the directory in /sys of the block device that a mount names as its source; empty if the source is no block device.
std::string DirectoryOfSource(const std::string& system_root, const std::string& source) {
  if (!source.starts_with("/dev/")) return {};
  std::error_code error;
  fs::path node = fs::canonical(system_root + source, error);  // /dev/mapper/name is a link to /dev/dm-0
  if (error) node = source;
  const fs::path directory = fs::canonical(system_root + "/sys/class/block/" + node.filename().string(), error);
  return error ? std::string() : directory.string();
}

// Walks from the device's directory up to /sys, and takes the first numa_node that is not negative. *node and *from stay as
// they are if there is none.
void FindNodeAbove(const std::string& system_root, const std::string& directory, int* node, std::string* from) {
  std::error_code error;
  const fs::path top = fs::canonical(system_root + "/sys", error);
  for (fs::path at = directory; at != top && at.has_relative_path(); at = at.parent_path()) {
    for (const char* name : {"numa_node", "device/numa_node"}) {
      int value = kUnknownNumaNode;
      if (!ParseInt(FirstLine((at / name).string()), &value) || value < 0) continue;
      *node = value;
      *from = fs::canonical(at / name, error).string();
      return;
    }
  }
}

// Appends the bottom devices of the device in `directory`, each once. A device whose parts cannot be found counts as bottom.
void FindBottom(const std::string& system_root, const std::string& directory, int layers, std::vector<std::string>* bottom) {
  std::error_code error;
  if (layers < kMaxLayers) {
    bool has_slaves = false;
    for (const fs::directory_entry& slave : fs::directory_iterator(directory + "/slaves", error)) {
      const fs::path below = fs::canonical(slave.path(), error);
      if (error) continue;
      has_slaves = true;
      FindBottom(system_root, below.string(), layers + 1, bottom);
    }
    if (has_slaves) return;
    const std::string backing = FirstLine(directory + "/loop/backing_file");
    Device below;
    if (!backing.empty() && FindMount(backing, system_root, &below).ok()) {
      std::string under = DirectoryOf(system_root, "block", below.major_number, below.minor_number);
      if (under.empty()) under = DirectoryOfSource(system_root, below.mount_source);
      if (!under.empty()) return FindBottom(system_root, under, layers + 1, bottom);
    }
  }
  if (std::find(bottom->begin(), bottom->end(), directory) == bottom->end()) bottom->push_back(directory);
}

// Fills name, bottom devices and NUMA node of a device. If the bottom devices have different nodes, the node is unknown.
void DescribeDevice(const std::string& system_root, const std::string& directory, Device* device) {
  device->name = fs::path(directory).filename().string();
  FindBottom(system_root, directory, 0, &device->bottom);
  std::sort(device->bottom.begin(), device->bottom.end());
  std::optional<int> node;
  for (const std::string& below : device->bottom) {
    int found = kUnknownNumaNode;
    FindNodeAbove(system_root, below, &found, &device->numa_node_from);
    if (node.value_or(found) != found) {  // the devices share no node
      node.reset();
      device->numa_node_from.clear();
      break;
    }
    node = found;
  }
  device->numa_node = node.value_or(kUnknownNumaNode);
}

// Returns the node of a memory policy such as "bind:1" or "prefer=static:0"; unknown if the policy names several nodes or none.
int NodeOfPolicy(std::string_view policy) {
  const size_t colon = policy.find(':');
  int node = kUnknownNumaNode;
  if (colon == std::string_view::npos || !ParseInt(policy.substr(colon + 1), &node) || node < 0) return kUnknownNumaNode;
  return node;
}

// Returns true if files at the path are mapped by DAX. With dax=inode, and without the option, the attribute of the file or
// directory decides.
bool UsesDax(const std::string& path, const std::string& options) {
  std::string value;
  if (FindMountOption(options, "dax", &value) && value != "inode") return value != "never";
  struct statx state;
  return statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &state) == 0 && (state.stx_attributes & STATX_ATTR_DAX) != 0;
}

// Returns true for file systems whose files live in DRAM.
bool IsMemory(const std::string& file_system) {
  return file_system == "tmpfs" || file_system == "ramfs" || file_system == "hugetlbfs";
}

// Returns true if the path is a device of the bus dax, and fills *device. In a test's tree, a plain file below
// `system_root`/dev stands for the device of the same name.
bool FindDaxDevice(const std::string& path, const std::string& system_root, const struct stat& st, Device* device) {
  std::string directory;
  if (S_ISCHR(st.st_mode)) {
    directory = DirectoryOf(system_root, "char", major(st.st_rdev), minor(st.st_rdev));
  } else if (!system_root.empty() && path.starts_with(system_root + "/dev/")) {
    std::error_code error;
    const fs::path found = fs::canonical(system_root + "/sys/bus/dax/devices/" + fs::path(path).filename().string(), error);
    if (!error) directory = found.string();
  }
  if (directory.empty()) return false;
  std::error_code error;
  const std::string bus = fs::canonical(directory + "/subsystem", error).filename().string();
  if (error || bus != "dax") return false;
  device->kind = DeviceKind::kDeviceDax;
  const std::string number = FirstLine(directory + "/dev");
  const size_t colon = number.find(':');
  int major_number = 0, minor_number = 0;
  if (colon != std::string::npos && ParseInt(number.substr(0, colon), &major_number) &&
      ParseInt(number.substr(colon + 1), &minor_number)) {
    device->major_number = static_cast<uint32_t>(major_number);
    device->minor_number = static_cast<uint32_t>(minor_number);
  }
  DescribeDevice(system_root, directory, device);
  return true;
}

}  // namespace

const char* NameOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kDisk:
      return "disk";
    case DeviceKind::kDax:
      return "DAX";
    case DeviceKind::kDeviceDax:
      return "devdax";
    case DeviceKind::kMemory:
      return "memory";
  }
  return "unknown";
}

// A later element of only digits and dashes continues the value, as in mpol=bind:0,1. Another element ends it.
bool FindMountOption(std::string_view options, std::string_view name, std::string* value) {
  bool found = false;
  while (!options.empty()) {
    const size_t comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    // The list of nodes of mpol has commas as well, so numbers behind the option belong to its value.
    if (option == name || (option.starts_with(name) && option[name.size()] == '=')) {
      found = true;
      *value = option.size() > name.size() ? option.substr(name.size() + 1) : std::string_view();
    } else if (found && !option.empty() && option.find_first_not_of("0123456789-") == std::string_view::npos) {
      value->append(",").append(option);
    } else if (found) {
      return true;
    }
    if (comma == std::string_view::npos) break;
    options.remove_prefix(comma + 1);
  }
  return found;
}

// STEPS  1 a character device of the bus dax describes itself  2 else find the mount  3 tmpfs and its like: the node is that of
//        mpol 4 else find the block device of the mount, its bottom devices and their node.
Status FindDevice(const std::string& path, const std::string& system_root, Device* device) {
  *device = Device();
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
  std::string canonical;
  if (Status status = posix::Canonical(path, &canonical); !status.ok()) return status;
  if (FindDaxDevice(canonical, system_root, st, device)) return Status::OK();
  if (Status status = FindMount(canonical, system_root, device); !status.ok()) return status;
  std::string policy;
  if (IsMemory(device->file_system)) {
    device->kind = DeviceKind::kMemory;
    if (!FindMountOption(device->mount_options, "mpol", &policy)) return Status::OK();
    device->numa_node = NodeOfPolicy(policy);
    if (device->numa_node != kUnknownNumaNode) device->numa_node_from = "mpol=" + policy;
    return Status::OK();
  }
  device->kind = UsesDax(canonical, device->mount_options) ? DeviceKind::kDax : DeviceKind::kDisk;
  std::string directory = DirectoryOf(system_root, "block", device->major_number, device->minor_number);
  if (directory.empty()) directory = DirectoryOfSource(system_root, device->mount_source);
  if (!directory.empty()) DescribeDevice(system_root, directory, device);
  return Status::OK();
}

}  // namespace braiddb
