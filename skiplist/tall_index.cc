#include "skiplist/tall_index.h"

#include <algorithm>

namespace braiddb {
namespace {

// Walks that take turns while the index is built, so that their cache misses overlap.
constexpr size_t kWalkers = 16;
// A walker's share begins at a node this many layers above the indexed one.
constexpr uint32_t kShareLayers = 4;

}  // namespace

TallIndex::TallIndex(const BraidedList& list, uint64_t entries) : order_(&list.order()), regions_(list.regions().count()) {
  for (uint64_t expected = entries / kBranching; expected > kMaxNodes * 3 / 4 && layer_ + 1 < kMaxHeight;
       expected /= kBranching) {
    ++layer_;
  }
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    Nodes& nodes = regions_[region];
    Collect(list, region, &nodes.nodes);
    // The estimate was low: searches walk on from the last node.
    if (nodes.nodes.size() > kMaxNodes) nodes.nodes.resize(kMaxNodes);
    for (size_t i = 0; i < nodes.nodes.size(); i += kStep) nodes.steps.push_back(nodes.nodes[i].prefix);
  }
}

void TallIndex::Collect(const BraidedList& list, uint32_t region, std::vector<Node>* nodes) const {
  // Shares: from each of these nodes to the next.
  std::vector<const LogEntry*> shares;
  const uint32_t share_layer = std::min(layer_ + kShareLayers, kMaxHeight - 1);
  shares.push_back(list.Load(list.head(region), layer_));
  for (const LogEntry* entry = list.Load(list.head(region), share_layer); entry != nullptr;
       entry = list.Load(entry->next, share_layer)) {
    if (entry != shares.front()) shares.push_back(entry);
  }
  shares.push_back(nullptr);

  std::vector<std::vector<Node>> found(shares.size() - 1);
  for (size_t first = 0; first < found.size(); first += kWalkers) {
    const size_t count = std::min(kWalkers, found.size() - first);
    const LogEntry* at[kWalkers];
    for (size_t i = 0; i < count; ++i) at[i] = shares[first + i];
    for (bool walking = true; walking;) {
      walking = false;
      for (size_t i = 0; i < count; ++i) {
        if (at[i] == nullptr || (at[i] == shares[first + i + 1])) continue;
        found[first + i].push_back({order_->Prefix(at[i]->key()), at[i]});
        at[i] = list.Load(at[i]->next, layer_);
        __builtin_prefetch(at[i]);
        walking = true;
      }
    }
  }
  for (const auto& share : found) nodes->insert(nodes->end(), share.begin(), share.end());
}

BraidedList::Start TallIndex::Start(const BraidedList::Start& home, const SearchKey& target) const {
  const Nodes& region = regions_[home.region];
  if (region.steps.empty()) return home;
  // The first prefix that is not less is in the block before the first step that is not less, or is that step.
  const uint64_t* steps = region.steps.data();
  size_t count = region.steps.size();
  while (count > 1) {  // no branch depends on the data
    const size_t half = count / 2;
    steps += (steps[half - 1] < target.prefix) * half;
    count -= half;
  }
  const size_t step = static_cast<size_t>(steps - region.steps.data()) + (*steps < target.prefix);
  const std::vector<Node>& nodes = region.nodes;
  size_t at = step == 0 ? 0 : (step - 1) * kStep;
  while (at < nodes.size() && nodes[at].prefix < target.prefix) ++at;
  if (at < nodes.size() && nodes[at].prefix == target.prefix) at = BeforeAmongEqual(nodes, at, target);
  if (at == 0) return home;
  // On the index's own layer the next node is the next one here.
  return {home.region, nodes[at - 1].entry->next, layer_ - 1};
}

// Equal prefixes decide nothing: among them the keys do.
size_t TallIndex::BeforeAmongEqual(const std::vector<Node>& nodes, size_t first, const SearchKey& target) const {
  const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end =
      std::upper_bound(begin, nodes.end(), target.prefix, [](uint64_t prefix, const Node& node) { return prefix < node.prefix; });
  const auto place =
      std::partition_point(begin, end, [&](const Node& node) { return CompareEntry(*order_, *node.entry, target) < 0; });
  return static_cast<size_t>(place - nodes.begin());
}

uint64_t TallIndex::bytes() const {
  uint64_t sum = 0;
  for (const Nodes& region : regions_) sum += sizeof(Node) * region.nodes.size() + sizeof(uint64_t) * region.steps.size();
  return sum;
}

}  // namespace braiddb
