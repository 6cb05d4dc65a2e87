#include "nvtree/leaf.h"

#include <cstring>

#include "util/check.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

constexpr int kChecksumShift = 16;

uint64_t MakeShape(uint64_t tree_id, PmPtr place, uint32_t bytes, uint32_t sorted) {
  const uint64_t low = uint64_t{sorted} << 16 | bytes / kCacheLine;
  return (Mix64(Mix64(tree_id ^ low) ^ place.raw()) << 32) | low;
}

// The running checksum is what stands above nElement: 48 bits go from one element to the next.
uint64_t Checksum(uint64_t before, const Element& element, bool negative) {
  uint64_t sum = (before ^ element.key) * 0x9e3779b97f4a7c15ull;
  sum = ((sum ^ sum >> 32) + element.value + (negative ? 0xd6e8feb86659fd93ull : 0)) * 0xc2b2ae3d27d4eb4full;
  return (sum ^ sum >> 29) >> kChecksumShift;
}

uint64_t Published(uint64_t checksum, uint32_t count) { return checksum << kChecksumShift | count; }
// Of a leaf without elements.
uint64_t FirstChecksum(uint64_t shape) { return Mix64(shape) >> kChecksumShift; }

bool IsInOrder(std::span<const Element> elements) {
  return std::is_sorted(elements.begin(), elements.end(), [](const Element& a, const Element& b) { return a.key < b.key; });
}

}  // namespace

void MakeLeaf(Persistence* persistence, Leaf* leaf, uint64_t tree_id, PmPtr place, uint32_t bytes,
              std::span<const Element> sorted, PmPtr next) {
  const auto count = static_cast<uint32_t>(sorted.size());
  BRAIDDB_CHECK(count <= Leaf::Capacity(bytes));
  BRAIDDB_DCHECK(IsInOrder(sorted));
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

bool AppendToLeaf(Persistence* persistence, Leaf* leaf, std::span<const LeafChange> changes) {
  const uint64_t published = LoadRelaxed(&leaf->published);
  const auto begin = static_cast<uint32_t>(published & Leaf::kCountMask);
  BRAIDDB_CHECK(begin + changes.size() <= Leaf::kMaxElements);
  uint64_t checksum = published >> kChecksumShift;
  uint32_t count = begin;
  bool marks_change = false;
  for (const LeafChange& change : changes) {
    leaf->elements[count] = change.element;
    // The bit may be left over from an append that a crash cut off.
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
  // ORDER: the elements before nElement counts them. [CC-41]
  if (!BRAIDDB_MUTANT("elements-not-fenced") && !persistence->Drain()) return false;
  StoreRelease(&leaf->published, Published(checksum, count));
  if (BRAIDDB_MUTANT("element-count-not-flushed")) return persistence->Drain();
  return persistence->Persist(&leaf->published, sizeof(leaf->published));
}

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

size_t CollectLive(const Leaf& leaf, uint32_t bytes, std::vector<Element>* live) {
  const uint32_t count = leaf.CountWithin(bytes);
  const uint32_t sorted = std::min(leaf.sorted(), count);
  const size_t first = live->size();
  uint32_t negatives = 0;
  for (uint32_t i = sorted; i < count; ++i) negatives += leaf.is_negative(i);
  if (negatives == 0) {
    live->insert(live->end(), leaf.elements, leaf.elements + count);
    return sorted;
  }
  // From the end: a NEGATIVE one takes back the latest before it.
  std::vector<Element> taken;
  taken.reserve(negatives);
  live->resize(first + count);
  size_t at = first + count;
  size_t live_sorted = 0;
  for (uint32_t i = count; i-- > 0;) {
    const Element& element = leaf.elements[i];
    if (i >= sorted && leaf.is_negative(i)) {
      taken.push_back(element);
      continue;
    }
    const auto found = std::find(taken.begin(), taken.end(), element);
    if (found != taken.end()) {
      *found = taken.back();
      taken.pop_back();
      continue;
    }
    (*live)[--at] = element;
    live_sorted += i < sorted;
  }
  live->erase(live->begin() + static_cast<std::ptrdiff_t>(first), live->begin() + static_cast<std::ptrdiff_t>(at));
  return live_sorted;
}

}  // namespace braiddb
