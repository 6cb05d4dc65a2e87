#include "levels/hybrid/ordered_index.h"

#include <algorithm>
#include <utility>

#include "levels/hybrid/entry_signatures.h"
#include "util/run_parallel.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Distance of prefetches of entries while the index is built.
constexpr size_t kFetchAhead = 16;
// Pages of the hash index for each thread that builds an index, so that small ones start no threads.
constexpr uint64_t kPagesOfThread = 256;
// An index without alike nodes is searched for alike nodes again after one in so many nodes has changed.
constexpr uint64_t kChangesPerSearch = 64;

uint32_t RegionOfAll(const RegionSet& regions) { return regions.count() == 1 ? 0 : IndexTree::Builder::kSeveral; }

// An entry of the hash index with what orders it.
IndexNode NodeOf(const RegionSet& regions, const KeyOrder& order, PmPtr place) {
  const auto* const entry = regions.Resolve<LogEntry>(place);
  const Slice key = entry->key();
  return IndexNode(order.Prefix(key), place, entry->height(), order.PrefixIsWhole(key));
}

class NodeLess {
 public:
  NodeLess(const RegionSet& regions, const KeyOrder& order) : regions_(regions), order_(order) {}
  bool operator()(const IndexNode& a, const IndexNode& b) const {
    if (a.prefix() != b.prefix()) return a.prefix() < b.prefix();
    return CompareEntries(order_, *regions_.Resolve<LogEntry>(a.entry()), *regions_.Resolve<LogEntry>(b.entry())) < 0;
  }

 private:
  const RegionSet& regions_;
  const KeyOrder& order_;
};

// Appends the entries of a partition, in any order.
void CollectPartition(const HashIndex& hash, uint32_t partition, const RegionSet& regions, const KeyOrder& order,
                      std::vector<IndexNode>* nodes) {
  const EntrySignatures keys(&regions, hash.tree_id());
  struct Slot {
    PmPtr entry;
    uint64_t bits;  // the first bits of the signature
    uint32_t count;
  };
  std::vector<Slot> slots;
  hash.VisitPartition(partition, [&slots](PmPtr entry, uint64_t bits, uint32_t count) { slots.push_back({entry, bits, count}); });
  for (size_t at = 0; at < slots.size(); ++at) {
    if (at + kFetchAhead < slots.size()) keys.Prefetch(slots[at + kFetchAhead].entry);
    const auto& [entry, bits, count] = slots[at];
    uint64_t signature = 0;
    if (keys.SignatureOf(entry, &signature) && (signature ^ bits) >> (64 - count) == 0) {
      nodes->push_back(NodeOf(regions, order, entry));
    } else {
      regions.NoteDamage();
    }
  }
}

}  // namespace

// STEPS  1 threads collect the entries of their partitions, read them, and sort what they have  2 build the tree from the sorted
//        parts.
// COST   16 bytes of DRAM for each entry besides the tree.
std::shared_ptr<const OrderedIndex> OrderedIndex::Build(const HashIndex& hash, const RegionSet& regions, const KeyOrder& order,
                                                        uint32_t threads, const std::atomic<bool>* stop) {
  const auto is_stopped = [stop] { return stop != nullptr && stop->load(std::memory_order_acquire); };
  threads =
      std::clamp<uint32_t>(static_cast<uint32_t>(hash.GetStats().pages / kPagesOfThread), 1, std::max<uint32_t>(threads, 1));
  const NodeLess less(regions, order);
  std::vector<std::vector<IndexNode>> parts(threads);
  RunParallel(threads, [&](uint32_t thread) {
    uint64_t count = 0;
    for (uint32_t i = thread; i < HashIndex::kPartitions; i += threads)
      hash.VisitPartition(i, [&count](PmPtr, uint64_t, uint32_t) { ++count; });
    parts[thread].reserve(count);
    for (uint32_t i = thread; i < HashIndex::kPartitions && !is_stopped(); i += threads)
      CollectPartition(hash, i, regions, order, &parts[thread]);
    if (!is_stopped()) std::sort(parts[thread].begin(), parts[thread].end(), less);
  });
  if (is_stopped()) return nullptr;
  BRAIDDB_SYNC_POINT("OrderedIndex::Build");
  auto index = std::make_shared<OrderedIndex>();
  IndexTree::Builder builder(&regions, RegionOfAll(regions), std::make_shared<PieceHeap>(), order.equal_means_same());
  uint64_t count = 0;
  for (const auto& part : parts) count += part.size();
  builder.Expect(count);
  // The first of the smallest nodes that are left. There are few parts.
  std::vector<size_t> next(threads, 0);
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t least = threads;
    for (uint32_t part = 0; part < threads; ++part) {
      if (next[part] == parts[part].size()) continue;
      if (least == threads || less(parts[part][next[part]], parts[least][next[least]])) least = part;
    }
    builder.Add(parts[least][next[least]++]);
  }
  if (!builder.ok()) throw std::bad_alloc();
  parts.clear();
  index->nodes_.Take(builder.Finish());
  if (index->nodes_.nodes.nodes() != count) throw std::bad_alloc();
  index->nodes_.BuildAlike(order, nullptr, UINT64_MAX, stop);
  return index;
}

// GOAL   A tree with the changes of one job. Only pieces with changes are written.
// STEPS  1 find the piece of the next change  2 share the pieces before it  3 rewrite that piece with all of its changes; if the
//        new piece would be small, also the next one  4 repeat until no change is left; share the rest.
// The place of a change is that of the first node at or after its entry.
class OrderedIndex::ChangePass {
 public:
  ChangePass(const OrderedIndex* before, std::span<const Change> changes, const RegionSet* regions, const KeyOrder* order)
      : nodes_(before->nodes_),
        tree_(nodes_.nodes),
        changes_(changes),
        regions_(*regions),
        order_(*order),
        builder_(regions, RegionOfAll(*regions), tree_.heap() != nullptr ? tree_.heap() : std::make_shared<PieceHeap>(),
                 order->equal_means_same()) {}

  // Returns false if the changes do not fit, or if an allocation has failed.
  bool Run() {
    builder_.Expect(0);
    FindPlace();
    for (uint64_t done = 0; builder_.ok();) {
      uint64_t next = NextPiece(done);
      if (builder_.wants_more()) next = std::min(next, done);
      builder_.Share(tree_, done, std::min(next, tree_.pieces()));
      if (next >= tree_.pieces()) break;
      if (!WritePiece(next)) return false;
      done = next + 1;
    }
    // Behind the last node, or into an empty tree.
    for (; at_ < changes_.size(); ++at_) {
      if (!changes_[at_].is_added) return false;
      AddNode();
    }
    return builder_.ok();
  }
  IndexTree::Builder* builder() { return &builder_; }

 private:
  void FindPlace() {
    if (at_ == changes_.size()) return;
    const LogEntry& entry = *regions_.Resolve<LogEntry>(changes_[at_].entry);
    place_ = nodes_.Find(order_, SearchKey(changes_[at_].prefix, entry.key(), entry.sequence()));
  }
  // The piece of the next change, or the number of pieces if there is none. Entries behind the last node belong to the last
  // piece, unless it was written. `done`: the pieces before this number are in the new tree.
  uint64_t NextPiece(uint64_t done) const {
    if (at_ == changes_.size()) return tree_.pieces();
    if (place_ < tree_.End()) return IndexTree::PieceOf(place_);
    return done < tree_.pieces() ? tree_.pieces() - 1 : done;
  }
  void AddNode() { builder_.Add(NodeOf(regions_, order_, changes_[at_].entry)); }
  void Advance() {
    ++at_;
    FindPlace();
  }

  bool WritePiece(uint64_t piece) {
    IndexTree::Iterator at(&tree_);
    at.Set(piece * IndexTree::kPieceNodes);
    // The bit position of a node is known if the node added last was its neighbor, or if only removed nodes were between them:
    // then it is the lowest one of theirs.
    const uint16_t* const bits = tree_.BitsAt(at.place());
    bool is_known = false;
    uint32_t bit = IndexTree::Builder::kUnknown;
    for (uint64_t i = 0, nodes = at.left_forward(); i < nodes; ++i, at.Next()) {
      if (bits != nullptr && i > 0) bit = std::min<uint32_t>(bit, bits[i]);
      const IndexNode node = IndexNode::FromWord(at.prefix(), at.word());
      bool is_removed = false;
      for (; at_ < changes_.size() && place_ == at.place(); Advance()) {
        if (changes_[at_].is_added) {
          AddNode();
          is_known = false;
        } else {
          if (is_removed || !(node.entry() == changes_[at_].entry)) return false;
          is_removed = true;
        }
      }
      if (is_removed) continue;
      builder_.Add(node, is_known ? bit : IndexTree::Builder::kUnknown);
      is_known = bits != nullptr;
      bit = IndexTree::Builder::kUnknown;
    }
    // A change of this piece that is left belongs to a node that is not there.
    return at_ == changes_.size() || place_ >= tree_.End() || IndexTree::PieceOf(place_) > piece;
  }

  const OrderedNodes& nodes_;
  const IndexTree& tree_;
  const std::span<const Change> changes_;
  const RegionSet& regions_;
  const KeyOrder& order_;
  size_t at_ = 0;       // the next change
  uint64_t place_ = 0;  // its place
  IndexTree::Builder builder_;
};

std::shared_ptr<const OrderedIndex> OrderedIndex::Apply(const OrderedIndex& before, std::span<const Change> changes,
                                                        const RegionSet& regions, const KeyOrder& order) {
  ChangePass pass(&before, changes, &regions, &order);
  if (!pass.Run()) return nullptr;
  const auto added = static_cast<uint64_t>(std::ranges::count_if(changes, &Change::is_added));
  const uint64_t expected = before.nodes_.nodes.nodes() + added - (changes.size() - added);
  auto index = std::make_shared<OrderedIndex>();
  index->nodes_.Take(pass.builder()->Finish());
  if (index->nodes_.nodes.nodes() != expected) return nullptr;
  index->changed_ = before.changed_ + changes.size();
  if (!before.nodes_.alike.empty() || index->changed_ >= expected / kChangesPerSearch) {
    index->nodes_.BuildAlike(order, nullptr, UINT64_MAX, nullptr);
    index->changed_ = 0;
  }
  return index;
}

}  // namespace braiddb
