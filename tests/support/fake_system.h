// FakeSystem: a tree of one's own in place of /proc, /sys and /dev, for what looks up devices, mounts and NUMA nodes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace braiddb::test {

class FakeSystem {
 public:
  // In an empty directory. A file system on the disk vda, whose node is 0, is mounted on /.
  explicit FakeSystem(std::string root) : root_(std::filesystem::canonical(root).string()) {
    Write("/proc/self/mountinfo", "");
    AddBlockDevice("vda", "254:0", "pci0000:00/0000:00:03.0/virtio0", "0");
    Mount("254:0", "/", "ext4", "/dev/vda", "rw,relatime", "rw");
  }

  const std::string& root() const { return root_; }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  // A relative symbolic link at `path` to `target`, both below the root.
  void Link(const std::string& path, const std::string& target) const {
    const std::filesystem::path link = root_ + path;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::remove(link);
    std::filesystem::create_symlink(std::filesystem::relative(root_ + target, link.parent_path()), link);
  }

  // A block device below the device /sys/devices/<parent>, whose numa_node says `node`; none if that is empty.
  void AddBlockDevice(const std::string& name, const std::string& number, const std::string& parent,
                      const std::string& node) const {
    const std::string device = "/sys/devices/" + parent;
    if (!node.empty()) Write(device + "/numa_node", node + "\n");
    AddBlock(device + "/block/" + name, name, number);
    Link(device + "/block/" + name + "/device", device);
  }
  // A device without hardware below it: device-mapper, loop.
  void AddVirtualBlockDevice(const std::string& name, const std::string& number) const {
    AddBlock("/sys/devices/virtual/block/" + name, name, number);
  }
  void AddSlave(const std::string& name, const std::string& slave) const {
    Link("/sys/class/block/" + name + "/slaves/" + slave, "/sys/class/block/" + slave);
  }
  // /dev/<name>, and what /sys says of it.
  void AddDaxDevice(const std::string& name, const std::string& number, const std::string& node) const {
    const std::string device = "/sys/devices/ndbus0/region1/dax1.0/" + name;
    Write(device + "/dev", number + "\n");
    if (!node.empty()) Write(device + "/numa_node", node + "\n");
    Write("/sys/bus/dax/uevent", "");
    Link(device + "/subsystem", "/sys/bus/dax");
    Link("/sys/bus/dax/devices/" + name, device);
    Link("/sys/dev/char/" + number, device);
    Write("/dev/" + name, "");
  }
  void Mount(const std::string& number, const std::string& point, const std::string& type, const std::string& source,
             const std::string& options, const std::string& super) const {
    std::ofstream(root_ + "/proc/self/mountinfo", std::ios::app)
        << "36 35 " << number << " / " << point << " " << options << " shared:1 master:2 - " << type << " " << source << " "
        << super << "\n";
  }
  // NUMA nodes, each with its CPUs ("0-3", "" for none) and its distances ("10 21").
  void AddNode(int node, const std::string& cpus, const std::string& distances) {
    const std::string directory = "/sys/devices/system/node/node" + std::to_string(node);
    Write(directory + "/cpulist", cpus + "\n");
    Write(directory + "/distance", distances + "\n");
    online_ += (online_.empty() ? "" : ",") + std::to_string(node);
    Write("/sys/devices/system/node/online", online_ + "\n");
  }

  // Two NUMA nodes with CPUs; pmem0 is on node 1 and pmem1 on node 0, both mounted with DAX.
  void MakeSwapped(const std::string& mount0, const std::string& mount1) {
    AddNode(0, "0-1", "10 21");
    AddNode(1, "2-3", "21 10");
    AddBlockDevice("pmem0", "259:0", "ndbus0/region0/namespace0.0", "1");
    AddBlockDevice("pmem1", "259:1", "ndbus0/region1/namespace1.0", "0");
    Mount("259:0", mount0, "ext4", "/dev/pmem0", "rw,relatime", "rw,dax=always");
    Mount("259:1", mount1, "xfs", "/dev/pmem1", "rw,relatime", "rw,dax=always,inode64");
  }

 private:
  void AddBlock(const std::string& directory, const std::string& name, const std::string& number) const {
    Write(directory + "/dev", number + "\n");
    Link("/sys/dev/block/" + number, directory);
    Link("/sys/class/block/" + name, directory);
  }

  const std::string root_;
  std::string online_;
};

}  // namespace braiddb::test
