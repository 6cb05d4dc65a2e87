#include "util/numa_topology.h"

#include <numaif.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <sstream>

namespace braiddb {

namespace {

constexpr size_t kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;
constexpr int kMaxSystemNode = 1023;  // the kernel's limit
constexpr int kMaxCpu = 65535;
constexpr size_t kSampledPages = 64;

// Parses a list like "0-3,8"; skips numbers above `most`.
std::vector<int> ParseList(const std::string& text, int most) {
  std::vector<int> numbers;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    char* end = nullptr;
    const long first = std::strtol(range.c_str(), &end, 10);
    if (end == range.c_str()) continue;
    const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
    for (long number = std::max(0l, first); number <= std::min<long>(last, most); ++number) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

std::string FirstLine(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The only node of a mask; kUnknownNumaNode if the mask has none or several.
int OnlyNode(const unsigned long* mask, size_t words) {
  int only = kUnknownNumaNode;
  for (size_t bit = 0; bit < words * kBitsPerWord; ++bit) {
    if ((mask[bit / kBitsPerWord] >> (bit % kBitsPerWord) & 1) == 0) continue;
    if (only != kUnknownNumaNode) return kUnknownNumaNode;
    only = static_cast<int>(bit);
  }
  return only;
}

}  // namespace

NumaTopology NumaTopology::Read(const std::string& system_root) {
  NumaTopology topology;
  const std::string directory = system_root + "/sys/devices/system/node";
  const std::vector<int> nodes = ParseList(FirstLine(directory + "/online"), kMaxSystemNode);
  std::vector<int> with_cpus;
  for (const int node : nodes) {
    const std::string of_node = directory + "/node" + std::to_string(node);
    std::istringstream row(FirstLine(of_node + "/distance"));
    row.imbue(std::locale::classic());
    for (int distance; row >> distance;) topology.distances_[node].push_back(distance);
    const std::vector<int> cpus = ParseList(FirstLine(of_node + "/cpulist"), kMaxCpu);
    if (cpus.empty()) continue;
    for (const int cpu : cpus) {
      if (topology.node_of_cpu_.size() <= static_cast<size_t>(cpu)) topology.node_of_cpu_.resize(static_cast<size_t>(cpu) + 1);
      topology.node_of_cpu_[static_cast<size_t>(cpu)] = static_cast<uint32_t>(with_cpus.size());
    }
    with_cpus.push_back(node);
  }
  if (with_cpus.empty()) return NumaTopology();
  topology.system_nodes_ = nodes;
  topology.with_cpus_ = std::move(with_cpus);
  return topology;
}

const NumaTopology& NumaTopology::System() {
  static const auto* const kTopology = new NumaTopology(Read(""));
  return *kTopology;
}

bool NumaTopology::HasSystemNode(int system_node) const {
  return std::find(system_nodes_.begin(), system_nodes_.end(), system_node) != system_nodes_.end();
}

int NumaTopology::Distance(int from_system_node, int to_system_node) const {
  const auto row = distances_.find(from_system_node);
  const auto to = std::find(system_nodes_.begin(), system_nodes_.end(), to_system_node);
  const auto at = static_cast<size_t>(to - system_nodes_.begin());
  return row == distances_.end() || to == system_nodes_.end() || at >= row->second.size() ? INT_MAX : row->second[at];
}

uint32_t NumaNodeCount() { return NumaTopology::System().node_count(); }

uint32_t CurrentNumaNode() {
  const NumaTopology& topology = NumaTopology::System();
  return topology.node_count() == 1 ? 0 : topology.NodeOfCpu(sched_getcpu());
}

void BindToNumaNode(void* address, size_t bytes, int system_node, bool move) {
  if (system_node < 0 || system_node > kMaxSystemNode || bytes == 0) return;
  const auto bit = static_cast<size_t>(system_node);
  std::vector<unsigned long> mask(bit / kBitsPerWord + 1, 0);
  mask[bit / kBitsPerWord] = 1ul << (bit % kBitsPerWord);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(address) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(address) + bytes;
  // MPOL_PREFERRED, not MPOL_BIND: a full node must not kill the process. The kernel reads one bit less than it is told.
  (void)mbind(reinterpret_cast<void*>(begin), end - begin, MPOL_PREFERRED, mask.data(), mask.size() * kBitsPerWord + 1,
              move ? MPOL_MF_MOVE : 0);
}

int FindNumaNodeOfMapping(const void* address, size_t bytes) {
  if (bytes == 0) return kUnknownNumaNode;
  int mode = MPOL_DEFAULT;
  unsigned long mask[(kMaxSystemNode + 1) / kBitsPerWord] = {};
  auto* const begin = static_cast<uint8_t*>(const_cast<void*>(address));
  if (get_mempolicy(&mode, mask, kMaxSystemNode + 1, begin, MPOL_F_ADDR) == 0 && mode != MPOL_DEFAULT) {
    if (const int node = OnlyNode(mask, std::size(mask)); node != kUnknownNumaNode) return node;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (bytes + page - 1) / page;
  const size_t samples = std::min(pages, kSampledPages);
  std::vector<void*> sampled;
  std::vector<int> nodes(samples, kUnknownNumaNode);
  for (size_t i = 0; i < samples; ++i) {
    uint8_t* const at = begin + pages * i / samples * page;
    (void)*const_cast<const volatile uint8_t*>(at);  // move_pages only knows pages that this process has read
    sampled.push_back(at);
  }
  if (move_pages(0, samples, sampled.data(), nullptr, nodes.data(), 0) < 0) return kUnknownNumaNode;
  std::map<int, size_t> pages_of;
  for (const int node : nodes) {
    if (node >= 0) ++pages_of[node];
  }
  const auto most = std::max_element(pages_of.begin(), pages_of.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == pages_of.end() ? kUnknownNumaNode : most->first;
}

}  // namespace braiddb
