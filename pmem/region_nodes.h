// RegionNodes: on which NUMA node each region is, and which region a thread writes to.
//
// NODE    Of a region: that of the device of its mount. Of a region in memory, on a machine with several nodes: the one that the
//         mount's option mpol names; otherwise the region's memory is put on a node, see RegionSet.
// HOME    Threads of a node write to the regions of that node, spread over them if there are several. A region of a node without
//         CPUs is shared by the threads of the nearest nodes that have some; one whose node is not known, by all threads. If a
//         node has no region, its threads write to the nearest regions.
// STANDS  On a machine with one node each region stands for a node of its own, unless Options::region_nodes says otherwise: what
//         several nodes do can be seen there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/device.h"
#include "util/numa_topology.h"

namespace braiddb {

struct RegionPlace {
  std::string directory;
  Device device;
  int node = kUnknownNumaNode;  // where the region is
  int home = kUnknownNumaNode;  // whose threads write to it: `node`, unless Options::region_nodes names another
  bool home_is_given = false;   // by Options::region_nodes
  std::string from;             // what says `node`; empty if nothing does
};

// Thread safety: const methods may be called concurrently.
class RegionNodes {
 public:
  static constexpr uint32_t kMaxRegions = 16;

  // Of one region and one node.
  RegionNodes() : RegionNodes(NumaTopology(), std::vector<RegionPlace>(1)) {}
  // REQUIRES: one place to kMaxRegions of them.
  RegionNodes(const NumaTopology& topology, std::vector<RegionPlace> places);

  // The region that the thread with this index writes to while it runs on that node (a dense number).
  uint32_t HomeOf(uint32_t node, uint32_t thread_index) const {
    const Homes& homes = homes_[node < homes_.size() ? node : 0];
    return homes.count == 1 ? homes.regions[0] : homes.regions[thread_index % homes.count];
  }
  // Bit i says that region i is on another node than the reader, who runs on `node` and writes to region `home`.
  uint32_t RemoteRegions(uint32_t node, uint32_t home) const {
    return stands_ ? ~(uint32_t{1} << home) : homes_[node < homes_.size() ? node : 0].remote;
  }
  bool stands() const { return stands_; }
  const std::vector<RegionPlace>& places() const { return places_; }

  // A line for each region, and one for each device that several of them share.
  std::string ToString() const;

 private:
  struct Homes {
    uint32_t count = 0;
    uint32_t remote = 0;  // a bit for each region
    uint8_t regions[kMaxRegions] = {};
  };

  std::vector<Homes> homes_;  // by the dense number of a node
  std::vector<int> system_nodes_;
  std::vector<RegionPlace> places_;
  bool stands_ = false;
};

// InvalidArgument, with advice, unless each is kUnknownNumaNode or a node of the machine.
Status CheckRegionNodes(const std::vector<int>& region_nodes, const NumaTopology& topology);

// Looks up the devices of the regions' directories. `region_nodes` is empty, or has a home for each; kUnknownNumaNode: its node.
// What cannot be looked up is not known.
std::vector<RegionPlace> FindRegionPlaces(const std::vector<std::string>& directories, const std::vector<int>& region_nodes,
                                          const std::string& system_root);

}  // namespace braiddb
