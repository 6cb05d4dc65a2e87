// The orders of NvTree's leaves (leaf_order.h): who makes them, and the copies of leaves that have one.
#include <algorithm>
#include <array>

#include "nvtree/nv_tree.h"

namespace braiddb {
namespace {

// Number of entries that the copy of a part of a leaf prefetches.
constexpr uint32_t kFetchedEntries = 8;

}  // namespace

// ---- Readers

// `order`: the one published for the leaf, or null.
const LeafOrder* NvTree::CurrentOrder(PmPtr place, const LeafOrder* order, bool is_search) const {
  const Leaf& leaf = *At(place);
  Prefetch(&leaf);
  if (order != nullptr) {
    order->PrefetchLines();
    if (order->is_declined()) return nullptr;
    // acquire, in count(): the elements that the order covers are there, and so are those that a reader before saw.
    if (order->covered() == leaf.CountWithin(leaf_bytes_)) return order;
  }
  if (is_search && !parts_.order->equal_means_same()) return nullptr;
  return MakeOrder(place, order);
}

// WHY IT IS RIGHT  The order describes the state of the leaf at one nElement, and is used only while nElement is the same. The
//                  caller's epoch guard holds the leaf, and the entries of all elements that were live then.
// COST             One entry per element, prefetched.
const LeafOrder* NvTree::MakeOrder(PmPtr place, const LeafOrder* before) const {
  const Leaf& leaf = *At(place);
  const uint32_t count = leaf.CountWithin(leaf_bytes_);
  LeafRanks ranks;
  ranks.live = LiveSlots(leaf, count, ranks.slot);
  const bool is_worth_it = Rank(leaf, &ranks);
  const LeafOrder* const order = is_worth_it ? LeafOrder::New(count, ranks) : LeafOrder::NewDeclined();
  return order != nullptr && PublishOrder(place, before, order) && is_worth_it ? order : nullptr;
}

bool NvTree::HasTies(std::span<const Element> sorted) {
  uint32_t ties = 0;
  for (size_t i = 1; i < sorted.size(); ++i) ties += sorted[i - 1].key == sorted[i].key;
  return LeafOrder::IsWorthIt(ties, static_cast<uint32_t>(sorted.size()));
}

// False: no order, because few key words are equal, or because an element is damaged and has no key.
// STEPS  1. Count the equal key words, without a read of an entry.  2. Read all keys.  3. Sort the appended elements, and merge
//        them with the sorted ones.  4. Compute the differences of neighbors.
bool NvTree::Rank(const Leaf& leaf, LeafRanks* ranks) const {
  struct Item {
    Slice key;
    uint64_t word;
    uint64_t sequence;
    uint8_t slot;
  };
  std::array<Item, LeafRanks::kMost> items;
  const auto begin = items.begin(), end = begin + ranks->live;
  std::array<uint64_t, LeafRanks::kMost> words;
  for (uint32_t i = 0; i < ranks->live; ++i) words[i] = leaf.elements[ranks->slot[i]].key;
  std::sort(words.begin(), words.begin() + ranks->live);
  uint32_t ties = 0;
  for (uint32_t i = 1; i < ranks->live; ++i) ties += words[i - 1] == words[i];
  if (!LeafOrder::IsWorthIt(ties, ranks->live)) return false;

  for (uint32_t i = 0; i < ranks->live; ++i) parts_.keys->Prefetch(leaf.elements[ranks->slot[i]]);
  uint32_t sorted = 0;
  for (uint32_t i = 0; i < ranks->live; ++i) {
    const uint8_t slot = ranks->slot[i];
    const SearchKey key = parts_.keys->KeyOf(leaf.elements[slot]);
    if (key.key.empty() && key.prefix != parts_.order->Prefix(key.key)) return false;
    items[i] = {key.key, leaf.elements[slot].key, key.sequence, slot};
    sorted += slot < leaf.sorted();
  }
  const auto less = [this](const Item& a, const Item& b) {
    if (a.word != b.word) return a.word < b.word;
    const int by_key = parts_.order->Compare(a.key, b.key);
    return by_key != 0 ? by_key < 0 : a.sequence > b.sequence;
  };
  std::sort(begin + sorted, end, less);
  std::inplace_merge(begin, begin + sorted, end, less);

  ranks->has_bits = parts_.order->equal_means_same();
  for (uint32_t i = 0; i < ranks->live; ++i) {
    ranks->slot[i] = items[i].slot;
    ranks->differ[i] = 0;
    if (i > 0 && ranks->has_bits) ranks->SetDifference(i, items[i - 1].key, items[i].key);
  }
  return true;
}

// Without a rest: before all elements with its key word. Reads no entry.
uint32_t NvTree::FirstRank(const Leaf& leaf, const RankView& ranks, const Separator& target) const {
  const auto before = [&](uint8_t slot) { return leaf.elements[slot].key < target.prefix; };
  return static_cast<uint32_t>(std::partition_point(ranks.slot, ranks.slot + ranks.live, before) - ranks.slot);
}

// First the lines of the elements, then the entries, so that all misses of one kind overlap.
void NvTree::FetchRanks(const Leaf& leaf, const RankView& ranks, uint32_t rank, bool before, uint32_t enough) const {
  const uint32_t begin = before ? rank - std::min(rank, enough) : rank;
  const uint32_t end = before ? rank : std::min(rank + enough + 1, ranks.live);
  Prefetch(&leaf.elements[ranks.slot[rank]]);
  for (uint32_t i = begin; i < end; ++i) Prefetch(&leaf.elements[ranks.slot[i]]);
  parts_.keys->Prefetch(leaf.elements[ranks.slot[rank]]);
  const uint32_t entries = std::min(kFetchedEntries, end - begin);
  for (uint32_t i = 0; i < entries; ++i) parts_.keys->Prefetch(leaf.elements[ranks.slot[before ? end - 1 - i : begin + i]]);
  if (begin != end && end - begin > enough / 2) parts_.keys->Prefetch(leaf.elements[ranks.slot[before ? begin : end - 1]]);
}

// `first_at`: rank of the first element that is not before the target.
void NvTree::CopyRanks(const RankView& ranks, uint32_t first_at, bool before, uint32_t enough, LeafCopy* copy) const {
  const Leaf& leaf = *At(copy->range.leaf);
  copy->is_exact = true;
  const uint32_t begin = before ? first_at - std::min(first_at, enough) : first_at;
  const uint32_t end = before ? first_at : first_at + std::min(ranks.live - first_at, enough);
  const uint32_t cut = before ? begin : end;
  copy->is_cut = cut > 0 && cut < ranks.live;
  if (copy->is_cut) {
    copy->behind = leaf.elements[ranks.slot[cut]];
    parts_.keys->Prefetch(copy->behind);  // the caller reads its key
    copy->cuts_key =
        ranks.has_bits ? ranks.differ[cut] == RankView::kSame : SameKey(leaf.elements[ranks.slot[cut - 1]], copy->behind);
  }
  copy->elements.resize(end - begin);
  for (uint32_t i = begin; i < end; ++i) copy->elements[i - begin] = leaf.elements[ranks.slot[i]];
}

// ---- Writers

// A reader that finds the new elements before the new order makes one itself; then this one is not published.
void NvTree::UpdateOrder(PmPtr place, uint32_t covered, std::span<const LeafChange> changes) const {
  const LeafOrder* const before = orders_->Find(place);
  if (before == nullptr || before->is_declined() || before->covered() != covered) return;
  LeafRanks ranks;
  before->CopyTo(&ranks);
  uint32_t slot = covered;
  for (const LeafChange& change : changes) {
    if (!UpdateRanks(*At(place), change, slot++, &ranks)) return;
  }
  const LeafOrder* const order = LeafOrder::New(slot, ranks);
  if (order != nullptr) PublishOrder(place, before, order);
}

// Returns false if the ranks cannot be updated.
bool NvTree::UpdateRanks(const Leaf& leaf, const LeafChange& change, uint32_t slot, LeafRanks* ranks) const {
  const SearchKey key = parts_.keys->KeyOf(change.element);
  bool has_key = false;
  const uint32_t rank = FirstRank(leaf, ranks->view(), key, &has_key);
  if (change.negative) {
    if (rank == ranks->live || leaf.elements[ranks->slot[rank]] != change.element) return false;
    ranks->Remove(rank);
    return true;
  }
  ranks->Insert(rank, static_cast<uint8_t>(slot));
  if (!ranks->has_bits) return true;
  const auto key_at = [&](uint32_t i) { return parts_.keys->KeyOf(leaf.elements[ranks->slot[i]]).key; };
  if (rank > 0) ranks->SetDifference(rank, key_at(rank - 1), key.key);
  if (rank + 1 < ranks->live) ranks->SetDifference(rank + 1, key.key, key_at(rank + 1));
  return ranks->has_bits;
}

bool NvTree::PublishOrder(PmPtr place, const LeafOrder* before, const LeafOrder* order) const {
  if (!orders_->Replace(place, before, order)) {
    LeafOrder::Delete(order);
    return false;
  }
  if (before == nullptr) return true;
  try {
    parts_.epochs->Retire([before] { LeafOrder::Delete(before); });
  } catch (const std::bad_alloc&) {  // readers may still use it, so its memory is lost
  }
  return true;
}

}  // namespace braiddb
