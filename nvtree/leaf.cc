#include "nvtree/leaf.h"

#include <cstring>

#include "util/check.h"
#include "util/mutant.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

constexpr int kChecksumShift = 16;

// The hash covers size, number of sorted elements, tree and address, so that a leaf of another tree or place is not valid here.
uint64_t MakeShape(uint64_t tree_id, PmPtr place, uint32_t bytes, uint32_t sorted) {
  const uint64_t low = uint64_t{sorted} << 16 | bytes / kCacheLine;
  return (Mix64(Mix64(tree_id ^ low) ^ place.raw()) << 32) | low;
}

// `before`: the checksum of the elements before. 48 bits of state go from one element to the next; `published` stores them above
// nElement.
uint64_t Checksum(uint64_t before, const Element& element, bool negative) {
  uint64_t sum = (before ^ element.key) * 0x9e3779b97f4a7c15ull;
  sum = ((sum ^ sum >> 32) + element.value + (negative ? 0xd6e8feb86659fd93ull : 0)) * 0xc2b2ae3d27d4eb4full;
  return (sum ^ sum >> 29) >> kChecksumShift;
}

uint64_t Published(uint64_t checksum, uint32_t count) { return checksum << kChecksumShift | count; }
// The checksum of a leaf without elements.
uint64_t FirstChecksum(uint64_t shape) { return Mix64(shape) >> kChecksumShift; }

bool IsInOrder(std::span<const Element> elements) {
  return std::is_sorted(elements.begin(), elements.end(), [](const Element& a, const Element& b) { return a.key < b.key; });
}

// A hash set of the NEGATIVE elements that a scan from the end of a leaf has met.
class NegativeElements {
 public:
  explicit NegativeElements(const Leaf& leaf) : leaf_(leaf) {}

  // Adds element i. REQUIRES: each element at most once.
  void Add(uint32_t i) {
    size_t slot = SlotOf(leaf_.elements[i]);
    while (slots_[slot] != 0) slot = (slot + 1) % kSlots;
    slots_[slot] = static_cast<uint8_t>(i + 1);
  }
  // Returns true if a NEGATIVE element cancels element i. That NEGATIVE element then cancels no other.
  bool Take(uint32_t i) {
    const Element& element = leaf_.elements[i];
    for (size_t slot = SlotOf(element); slots_[slot] != 0; slot = (slot + 1) % kSlots) {
      const uint32_t found = slots_[slot] - 1u;
      const uint64_t bit = uint64_t{1} << found % 64;
      if ((used_[found / 64] & bit) != 0 || leaf_.elements[found] != element) continue;
      used_[found / 64] |= bit;
      return true;
    }
    return false;
  }

 private:
  static constexpr size_t kSlots = 512;
  static_assert(Leaf::kMaxElements <= UINT8_MAX && kSlots >= 2 * Leaf::kMaxElements);

  static size_t SlotOf(const Element& element) { return (element.key ^ element.value) * 0x9e3779b97f4a7c15ull >> 55; }

  const Leaf& leaf_;
  uint64_t used_[4] = {};
  uint8_t slots_[kSlots] = {};
};

}  // namespace

// No commit: the leaf counts when a durable link leads to it. The caller fences once for all new leaves.
void MakeLeaf(Persistence* persistence, Leaf* leaf, uint64_t tree_id, PmPtr place, uint32_t bytes,
              std::span<const Element> sorted, PmPtr next) {
  const auto count = static_cast<uint32_t>(sorted.size());
  BRAIDDB_CHECK(count <= Leaf::Capacity(bytes));
  BRAIDDB_DCHECK(IsInOrder(sorted));
  // The leaf is not linked yet, so plain stores in any order are enough.
  const uint64_t shape = MakeShape(tree_id, place, bytes, count);
  uint64_t checksum = FirstChecksum(shape);
  for (uint32_t i = 0; i < count; ++i) {
    checksum = Checksum(checksum, sorted[i], false);
    leaf->elements[i] = sorted[i];
  }
  leaf->published = Published(checksum, count);
  leaf->next = MakeLink(place.raw(), next);
  memset(leaf->negative, 0, sizeof(leaf->negative));
  leaf->shape = shape;
  leaf->reserved = 0;
  if (!BRAIDDB_MUTANT("leaf-not-flushed")) persistence->Flush(leaf, Leaf::kHeaderBytes + count * sizeof(Element));
}

// STEPS  P1 write and flush the elements and changed negative words, fence.  P2 store `published`, flush, fence.
// CRASH  Before P2 is durable, nElement excludes the new elements, and recovery ignores them. Their negative bits may remain; the
//        next append at the same position corrects them.
// WHAT A READER SEES  All changes at once, when it loads the new nElement. It may see them before P2 is durable.
bool AppendToLeaf(Persistence* persistence, Leaf* leaf, std::span<const LeafChange> changes) {
  const uint64_t published = LoadRelaxed(&leaf->published);
  const auto begin = static_cast<uint32_t>(published & Leaf::kCountMask);
  BRAIDDB_CHECK(begin + changes.size() <= Leaf::kMaxElements);
  uint64_t checksum = published >> kChecksumShift;
  uint32_t count = begin;
  bool marks_change = false;
  for (const LeafChange& change : changes) {
    leaf->elements[count] = change.element;
    // A crash may have left the bit of an append that was not committed.
    if (leaf->is_negative(count) != change.negative) {
      uint64_t* const word = &leaf->negative[count / 64];
      StoreRelaxed(word, LoadRelaxed(word) ^ uint64_t{1} << (count % 64));
      marks_change = true;
    }
    checksum = Checksum(checksum, change.element, change.negative);
    ++count;
  }
  const size_t flushed = BRAIDDB_MUTANT("elements-flush-too-short") ? 1 : changes.size();
  persistence->Flush(&leaf->elements[begin], flushed * sizeof(Element));
  if (marks_change) persistence->Flush(leaf->negative, sizeof(leaf->negative));
  // ORDER: the elements before the nElement that counts them. [CC-41]
  if (!BRAIDDB_MUTANT("elements-not-fenced") && !persistence->Drain()) return false;
  StoreRelease(&leaf->published, Published(checksum, count));
  if (BRAIDDB_MUTANT("element-count-not-flushed")) return persistence->Drain();
  return persistence->Persist(&leaf->published, sizeof(leaf->published));
}

// Checks every field against the hashes, as RECOVERY in leaf.h demands, and that the sorted elements are in order.
bool IsValidLeaf(const Leaf& leaf, uint64_t tree_id, PmPtr place, uint32_t bytes) {
  const uint32_t sorted = leaf.sorted();
  const uint32_t count = leaf.count();
  if (leaf.shape != MakeShape(tree_id, place, bytes, sorted)) return false;
  if (sorted > count || count > Leaf::Capacity(bytes) || leaf.reserved != 0) return false;
  if (!IsLink(place.raw(), LoadAcquire(&leaf.next))) return false;
  uint64_t checksum = FirstChecksum(leaf.shape);
  for (uint32_t i = 0; i < count; ++i) {
    const bool negative = leaf.is_negative(i);
    if (negative && i < sorted) return false;
    checksum = Checksum(checksum, leaf.elements[i], negative);
  }
  return LoadRelaxed(&leaf.published) == Published(checksum, count) && IsInOrder({leaf.elements, sorted});
}

// From the end, as in CollectLive.
uint32_t LiveSlots(const Leaf& leaf, uint32_t count, uint8_t* slots) {
  const uint32_t sorted = std::min(leaf.sorted(), count);
  NegativeElements negatives(leaf);
  uint32_t at = count;
  for (uint32_t i = count; i-- > 0;) {
    if (i >= sorted && leaf.is_negative(i)) {
      negatives.Add(i);
    } else if (!negatives.Take(i)) {
      slots[--at] = static_cast<uint8_t>(i);
    }
  }
  std::copy(slots + at, slots + count, slots);
  return count - at;
}

// STEPS  1. Prefetch.  2. Find the sorted elements of the part.  3. Without NEGATIVE elements: copy.  4. Otherwise scan from the
//        end, and fill *live from its end, since a cancelled element lies before its NEGATIVE one.
size_t CollectLive(const Leaf& leaf, uint32_t bytes, LeafPart* part, std::vector<Element>* live) {
  const uint32_t count = leaf.CountWithin(bytes);
  const uint32_t sorted = std::min(leaf.sorted(), count);
  const uint32_t guess = static_cast<uint32_t>(part->place * (sorted == 0 ? 0 : sorted - 1));
  for (uint32_t i = guess; i < std::min(sorted, guess + part->enough); i += kElementsPerLine) Prefetch(&leaf.elements[i]);
  for (uint32_t i = sorted; i < count; i += kElementsPerLine) Prefetch(&leaf.elements[i]);
  // The sorted elements of the part: [first, last).
  const Element* const sorted_end = leaf.elements + sorted;
  const Element* first = leaf.elements;
  if (part->from > 0 && sorted > 0) first = FirstNotLess(leaf.elements, sorted_end, part->from, leaf.elements + guess);
  const Element* last = sorted_end;
  if (sorted_end - first > static_cast<std::ptrdiff_t>(part->enough)) {
    last = first + part->enough;
    while (last != sorted_end && last->key <= last[-1].key) ++last;  // elements with one key word stay together
    if (last != sorted_end) part->to = last[-1].key + 1;             // not last->key: an unread element may be damaged
    if (part->to == LeafPart::kToTheEnd) last = sorted_end;
  }
  const auto is_asked_for = [part](const Element& element) {
    return element.key >= part->from && (element.key < part->to || part->to == LeafPart::kToTheEnd);
  };
  bool has_negative = false;
  for (uint32_t i = sorted; i < count; ++i) has_negative |= leaf.is_negative(i);
  const size_t begin = live->size();
  live->reserve(begin + static_cast<size_t>(last - first) + (count - sorted));  // may throw: before any change of *live
  if (!has_negative) {
    live->insert(live->end(), first, last);
    const size_t appended = live->size();
    for (const Element* element = sorted_end; element != leaf.elements + count; ++element) {
      if (is_asked_for(*element)) live->push_back(*element);
    }
    return appended - begin;
  }
  // From the end: a NEGATIVE element cancels the latest equal element before it, and none after it. A later equal element can be
  // another entry at the same address, whose key has the same first bytes.
  NegativeElements negatives(leaf);
  live->resize(begin + static_cast<size_t>(last - first) + (count - sorted));
  size_t at = live->size();
  for (uint32_t i = count; i-- > sorted;) {
    const Element& element = leaf.elements[i];
    if (!is_asked_for(element)) continue;
    if (leaf.is_negative(i)) {
      negatives.Add(i);
    } else if (!negatives.Take(i)) {
      (*live)[--at] = element;
    }
  }
  const size_t appended = at;
  for (const Element* element = last; element-- != first;) {
    if (!negatives.Take(static_cast<uint32_t>(element - leaf.elements))) (*live)[--at] = *element;
  }
  live->erase(live->begin() + static_cast<std::ptrdiff_t>(begin), live->begin() + static_cast<std::ptrdiff_t>(at));
  return appended - at;
}

}  // namespace braiddb
