// Rebuild: finds the leaves of an LbTree at open and builds the inner nodes.
#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_set>

#include "lb_tree/lb_tree.h"
#include "util/mutant.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

// What the scan of a block keeps.
struct Scanned {
  uint64_t next = 0;  // link
  uint64_t least = 0;
  uint64_t greatest = 0;
  bool valid = false;
  bool empty = true;
};

Status Damaged(const char* what) {
  return Status::Corruption(std::string("LB+-Tree: ") + what + "; restore the database from a copy");
}

}  // namespace

// GOAL   The inner nodes of the leaves in the list. All blocks outside the list are free.
// STEPS  1. Threads scan all blocks of the tree's segments in address order, whether linked or not.
//        2. One thread follows the links through the results of step 1 and checks the order of keys.
//        3. Threads flush the leaves of the list.  4. Empty leaves except an only one leave the list.  5. Build the inner nodes.
// CRASH  Only step 4 stores: one link at a time, each to a leaf of the list.
// COST   One sequential pass over the leaves in parallel; one flush for each line of a leaf, one fence a thread.
Status LbTree::Rebuild(uint32_t threads) {
  threads = std::max<uint32_t>(threads, 1);
  std::vector<LbInnerNodes::Child> leaves;
  Status status = FindLeaves(threads, &leaves);
  if (!status.ok()) return status;
  inner_.Build(leaves, threads);
  return Status::OK();
}

Status LbTree::FindLeaves(uint32_t threads, std::vector<LbInnerNodes::Child>* leaves) {
  // Step 1.
  const std::vector<Segment*>& segments = space_.segments();
  std::vector<std::vector<Scanned>> scanned(segments.size());
  for (size_t i = 0; i < segments.size(); ++i) scanned[i].resize(space_.Blocks(*segments[i]));
  std::atomic<size_t> next_segment{0};
  RunParallel(threads, [&](uint32_t) {
    LbEntry entries[LbLeaf::kMaxEntries];
    for (size_t i = next_segment++; i < segments.size(); i = next_segment++) {
      for (uint64_t block = 0; block < scanned[i].size(); ++block) {
        const PmPtr place = space_.Block(*segments[i], block);
        const LbLeaf leaf = At(place);
        if (!leaf.IsValid(LinkOwner(place))) continue;
        Scanned& found = scanned[i][block];
        found.valid = true;
        found.next = leaf.link();
        const uint32_t count = leaf.Collect(entries);
        found.empty = count == 0;
        if (found.empty) continue;
        const auto [least, greatest] =
            std::minmax_element(entries, entries + count, [](const LbEntry& a, const LbEntry& b) { return a.key < b.key; });
        found.least = least->key;
        found.greatest = greatest->key;
      }
    }
  });

  // Step 2.
  std::vector<PmPtr> list;
  std::vector<const Scanned*> states;
  std::unordered_set<uint64_t> linked;
  uint64_t link = LoadAcquire(&root_->first);
  if (!IsLink(root_->tree_id, link)) return Damaged("the link to the first leaf is damaged");
  const Scanned* last = nullptr;
  while (const PmPtr place = LinkTarget(link)) {
    LeafSpace::Place in;
    if (!space_.Locate(place, &in)) return Damaged("a link leads to where no leaf can be");
    const Scanned* const leaf = &scanned[in.segment][in.block];
    if (!leaf->valid) return Damaged("a leaf is damaged");
    if (!linked.insert(place.raw()).second) return Damaged("the list of leaves is a circle");
    if (!leaf->empty && last != nullptr && last->greatest >= leaf->least) return Damaged("two leaves are not in order");
    if (!leaf->empty) last = leaf;
    list.push_back(place);
    states.push_back(leaf);
    link = leaf->next;
  }
  if (list.empty()) return Damaged("there is no leaf");

  // Step 3. ORDER: what was found is durable before anything depends on it. [CC-46]
  std::atomic<bool> is_durable{true};
  RunParallel(threads, [&](uint32_t thread) {
    if (BRAIDDB_MUTANT("lb-found-leaves-not-flushed")) return;
    if (thread == 0) persistence()->Flush(root_, sizeof(*root_));
    for (size_t i = list.size() * thread / threads; i < list.size() * (thread + 1) / threads; ++i)
      At(list[i]).FlushAll(persistence());
    if (!persistence()->Drain()) is_durable = false;
  });
  if (!is_durable) return persistence()->error();
  if (!space_.FreeOthers(list)) return Damaged("a link leads to where no leaf can be");

  // Step 4. If all leaves are empty, the last one stays.
  PmPtr left;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!states[i]->empty || (leaves->empty() && i + 1 == list.size())) {
      leaves->push_back({states[i]->least, list[i]});
      left = list[i];
      continue;
    }
    // ORDER: the link before the block is used again. [CC-73]
    if (!Relink(left, LinkTarget(states[i]->next))) return persistence()->error();
    space_.Free(list[i]);
  }
  return Status::OK();
}

}  // namespace braiddb
