#include "skiplist/tall_index.h"

#include <algorithm>
#include <new>

#include "log/fetch_entry.h"
#include "util/prefetch.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Number of walks that advance in rounds while the index is built, so that their cache misses overlap.
constexpr size_t kWalkers = 16;
// The share of a walk begins at a node that reaches this many layers above the indexed one.
constexpr uint32_t kShareLayers = 4;
// A region with kSparse times fewer nodes than the largest one uses the largest one's tree: its own nodes are too far apart.
constexpr uint64_t kSparse = 8;
// Rounds of the walks between two checks of the stop flag, less than a millisecond.
constexpr uint64_t kStepsPerStop = 1 << 8;

}  // namespace

// Every region begins with an empty tree of layer 1, so Find returns End() and StartBefore the head.
TallIndex::TallIndex(const BraidedList& list, SharedHeap* heap) : list_(list), heap_(heap), regions_(list.regions().count()) {
  for (uint32_t region = 0; region < regions_.size(); ++region) regions_[region].region = list.regions().ListRegion(region);
}

// STEPS  1 choose the lowest layer whose expected number of nodes fits  2 for each region, apply the changes if they are known
//        for that layer, else walk  3 let regions with few nodes use the largest region's tree.
TallIndex::TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const TallIndex* before,
                     const IndexChanges* changes, const std::atomic<bool>* stop, SharedHeap* heap)
    : TallIndex(list, heap) {
  max_tree_bytes_ = max_bytes / Lists();
  const uint64_t max_nodes = IndexTree::MaxNodes(max_tree_bytes_);
  if (max_nodes == 0) return;
  uint32_t layer = LowestLayer();
  for (uint64_t expected = entries / NodesApart(layer); expected > max_nodes; expected /= kBranching) ++layer;
  layer = std::min(layer, kMaxHeight - 1);
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    Tree tree;
    if (changes != nullptr && changes->Of(region).layer == layer)
      tree = Change(region, before->regions_[region], changes->Of(region), max_nodes, stop);
    if (tree.nodes.nodes() == 0) tree = Walk(list, region, layer, max_nodes, stop);
    tree.region = regions_[region].region;
    regions_[region] = std::move(tree);
  }
  const auto less = [](const Tree& a, const Tree& b) { return a.nodes.nodes() < b.nodes.nodes(); };
  const auto largest = static_cast<uint32_t>(std::max_element(regions_.begin(), regions_.end(), less) - regions_.begin());
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    if (regions_[region].nodes.nodes() < regions_[largest].nodes.nodes() / kSparse) regions_[region].region = largest;
  }
}

// Changes of a region are recorded only if its tree has all nodes of the layer: a part of them could not be completed.
IndexChanges TallIndex::NewChanges() const {
  IndexChanges changes(static_cast<uint32_t>(regions_.size()));
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    if (regions_[region].is_whole) changes.Know(region, regions_[region].layer);
  }
  return changes;
}

// STEPS  1 collect the nodes of the layer; if there are too many, of the next higher one  2 build the tree from the first
//        max_nodes.
TallIndex::Tree TallIndex::Walk(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t max_nodes, Stop stop) const {
  // The regions have as many entries as their writers wrote, so one may have more nodes than expected, and needs a higher
  // layer.
  Shares shares;
  uint64_t count = Collect(list, region, layer, max_nodes, stop, &shares);
  while (count > max_nodes && layer + 1 < kMaxHeight) count = Collect(list, region, ++layer, max_nodes, stop, &shares);
  if (IsStopped(stop)) return {};
  if (count == 0) {  // the layer has no node, so an empty tree has them all
    Tree empty;
    empty.layer = layer;
    empty.is_whole = true;
    return empty;
  }
  const uint64_t taken = std::min(count, max_nodes);  // behind the last node, searches walk along the list
  uint64_t left = taken;
  Tree tree;
  try {
    const bool makes_bits = MakesBits(taken);
    IndexTree::Builder builder(&list.regions(), RegionOfAll(region), std::make_shared<PieceHeap>(heap_), makes_bits);
    builder.Expect(taken, makes_bits && std::ranges::any_of(shares, &Share::has_bits));
    for (const Share& share : shares) {
      for (size_t i = 0; i < share.nodes.size() && left > 0; ++i, --left)
        builder.Add(share.nodes[i], i == 0 ? IndexTree::Builder::kUnknown : share.bits[i]);
    }
    tree = Finish(&builder, layer);
    tree.BuildAlike(list_.order(), heap_, max_tree_bytes_, stop);
  } catch (const std::bad_alloc&) {
    return {};
  }
  tree.is_whole = tree.nodes.nodes() == count;
  if (tree.nodes.nodes() > 0) BRAIDDB_SYNC_POINT("TallIndex::Walked");
  return tree;
}

TallIndex::Tree TallIndex::Finish(IndexTree::Builder* builder, uint32_t layer) const {
  Tree tree;
  tree.Take(builder->Finish());
  tree.layer = layer;
  tree.written = builder->written();
  return tree;
}

// Collects the nodes of one layer, in order. Returns their number; ends early with more than `enough` if there are more, or
// with 0 if it was stopped.
// STEPS  1 walk along a higher layer: its nodes divide the layer into shares  2 in groups of kWalkers shares, walk all shares
//        of the group in rounds, one step of each per round.
uint64_t TallIndex::Collect(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t enough, Stop stop, Shares* found) {
  // Shares: from each of these nodes to the next.
  std::vector<const LogEntry*> shares;
  const uint32_t share_layer = std::min(layer + kShareLayers, kMaxHeight - 1);
  shares.push_back(list.Load(list.head(region), layer));
  for (const LogEntry* entry = list.Load(list.head(region), share_layer); entry != nullptr;
       entry = list.Load(entry->next, share_layer)) {
    if (shares.size() > enough) break;  // more shares than nodes are wanted: the layer has too many, or the list has a cycle
    if (entry != shares.front()) shares.push_back(entry);
  }
  shares.push_back(nullptr);

  const bool has_bits = list.order().equal_means_same();
  found->clear();
  found->resize(shares.size() - 1);
  uint64_t total = 0;
  uint64_t steps = 0;
  for (size_t first = 0; first < found->size() && total <= enough; first += kWalkers) {
    const size_t count = std::min(kWalkers, found->size() - first);
    const LogEntry* at[kWalkers];
    for (size_t i = 0; i < count; ++i) at[i] = shares[first + i];
    for (bool walking = true; walking;) {
      walking = false;
      if (++steps % kStepsPerStop == 0 && IsStopped(stop)) return 0;
      for (size_t i = 0; i < count; ++i) {
        Share& share = (*found)[first + i];
        if (at[i] == nullptr || (at[i] == shares[first + i + 1]) || share.nodes.size() > enough) continue;
        const Slice key = at[i]->key();
        const PmPtr place = list.regions().PointerInList(region, at[i]);
        const IndexNode node(list.order().Prefix(key), place, at[i]->height(), list.order().PrefixIsWhole(key));
        const bool is_alike = has_bits && !share.nodes.empty() && share.nodes.back().prefix() == node.prefix();
        share.bits.push_back(is_alike ? IndexTree::Builder::BitOf(list.regions(), share.nodes.back(), node) : 0);
        share.has_bits |= is_alike;
        share.nodes.push_back(node);
        at[i] = list.Load(at[i]->next, layer);
        FetchEntry(at[i]);
        walking = true;
      }
    }
    for (size_t i = 0; i < count; ++i) total += (*found)[first + i].nodes.size();
  }
  return total;
}

// `place` is that of the first node at or after the target. The start is the node before it.
BraidedList::Start TallIndex::StartBefore(uint32_t reader, uint64_t place) const {
  const uint32_t region = regions_[reader].region;
  const Tree& tree = regions_[region];
  BraidedList::Start start = list_.HeadOf(region, reader);
  if (place < tree.nodes.End()) start.bound = IndexNode::EntryOf(tree.nodes.WordAt(place));
  if (place == 0) return start;
  // On the indexed layer, the successor of the node is the next node of the index, so the search begins one layer below.
  start.tower = tree.nodes.EntryAt(tree.nodes.Prev(place))->next;
  start.layer = tree.layer == 0 ? 0 : tree.layer - 1;
  return start;
}

// On average one node in kBranching reaches the next layer. An upper layer is divided among the regions' lists.
uint64_t TallIndex::NodesApart(uint32_t layer) const {
  uint64_t distance = layer == 0 ? 1 : Lists();
  for (; layer > 0; --layer) distance *= kBranching;
  return distance;
}

// A tree that several regions use is counted once.
uint64_t TallIndex::bytes() const {
  uint64_t sum = 0;
  for (const Tree& tree : regions_) sum += tree.bytes();
  return sum;
}

uint64_t TallIndex::written_nodes() const {
  uint64_t sum = 0;
  for (const Tree& tree : regions_) sum += tree.written;
  return sum;
}

}  // namespace braiddb
