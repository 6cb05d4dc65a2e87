// NUMA topology: the nodes, the calling thread's node, and the node of memory. One node if the system has no NUMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braiddb {

// The system's node numbers have gaps, and some nodes have memory but no CPU. The nodes with CPUs are also numbered densely from
// 0, in the system's order. `system_node` is a number of the system, `node` a dense one.
inline constexpr int kUnknownNumaNode = -1;

// Thread safety: const methods may be called concurrently.
class NumaTopology {
 public:
  // Reads the topology below `system_root`/sys. One node with number 0 if nothing can be read.
  static NumaTopology Read(const std::string& system_root);
  // The topology of this machine at the first call.
  static const NumaTopology& System();

  uint32_t node_count() const { return static_cast<uint32_t>(with_cpus_.size()); }
  int SystemNode(uint32_t node) const { return with_cpus_[node]; }
  // 0 for an unknown CPU.
  uint32_t NodeOfCpu(int cpu) const {
    return cpu >= 0 && static_cast<size_t>(cpu) < node_of_cpu_.size() ? node_of_cpu_[static_cast<size_t>(cpu)] : 0;
  }
  // All nodes, including those without CPUs.
  const std::vector<int>& system_nodes() const { return system_nodes_; }
  bool HasSystemNode(int system_node) const;
  // The distance that the firmware reports: 10 within a node. INT_MAX if unknown.
  int Distance(int from_system_node, int to_system_node) const;

 private:
  std::vector<int> system_nodes_{0};
  std::vector<int> with_cpus_{0};
  std::vector<uint32_t> node_of_cpu_;
  std::map<int, std::vector<int>> distances_;  // by node: the distances to each of system_nodes_
};

// These functions use NumaTopology::System(). Thread safety: all may be called concurrently.

uint32_t NumaNodeCount();

// The dense number of the node of the CPU that runs the calling thread now. Takes a few nanoseconds.
uint32_t CurrentNumaNode();

// Prefers the node for the pages of [address, address + bytes) that have no memory yet. `move`: also for pages that have memory
// and are mapped by this process only. A hint: failures are ignored. For a file in memory the preference stays with the file.
void BindToNumaNode(void* address, size_t bytes, int system_node, bool move = false);

// The node that the memory policy of the mapping names, or the node of most of a sample of its pages; kUnknownNumaNode if the
// system does not tell. Reads the sampled pages, so the whole range must be mapped.
int FindNumaNodeOfMapping(const void* address, size_t bytes);

}  // namespace braiddb
