#include "skiplist/tall_index.h"

#include <algorithm>

#include "index/count_less.h"
#include "log/fetch_entry.h"
#include "util/prefetch.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Walks that take turns while the index is built, so that their cache misses overlap.
constexpr size_t kWalkers = 16;
// A walker's share begins at a node this many layers above the indexed one.
constexpr uint32_t kShareLayers = 4;
// A region with so many times fewer nodes than another is of little help to a search: it would walk through the other's.
constexpr uint64_t kSparse = 8;
// Between two looks at whether the index is still wanted, less than a millisecond: nodes that are copied, and steps of all
// walkers.
constexpr uint64_t kNodesPerStop = 1 << 16;
constexpr uint64_t kStepsPerStop = 1 << 8;

template <size_t kCount>
uint64_t CountLessIn(const uint64_t (&keys)[kCount], uint64_t key) {
  return CountLess<kCount>(key, [&keys](size_t i) { return keys[i]; });
}

}  // namespace

TallIndex::TallIndex(const BraidedList& list) : list_(list), regions_(list.regions().count()) {
  for (uint32_t region = 0; region < regions_.size(); ++region) regions_[region].region = list.regions().ListRegion(region);
}

TallIndex::TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const TallIndex* before,
                     const IndexChanges* changes, const std::atomic<bool>* stop)
    : TallIndex(list) {
  const uint64_t max_nodes = max_bytes / Lists() / kBytesPerBlock * kBlockNodes;
  if (max_nodes == 0) return;
  uint32_t layer = LowestLayer();
  for (uint64_t expected = entries / NodesApart(layer); expected > max_nodes; expected /= kBranching) ++layer;
  layer = std::min(layer, kMaxHeight - 1);
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    Tree tree;
    if (changes != nullptr && changes->Of(region).layer == layer)
      tree = Change(before->regions_[region], changes->Of(region), max_nodes, stop);
    if (tree.nodes == 0) tree = Walk(list, region, layer, max_nodes, stop);
    tree.region = regions_[region].region;
    regions_[region] = std::move(tree);
  }
  const auto less = [](const Tree& a, const Tree& b) { return a.nodes < b.nodes; };
  const auto largest = static_cast<uint32_t>(std::max_element(regions_.begin(), regions_.end(), less) - regions_.begin());
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    if (regions_[region].nodes < regions_[largest].nodes / kSparse) regions_[region].region = largest;
  }
}

IndexChanges TallIndex::NewChanges() const {
  IndexChanges changes(static_cast<uint32_t>(regions_.size()));
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    if (regions_[region].is_whole) changes.Know(region, regions_[region].layer);
  }
  return changes;
}

TallIndex::Tree TallIndex::Walk(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t max_nodes, Stop stop) {
  // Entries are spread over the regions as their writers were: one may have more than its share.
  Shares shares;
  uint64_t count = Collect(list, region, layer, max_nodes, stop, &shares);
  while (count > max_nodes && layer + 1 < kMaxHeight) count = Collect(list, region, ++layer, max_nodes, stop, &shares);
  if (IsStopped(stop)) return {};
  if (count == 0) {  // that there is nothing is known, too
    Tree empty;
    empty.layer = layer;
    empty.is_whole = true;
    return empty;
  }
  const uint64_t taken = std::min(count, max_nodes);  // searches walk on from the last node
  uint64_t left = taken;
  Tree tree = Build(taken, layer, [&](const auto& add) {
    for (const std::vector<IndexNode>& share : shares) {
      for (size_t i = 0; i < share.size() && left > 0; ++i, --left) add(share[i]);
    }
  });
  tree.is_whole = tree.nodes == count;
  if (tree.nodes > 0) BRAIDDB_SYNC_POINT("TallIndex::Walked");
  return tree;
}

// What was noted last comes first.
TallIndex::Tree TallIndex::Change(const Tree& before, const IndexChanges::Region& changes, uint64_t max_nodes, Stop stop) {
  const uint64_t kept = before.nodes - std::min<uint64_t>(before.nodes, changes.removed.size());
  const uint64_t count = kept + changes.added.size();
  if (count > max_nodes) return {};
  size_t added = changes.added.size();
  size_t replaced = changes.replaced.size();
  size_t removed = changes.removed.size();
  Tree tree = Build(count, before.layer, [&](const auto& add) {
    const auto add_behind = [&](const LogEntry* node) {
      for (; added > 0 && changes.added[added - 1].before == node; --added) add(changes.added[added - 1].node);
    };
    add_behind(nullptr);
    for (uint64_t at = 0; at < before.nodes; ++at) {
      if (at % kNodesPerStop == 0 && IsStopped(stop)) return;
      const IndexNode node = IndexNode::FromWord(PrefixAt(before, at), WordAt(before, at));
      if (removed > 0 && changes.removed[removed - 1] == node.entry()) {
        --removed;
      } else if (replaced > 0 && changes.replaced[replaced - 1].from == node.entry()) {
        add(node.With(changes.replaced[--replaced].to));
      } else {
        add(node);
      }
      add_behind(node.entry());
    }
  });
  if (added + replaced + removed > 0) return {};
  tree.is_whole = tree.nodes > 0;
  return tree;
}

// The nodes of one layer, in order; returns how many, and ends early when there are more than `enough`, or when it is stopped.
uint64_t TallIndex::Collect(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t enough, Stop stop, Shares* found) {
  // Shares: from each of these nodes to the next.
  std::vector<const LogEntry*> shares;
  const uint32_t share_layer = std::min(layer + kShareLayers, kMaxHeight - 1);
  shares.push_back(list.Load(list.head(region), layer));
  for (const LogEntry* entry = list.Load(list.head(region), share_layer); entry != nullptr;
       entry = list.Load(entry->next, share_layer)) {
    if (shares.size() > enough) break;  // more than there are below it: this layer will not do, or it is a damaged circle
    if (entry != shares.front()) shares.push_back(entry);
  }
  shares.push_back(nullptr);

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
        std::vector<IndexNode>& share = (*found)[first + i];
        if (at[i] == nullptr || (at[i] == shares[first + i + 1]) || share.size() > enough) continue;
        const Slice key = at[i]->key();
        share.emplace_back(list.order().Prefix(key), at[i], list.order().PrefixIsWhole(key));
        at[i] = list.Load(at[i]->next, layer);
        FetchEntry(at[i]);
        walking = true;
      }
    }
    for (size_t i = 0; i < count; ++i) total += (*found)[first + i].size();
  }
  return total;
}

template <class Visit>
TallIndex::Tree TallIndex::Build(uint64_t count, uint32_t layer, const Visit& visit) {
  const uint64_t block_count = (count + kBlockNodes - 1) / kBlockNodes;
  Tree built;
  built.nodes = count;
  built.layer = layer;
  built.blocks = HugeArray<Block>(block_count);
  if (built.blocks.empty()) return {};
  uint64_t next = 0;
  const auto add = [&built, &next](const IndexNode& node) {
    if (next == built.blocks.size() * kBlockNodes) return;
    built.blocks[next / kBlockNodes].prefix[next % kBlockNodes] = node.prefix();
    built.blocks[next / kBlockNodes].word[next % kBlockNodes] = node.word();
    ++next;
  };
  visit(add);
  if (next != count) return {};
  while (next < block_count * kBlockNodes) add(IndexNode::FromWord(UINT64_MAX, 0));
  uint64_t below = block_count;
  do {
    const uint64_t groups = (below + kFanout - 1) / kFanout;
    HugeArray<Group> level(groups);
    if (level.empty()) return {};
    for (uint64_t at = 0; at < groups * kFanout; ++at) {
      uint64_t last = UINT64_MAX;
      if (at < below) {
        last = built.levels.empty() ? built.blocks[at].prefix[kBlockNodes - 1] : built.levels.back()[at].last[kFanout - 1];
      }
      level[at / kFanout].last[at % kFanout] = last;
    }
    built.levels.push_back(std::move(level));
    below = groups;
  } while (below > 1);
  built.fetch_bytes = TypicalEntryBytes(count, [&built](uint64_t at) { return EntryAt(built, at); });
  return built;
}

uint64_t TallIndex::GroupOf(const Tree& tree, uint64_t prefix) {
  uint64_t at = 0;
  for (size_t level = tree.levels.size(); level-- > 1;) {
    if (at >= tree.levels[level].size()) return tree.levels[0].size();  // behind the last
    at = at * kFanout + CountLessIn(tree.levels[level][at].last, prefix);
  }
  if (tree.nodes > 0 && at < tree.levels[0].size()) PrefetchAll(&tree.levels[0][at], sizeof(Group));
  return at;
}

uint64_t TallIndex::BlockOf(const Tree& tree, uint64_t group, uint64_t prefix) {
  if (tree.nodes == 0 || group >= tree.levels[0].size()) return tree.blocks.size();
  const uint64_t block = group * kFanout + CountLessIn(tree.levels[0][group].last, prefix);
  if (block < tree.blocks.size()) PrefetchAll(&tree.blocks[block], sizeof(Block));
  return block;
}

uint64_t TallIndex::FirstInBlock(const Tree& tree, uint64_t block, uint64_t prefix) {
  if (block >= tree.blocks.size()) return tree.nodes;
  return std::min(tree.nodes, block * kBlockNodes + CountLessIn(tree.blocks[block].prefix, prefix));
}

// By the last prefixes of blocks, so that where in a block it is takes no branch.
uint64_t TallIndex::FindPrefixNear(uint32_t reader, uint64_t from, uint64_t prefix) const {
  constexpr uint64_t kNearBlocks = 4;
  const Tree& tree = TreeOf(reader);
  uint64_t block = from / kBlockNodes;
  const uint64_t end = std::min<uint64_t>(tree.blocks.size(), block + kNearBlocks);
  for (; block < end; ++block) {
    if (tree.blocks[block].prefix[kBlockNodes - 1] >= prefix) return FirstInBlock(tree, block, prefix);
  }
  return end < tree.blocks.size() ? FirstNotLess(tree, prefix) : tree.nodes;
}

BraidedList::Start TallIndex::StartBefore(uint32_t reader, uint64_t place) const {
  const uint32_t region = regions_[reader].region;
  const Tree& tree = regions_[region];
  BraidedList::Start start = list_.HeadOf(region, reader);
  if (place < tree.nodes) start.bound = list_.regions().PointerInList(region, EntryAt(tree, place));
  if (place == 0) return start;
  // On the index's own layer the next node is the next one here. Where that is the bottom, it was so when the index was made.
  start.tower = EntryAt(tree, place - 1)->next;
  start.layer = tree.layer == 0 ? 0 : tree.layer - 1;
  return start;
}

uint64_t TallIndex::NodesApart(uint32_t layer) const {
  uint64_t distance = layer == 0 ? 1 : Lists();
  for (; layer > 0; --layer) distance *= kBranching;
  return distance;
}

// Equal prefixes decide nothing: among them the keys do. The first node that is not before the target.
uint64_t TallIndex::BeforeAmongEqual(const Tree& tree, uint64_t first, const SearchKey& target) const {
  const auto before = [&](uint64_t at) {
    return at < tree.nodes && PrefixAt(tree, at) == target.prefix && CompareEntry(list_.order(), *EntryAt(tree, at), target) < 0;
  };
  if (!before(first)) return first;
  uint64_t low = first;  // before
  uint64_t step = 1;
  while (before(low + step)) {
    low += step;
    step *= 2;
  }
  for (uint64_t high = low + step; high - low > 1;) {
    const uint64_t middle = low + (high - low) / 2;
    if (before(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low + 1;
}

uint64_t TallIndex::bytes() const {
  uint64_t sum = 0;
  for (const Tree& tree : regions_) {
    sum += tree.blocks.bytes();
    for (const auto& level : tree.levels) sum += level.bytes();
  }
  return sum;
}

}  // namespace braiddb
