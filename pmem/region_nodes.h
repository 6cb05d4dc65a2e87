// RegionNodes: maps regions to NUMA nodes, and threads to the regions that they write to.
//
// NODE    A region is on the node of its mount's device. A region in memory, on a machine with several nodes, is on the node
//         that the mount's option mpol names; without the option, RegionSet puts its memory on a node.
// HOME    Threads of a node write to the regions of that node. If there are several, the thread's index chooses one. A region
//         on a node without CPUs gets the threads of the nearest nodes with CPUs. A region whose node is unknown gets the
//         threads of all nodes. Threads of a node without a region write to the nearest regions.
// STANDS  On a machine with one node, each region stands for a node of its own, unless Options::region_nodes names homes. So
//         the code for several nodes runs on such a machine as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/device.h"
#include "util/check.h"
#include "util/numa_topology.h"

namespace braiddb {

// The place of one region. Nodes have the system's numbers.
struct RegionPlace {
  std::string directory;
  Device device;
  int node = kUnknownNumaNode;  // node of the region's memory
  int home = kUnknownNumaNode;  // node whose threads write to the region: `node`, or the node in Options::region_nodes
  bool home_is_given = false;   // Options::region_nodes names the home
  std::string from;             // source of `node`, such as a file in /sys; empty if it is unknown
};

// Thread safety: const methods may be called concurrently.
class RegionNodes {
 public:
  static constexpr uint32_t kMaxRegions = 16;

  // One region and one node.
  RegionNodes() : RegionNodes(NumaTopology(), std::vector<RegionPlace>(1)) {}
  // `places`: one for each region. REQUIRES: 1 to kMaxRegions places.
  RegionNodes(const NumaTopology& topology, std::vector<RegionPlace> places);

  // Returns the region that a thread with this index writes to while it runs on `node`. `node`: a dense number (NumaTopology);
  // a number without a node counts as node 0.
  uint32_t HomeOf(uint32_t node, uint32_t thread_index) const {
    const Homes& homes = homes_[node < homes_.size() ? node : 0];
    BRAIDDB_DCHECK(homes.count > 0);
    return homes.count == 1 ? homes.regions[0] : homes.regions[thread_index % homes.count];
  }
  // Returns a mask: bit i is set if region i is on another node than the reader. `node`: dense number of the reader's node.
  // `home`: the region that the reader writes to.
  uint32_t RemoteRegions(uint32_t node, uint32_t home) const {
    return stands_ ? ~(uint32_t{1} << home) : homes_[node < homes_.size() ? node : 0].remote;
  }
  bool stands() const { return stands_; }
  const std::vector<RegionPlace>& places() const { return places_; }

  // Returns a line for each region, and a line for each region that shares the device of an earlier one.
  std::string ToString() const;

 private:
  // The regions of the threads of one node.
  struct Homes {
    uint32_t count = 0;
    uint32_t remote = 0;  // mask of regions on other nodes
    uint8_t regions[kMaxRegions] = {};
  };

  std::vector<Homes> homes_;  // by the dense number of a node
  std::vector<int> system_nodes_;
  std::vector<RegionPlace> places_;
  bool stands_ = false;
};

// Checks Options::region_nodes. InvalidArgument, with advice: an element is neither kUnknownNumaNode nor a node of the machine.
Status CheckRegionNodes(const std::vector<int>& region_nodes, const NumaTopology& topology);

// Finds the places of the regions in these directories. `region_nodes` is empty, or has the home of each region;
// kUnknownNumaNode: the home is the region's node. A device that cannot be found is unknown, which is no error.
std::vector<RegionPlace> FindRegionPlaces(const std::vector<std::string>& directories, const std::vector<int>& region_nodes,
                                          const std::string& system_root);

}  // namespace braiddb
