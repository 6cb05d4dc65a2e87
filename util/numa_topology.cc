#include "util/numa_topology.h"

#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <unistd.h>

#include <climits>
#include <vector>

namespace braiddb {

namespace {

struct Topology {
  std::vector<int> system_nodes{0};      // by dense number
  std::vector<uint32_t> node_of_cpu{0};  // dense numbers by CPU; 0 for CPUs beyond the end

  static Topology Discover() {
    Topology topology;
    if (numa_available() < 0) return topology;
    std::vector<int> nodes;
    std::vector<uint32_t> node_of_cpu(static_cast<size_t>(numa_num_possible_cpus()), 0);
    bitmask* cpus = numa_allocate_cpumask();
    for (int node = 0; node <= numa_max_node(); ++node) {
      if (numa_node_to_cpus(node, cpus) != 0 || numa_bitmask_weight(cpus) == 0) continue;
      for (size_t cpu = 0; cpu < node_of_cpu.size(); ++cpu) {
        if (numa_bitmask_isbitset(cpus, static_cast<unsigned>(cpu))) node_of_cpu[cpu] = static_cast<uint32_t>(nodes.size());
      }
      nodes.push_back(node);
    }
    numa_free_cpumask(cpus);
    if (nodes.empty()) return topology;
    topology.system_nodes = std::move(nodes);
    topology.node_of_cpu = std::move(node_of_cpu);
    return topology;
  }
};

const Topology& GetTopology() {
  static const auto* const kTopology = new Topology(Topology::Discover());
  return *kTopology;
}

}  // namespace

uint32_t NumaNodeCount() { return static_cast<uint32_t>(GetTopology().system_nodes.size()); }

uint32_t CurrentNumaNode() {
  const Topology& topology = GetTopology();
  if (topology.system_nodes.size() == 1) return 0;
  const int cpu = sched_getcpu();
  if (cpu < 0 || static_cast<size_t>(cpu) >= topology.node_of_cpu.size()) return 0;
  return topology.node_of_cpu[static_cast<size_t>(cpu)];
}

void BindToNumaNode(void* address, size_t bytes, uint32_t node) {
  const Topology& topology = GetTopology();
  if (topology.system_nodes.size() == 1 || node >= topology.system_nodes.size() || bytes == 0) return;
  const auto system_node = static_cast<size_t>(topology.system_nodes[node]);
  constexpr size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned long> mask(system_node / kBits + 1, 0);
  mask[system_node / kBits] = 1ul << (system_node % kBits);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(address) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(address) + bytes;
  // Preferred and not bound: a full node must not kill the process. The kernel counts one bit more than it reads.
  (void)mbind(reinterpret_cast<void*>(begin), end - begin, MPOL_PREFERRED, mask.data(), mask.size() * kBits + 1, 0);
}

}  // namespace braiddb
