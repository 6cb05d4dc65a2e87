// Rebuild: reconstructs the inner nodes from the leaves after a crash (NV-Tree, FAST '15, 3.2.5).
#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_set>

#include "leaf_tree/leaf_tree.h"
#include "util/mutant.h"
#include "util/run_parallel.h"

namespace braiddb {
// GOAL   The list of leaves with the range of each leaf, in DRAM. All blocks outside the list are free.
// STEPS  1. Threads scan all blocks of the tree's segments in address order, linked or not: validity, link, smallest and largest
//        key word. They do not read entries: an element of a free block may refer to an entry that is gone.
//        2. One thread follows the links through the results of step 1, and makes the headers of the leaves durable.
//        3. If the key words of two neighbors do not decide their border, their elements are compared.
//        4. Empty leaves except the first are removed from the list, since they have no range.
// CRASH  Only step 4 stores: one link at a time, each to a leaf of the list. After a crash the next open rebuilds again.
// COST   Step 1 reads all leaves sequentially and in parallel; step 2 flushes one line per leaf.
Status LeafTree::Rebuild(uint32_t threads) {
  const std::vector<Segment*>& segments = space_->segments();
  std::vector<std::vector<Scanned>> scanned(segments.size());
  for (size_t i = 0; i < segments.size(); ++i) scanned[i].resize(space_->Blocks(*segments[i]));
  std::atomic<size_t> next_segment{0};
  // Step 1. Threads take segments from a common counter.
  const auto scan = [&] {
    for (size_t i = next_segment++; i < segments.size(); i = next_segment++) {
      for (uint64_t block = 0; block < scanned[i].size(); ++block) Scan(space_->Block(*segments[i], block), &scanned[i][block]);
    }
  };
  RunParallel(static_cast<uint32_t>(std::min<size_t>(threads, segments.size())), [&](uint32_t) { scan(); });
  const auto find = [&](PmPtr place) -> const Scanned* {
    LeafSpace::Place in;
    return space_->Locate(place, &in) ? &scanned[in.segment][in.block] : nullptr;
  };

  // Step 2. Follow the links. A link to a block outside the tree, to an invalid leaf, or to a leaf already visited is damage.
  std::vector<PmPtr> list;
  std::unordered_set<uint64_t> linked;
  uint64_t link = root_->first;
  if (!IsLink(root_->tree_id, link)) return Damaged("the link to the first leaf is damaged");
  while (const PmPtr place = LinkTarget(link)) {
    const Scanned* const leaf = find(place);
    if (leaf == nullptr) return Damaged("a link leads to where no leaf can be");
    if (!leaf->valid) return Damaged("a leaf is damaged");
    if (!linked.insert(place.raw()).second) return Damaged("the list of leaves is a circle");
    list.push_back(place);
    link = leaf->next;
  }
  if (list.empty()) return Damaged("there is no leaf");
  for (const PmPtr place : list) {
    if (!BRAIDDB_MUTANT("found-leaves-not-flushed")) FlushFound(place);
  }
  // ORDER: commit words and links before any store that depends on them. After a killed process, values that can be read are not
  // necessarily durable. [CC-46]
  if (!persistence()->Drain()) return persistence()->error();

  if (!space_->FreeOthers(list)) return Damaged("a link leads to where no leaf can be");
  return BuildFromList(list, find);
}

// Computes the separators of neighboring leaves and builds the inner nodes. `find(leaf)`: what the scan of the leaf has found.
Status LeafTree::BuildFromList(const std::vector<PmPtr>& list, const std::function<const Scanned*(PmPtr)>& find) {
  const EpochManager::Guard guard = parts_.epochs->Enter();
  InnerNodes::NewChildren children;
  children.Reserve(list.size());
  std::vector<Element> left, right;
  const Scanned* before = find(list[0]);
  children.Add({Separator(), list[0], before->hint});
  for (size_t i = 1; i < list.size(); ++i) {
    const Scanned* const now = find(list[i]);
    // Step 4. The link of the last kept leaf skips the empty one.
    if (now->empty) {
      const PmPtr last = children.all().back().leaf;
      uint64_t* const link = LinkOf(last);
      StoreRelease(link, MakeLink(last.raw(), LinkTarget(LoadAcquire(LinkOf(list[i])))));
      // ORDER: the link before the leaf is used again. [CC-43]
      const bool left_out = BRAIDDB_MUTANT("emptied-leaf-link-not-persisted");
      if (!left_out && !persistence()->Persist(link, sizeof(*link))) return persistence()->error();
      space_->Free(list[i]);
      continue;
    }
    // Step 3. The key words decide, unless they are equal.
    if (now->has_words && before->has_words && (before->empty || before->greatest < now->least)) {
      // If the first leaf is empty, its range ends where the range of the next leaf begins.
      children.Add({{now->least, nullptr}, list[i], now->hint});
    } else if (now->has_words && before->has_words && before->greatest > now->least) {
      return Damaged("two leaves are not in order");
    } else {
      left.clear();
      right.clear();
      CollectSorted(children.all().back().leaf, &left);
      CollectSorted(list[i], &right);
      if (right.empty() || (!left.empty() && !Less(left.back(), right.front()))) return Damaged("two leaves are not in order");
      children.Add(
          {left.empty() ? Separator{right.front().key, nullptr} : Between(left.back(), right.front()), list[i], now->hint});
    }
    before = now;
  }
  const std::span<InnerNodes::Child> all = children.all();
  for (size_t i = 0; i < all.size(); ++i)
    all[i].hint = HintOf(all[i].leaf, all[i].hint, all[i].low, i + 1 < all.size() ? &all[i + 1].low : nullptr);
  inner_.Build(all);
  children.Give();
  uint64_t elements = 0;
  for (const InnerNodes::Child& child : all) elements += find(child.leaf)->elements;
  elements_.store(elements, std::memory_order_relaxed);
  knows_elements_ = true;
  return Status::OK();
}

Status LeafTree::Damaged(const char* what) const {
  return Status::Corruption(std::string(name_) + ": " + what + "; restore the database from a copy");
}

}  // namespace braiddb
