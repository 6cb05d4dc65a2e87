// NUMA topology: which nodes there are, where the calling thread runs, where memory is. One node wherever NUMA is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braiddb {

// The system's numbers of NUMA nodes have gaps, and some nodes have memory and no CPU. Nodes with CPUs are also numbered densely
// from 0, in the system's order. `system_node` is a number of the system's, `node` a dense one.
inline constexpr int kUnknownNumaNode = -1;

// Thread safety: const methods may be called concurrently.
class NumaTopology {
 public:
  // `system_root` stands before /sys. One node of number 0 if there is nothing to read.
  static NumaTopology Read(const std::string& system_root);
  // That of this machine, as it was at the first call.
  static const NumaTopology& System();

  uint32_t node_count() const { return static_cast<uint32_t>(with_cpus_.size()); }
  int SystemNode(uint32_t node) const { return with_cpus_[node]; }
  // 0 for a CPU that is not known.
  uint32_t NodeOfCpu(int cpu) const {
    return cpu >= 0 && static_cast<size_t>(cpu) < node_of_cpu_.size() ? node_of_cpu_[static_cast<size_t>(cpu)] : 0;
  }
  // All nodes, also those without CPUs.
  const std::vector<int>& system_nodes() const { return system_nodes_; }
  bool HasSystemNode(int system_node) const;
  // As the firmware says: 10 inside a node. INT_MAX if it is not known.
  int Distance(int from_system_node, int to_system_node) const;

 private:
  std::vector<int> system_nodes_{0};
  std::vector<int> with_cpus_{0};
  std::vector<uint32_t> node_of_cpu_;
  std::map<int, std::vector<int>> distances_;  // by node, to each of system_nodes_
};

// Of NumaTopology::System(). Thread safety: all functions may be called concurrently.

uint32_t NumaNodeCount();

// The dense number of the node of the CPU that runs the calling thread at this moment. A few nanoseconds.
uint32_t CurrentNumaNode();

// Prefers that node for the pages of [address, address + bytes) that have no memory yet, and with `move` also for those that have
// it and are mapped by this process only. A hint: failures are ignored. For a file in memory the preference stays with the file.
void BindToNumaNode(void* address, size_t bytes, int system_node, bool move = false);

// The node that the memory policy of the mapping names, or the one that has most of some pages spread over it; kUnknownNumaNode
// if the system does not say. Reads these pages, so all of the range must be there.
int FindNumaNodeOfMapping(const void* address, size_t bytes);

}  // namespace braiddb
