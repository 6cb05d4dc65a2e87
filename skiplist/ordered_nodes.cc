#include "skiplist/ordered_nodes.h"

#include <algorithm>
#include <new>
#include <utility>

#include "log/fetch_entry.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Nodes of a range that are prefetched before a search by bits.
constexpr uint64_t kMostFound = 2 * AlikeSteps::kSampled;

}  // namespace

// The samples are evenly spaced places; a place in a hole stands for the next node.
void OrderedNodes::Take(IndexTree tree) {
  nodes = std::move(tree);
  fetch_bytes =
      nodes.nodes() == 0 ? 0 : TypicalEntryBytes(nodes.End(), [this](uint64_t at) { return nodes.EntryAt(nodes.Normalize(at)); });
}

// A place in a hole stands for the node behind the hole, so it has that node's key.
void OrderedNodes::BuildAlike(const KeyOrder& order, SharedHeap* heap, uint64_t max_bytes, const std::atomic<bool>* stop) try {
  const auto at = [this](size_t place) { return nodes.EntryAt(nodes.Normalize(place)); };
  alike.Build({nodes.End(), [this](size_t place) { return nodes.PrefixAt(nodes.Normalize(place)); },
               [at](size_t place) { return at(place)->key(); }, [at](size_t place) { FetchEntry(at(place)); },
               [stop] { return stop != nullptr && stop->load(std::memory_order_acquire); }, true,
               [this](size_t one, size_t other) { return nodes.Normalize(one) == nodes.Normalize(other); }},
              order, heap);
  if (bytes() > max_bytes) alike = {};
} catch (const std::bad_alloc&) {
  alike = {};  // searches gallop
}

bool OrderedNodes::IsBefore(const KeyOrder& order, uint64_t place, const SearchKey& target) const {
  return CompareEntry(order, *nodes.EntryAt(place), target) < 0;
}

// STEPS  1 AlikeSteps narrow the range if there may be many nodes; else their end is near  2 if the range lies in several pieces,
//        a binary search among the first nodes of pieces leaves one of them.
OrderedNodes::Among OrderedNodes::BeginAmong(const KeyOrder& order, uint64_t first, const SearchKey& target) const {
  uint64_t low = first;
  uint64_t high = nodes.End();
  alike.Narrow(order, target, &low, &high);
  low = nodes.Normalize(low);
  if (high == nodes.End()) {
    if (low == nodes.End() || nodes.PrefixAt(low) != target.prefix) return {low, low};
    high = nodes.Gallop(low + 1, [&](uint64_t place) { return nodes.PrefixAt(place) == target.prefix; });
  }
  while (low < high && IndexTree::PieceOf(low) != IndexTree::PieceOf(high - 1)) {
    const uint64_t piece = (IndexTree::PieceOf(low) + IndexTree::PieceOf(high - 1) + 1) / 2;
    const uint64_t middle = piece * IndexTree::kPieceNodes;
    if (IsBefore(order, middle, target)) {
      low = nodes.Normalize(middle + 1);
    } else {
      high = middle;
    }
  }
  if (low >= high) return {low, low};
  high = std::min(high, nodes.EndOfPiece(low));
  Among among{low, high};
  among.bits = high - low == 1 ? nullptr : nodes.BitsAt(low);
  if (among.bits != nullptr) {
    PrefetchAll(among.bits, (high - low) * sizeof(uint16_t));
    nodes.FetchForward(low, std::min(high - low, kMostFound));
  } else {
    FetchEntry(nodes.EntryAt(low + (high - low) / 2));
  }
  return among;
}

void OrderedNodes::ChooseAmong(const KeyOrder& order, const SearchKey& target, Among* among) const {
  if (among->low == among->high || among->bits == nullptr) return;
  const BitTree bits(among->bits, static_cast<uint32_t>(among->high - among->low));
  among->candidate = bits.Candidate(target.key, order.is_reverse());
  FetchEntry(nodes.EntryAt(among->low + among->candidate));
}

uint64_t OrderedNodes::EndAmong(const KeyOrder& order, const SearchKey& target, const Among& among) const {
  uint64_t low = among.low;
  if (among.bits != nullptr) {
    bool has_key = false;
    const auto key_at = [&](uint32_t i) {
      const LogEntry* const entry = nodes.EntryAt(among.low + i);
      return SearchKey(target.prefix, entry->key(), entry->sequence());
    };
    const BitTree bits(among.bits, static_cast<uint32_t>(among.high - low));
    return nodes.Normalize(low + bits.FirstNotBefore(order, target, among.candidate, key_at, &has_key));
  }
  for (uint64_t high = among.high; low < high;) {
    const uint64_t middle = low + (high - low) / 2;
    if (IsBefore(order, middle, target)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nodes.Normalize(low);
}

uint64_t OrderedNodes::FirstAmongEqual(const KeyOrder& order, uint64_t first, const SearchKey& target) const {
  Among among = BeginAmong(order, first, target);
  ChooseAmong(order, target, &among);
  return EndAmong(order, target, among);
}

}  // namespace braiddb
