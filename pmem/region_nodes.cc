#include "pmem/region_nodes.h"

#include <algorithm>
#include <climits>

#include "pmem/region_files.h"
#include "util/check.h"

namespace braiddb {
namespace {

// Returns the nodes with CPUs (dense numbers) whose threads write to a region with that home: the home itself, or else the
// nearest nodes. If the home is unknown, all nodes are equally near.
std::vector<uint32_t> NodesOfRegion(const NumaTopology& topology, int home) {
  std::vector<uint32_t> nodes;
  int nearest = INT_MAX;
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.SystemNode(node) == home) return {node};
    const int distance = topology.Distance(topology.SystemNode(node), home);  // INT_MAX for all if the home is not known
    if (distance < nearest) nodes.clear();
    nearest = std::min(nearest, distance);
    if (distance == nearest) nodes.push_back(node);
  }
  return nodes;
}

// Returns the regions whose homes are nearest to a node.
std::vector<uint32_t> NearestRegions(const NumaTopology& topology, uint32_t node, const std::vector<RegionPlace>& places) {
  std::vector<uint32_t> regions;
  int nearest = INT_MAX;
  for (uint32_t region = 0; region < places.size(); ++region) {
    const int distance = topology.Distance(topology.SystemNode(node), places[region].home);
    if (distance < nearest) regions.clear();
    nearest = std::min(nearest, distance);
    if (distance == nearest) regions.push_back(region);
  }
  return regions;
}

// Text of ToString.
std::string NodeText(int node) { return node == kUnknownNumaNode ? "unknown" : std::to_string(node); }

}  // namespace

// STEPS  1 enter each region at the nodes whose threads write to it  2 give nodes without a region the nearest regions  3
//        compute the masks of remote regions. A region on an unknown node counts as local.
RegionNodes::RegionNodes(const NumaTopology& topology, std::vector<RegionPlace> places)
    : homes_(topology.node_count()), places_(std::move(places)) {
  BRAIDDB_CHECK(!places_.empty() && places_.size() <= kMaxRegions);
  for (uint32_t node = 0; node < topology.node_count(); ++node) system_nodes_.push_back(topology.SystemNode(node));
  const bool is_said = std::any_of(places_.begin(), places_.end(), [](const auto& place) { return place.home_is_given; });
  stands_ = topology.system_nodes().size() == 1 && !is_said;
  const auto add = [this](uint32_t node, uint32_t region) {
    BRAIDDB_DCHECK(homes_[node].count < kMaxRegions);
    homes_[node].regions[homes_[node].count++] = static_cast<uint8_t>(region);
  };
  for (uint32_t region = 0; region < places_.size(); ++region) {
    for (const uint32_t node : NodesOfRegion(topology, places_[region].home)) add(node, region);
  }
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    if (homes_[node].count == 0) {
      for (const uint32_t region : NearestRegions(topology, node, places_)) add(node, region);
    }
    for (uint32_t region = 0; region < places_.size(); ++region) {
      const int of_region = places_[region].node;
      if (of_region != kUnknownNumaNode && of_region != topology.SystemNode(node)) homes_[node].remote |= uint32_t{1} << region;
    }
  }
}

// The lines are also the value of a property of the database: "name=value" pairs, and a sentence for each shared device.
std::string RegionNodes::ToString() const {
  std::string text;
  for (uint32_t region = 0; region < places_.size(); ++region) {
    const RegionPlace& place = places_[region];
    std::string writers;
    for (size_t node = 0; node < homes_.size(); ++node) {
      const uint8_t* const end = homes_[node].regions + homes_[node].count;
      if (std::find(homes_[node].regions, end, region) == end) continue;
      writers += (writers.empty() ? "" : ",") + std::to_string(system_nodes_[node]);
    }
    text += "region=" + std::to_string(region) + " node=" + NodeText(place.node) + " writers=" + writers +
            " media=" + NameOf(place.device.kind) + " device=" + (place.device.name.empty() ? "none" : place.device.name) +
            " by=" + (place.from.empty() ? "nothing" : place.from) + "\n";
  }
  for (uint32_t region = 1; region < places_.size(); ++region) {
    const auto shares = [&](const RegionPlace& other) {
      return !other.device.name.empty() && other.device.name == places_[region].device.name;
    };
    const auto first = std::find_if(places_.begin(), places_.begin() + region, shares);
    if (first == places_.begin() + region) continue;
    text += "regions " + std::to_string(first - places_.begin()) + " and " + std::to_string(region) + " share the device " +
            first->device.name + ", and so its NUMA node\n";
  }
  return text;
}

// The message lists the nodes of the machine.
Status CheckRegionNodes(const std::vector<int>& region_nodes, const NumaTopology& topology) {
  for (size_t region = 0; region < region_nodes.size(); ++region) {
    const int node = region_nodes[region];
    if (node == kUnknownNumaNode || topology.HasSystemNode(node)) continue;
    std::string known;
    for (const int system_node : topology.system_nodes()) known += (known.empty() ? "" : ", ") + std::to_string(system_node);
    return Status::InvalidArgument("Options::region_nodes names NUMA node " + std::to_string(node) + " for region " +
                                   std::to_string(region) + ", but this machine has only " + known +
                                   "; name one of these, or -1 to have it found");
  }
  return Status::OK();
}

std::vector<RegionPlace> FindRegionPlaces(const std::vector<std::string>& directories, const std::vector<int>& region_nodes,
                                          const std::string& system_root) {
  std::vector<RegionPlace> places;
  for (size_t region = 0; region < directories.size(); ++region) {
    RegionPlace place;
    place.directory = directories[region];
    // The first part may be a link to another file system or a device. Before a creation, the directory itself is examined.
    const std::string part = RegionFiles(place.directory).part_path(0);
    const bool is_found =
        FindDevice(part, system_root, &place.device).ok() || FindDevice(place.directory, system_root, &place.device).ok();
    if (!is_found) place.device = Device();
    place.node = place.device.numa_node;
    place.from = place.device.numa_node_from;
    const int wanted = region < region_nodes.size() ? region_nodes[region] : kUnknownNumaNode;
    place.home_is_given = wanted != kUnknownNumaNode;
    place.home = place.home_is_given ? wanted : place.node;
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace braiddb
