#include "leaf_tree/inner_nodes.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <type_traits>

#include "pmem/persistence.h"
#include "util/check.h"
#include "util/prefetch.h"
#include "util/spin.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

template <class T>
T Load(const T& word) {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
}
template <class T>
void Store(T* word, T value) {
  std::atomic_ref<T>(*word).store(value, std::memory_order_release);
}

// Returns true if the target is at or behind `place` (kStrict: behind it), the start of a range.
template <bool kStrict, class Target>
bool Reaches(const KeyOrder& order, const Separator& place, const Target& target) {
  const int comparison = CompareToSeparator(order, target, place);
  return kStrict ? comparison > 0 : comparison >= 0;
}

// Index of the last word that is not larger; 0 if all others are larger. Does not read words[0]. Binary search with conditional
// moves instead of branches.
inline size_t LastNotAbove(const uint64_t* words, size_t count, uint64_t word) {
  const uint64_t* at = words;
  for (size_t left = count; left > 1; left -= left / 2) at = Load(at[left / 2]) <= word ? at + left / 2 : at;
  return static_cast<size_t>(at - words);
}

// The last index in [first, behind) that is reached; `first` if none is. Binary search. REQUIRES: first <= behind.
template <class ReachesAt>
size_t LastReached(size_t first, size_t behind, const ReachesAt& reaches) {
  BRAIDDB_DCHECK(first <= behind);
  size_t reached = first;
  for (size_t left = behind - first; left > 1; left -= left / 2) {
    if (reaches(reached + left / 2)) reached += left / 2;
  }
  return reached;
}

// Among separators without rests: a key with the prefix of a separator is behind it.
template <class Target>
constexpr bool kPrefixesDecide = std::is_same_v<Target, SearchKey>;

uint64_t RestBytes(const Separator& separator) { return separator.rest == nullptr ? 0 : separator.rest->bytes(); }

class Stopwatch {
 public:
  explicit Stopwatch(uint64_t* ns) : ns_(ns) {}
  ~Stopwatch() {
    *ns_ += static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  uint64_t* const ns_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

// If some separator of the node has a rest, the keys' common bytes are skipped: those between its borders, or, without a border
// on one side, those of its separators except the first, which a search never compares.
template <class LowAt>
InnerNodes::Common InnerNodes::CommonOf(const KeyOrder& order, size_t count, const LowAt& low, const Separator* high,
                                        bool is_first) {
  Common common;
  common.is_open = is_first || high == nullptr;
  for (size_t i = 1; i < count; ++i) common.has_rests |= low(i).rest != nullptr;
  if (!common.has_rests) return common;
  common.bytes = common.is_open ? CommonBytes(order, low(1), low(count - 1)) : CommonBytes(order, low(0), *high);
  return common;
}

// The IN part. The lowest level contains the start of each PLN's range. Immutable.
struct InnerNodes::Levels {
  struct alignas(kCacheLine) Node {
    uint64_t word[kFanout];  // WordBehind of the separators; padded with the largest number behind the end of a level

    // The last word that is not larger, 0 if none. Compares all of them: no load depends on another, so misses overlap.
    size_t LastNotAbove(uint64_t of) const {
      size_t not_above = 0;
#pragma GCC unroll 16
      for (size_t i = 1; i < kFanout; ++i) not_above += word[i] <= of;
      return not_above;
    }
  };
  struct Level {
    size_t begin;   // index of its first node
    size_t count;   // number of separators
    size_t stride;  // number of PLNs that a separator covers
  };
  // What a search in a node needs beside the words, if there are rests.
  struct NodeBase {
    Common common;
    uint64_t base;  // prefix of the node's last separator
  };
  struct Place {
    const SeparatorRest* rest;
    ParentId parent;
  };
  std::vector<Node> nodes;      // of all levels, top level first
  std::vector<NodeBase> bases;  // of all nodes; empty if no separator has a rest
  std::vector<Level> levels;
  std::vector<Place> places;  // of all PLNs

  // A PLN and the start of its range.
  struct Low {
    Separator low;
    ParentId parent;
  };
  // REQUIRES: at least one element, in order.
  // STEPS  1. Compute the levels' sizes from the bottom up.  2. Lay the levels out from the top down in one array.
  //        3. Fill the nodes. A separator of an upper level is the first separator of the node below.
  Levels(const KeyOrder& order, std::span<const Low> lows) : places(lows.size()) {
    for (levels.push_back({0, lows.size(), 1}); levels.back().count > kFanout;)
      levels.push_back({0, Nodes(levels.back()), levels.back().stride * kFanout});
    std::reverse(levels.begin(), levels.end());
    for (size_t i = 1; i < levels.size(); ++i) levels[i].begin = levels[i - 1].begin + Nodes(levels[i - 1]);
    nodes.resize(levels.back().begin + Nodes(levels.back()));
    bool has_rests = false;
    for (size_t i = 0; i < lows.size(); ++i) {
      places[i] = {lows[i].low.rest, lows[i].parent};
      has_rests |= lows[i].low.rest != nullptr;
    }
    if (has_rests) bases.resize(nodes.size());
    for (const Level& level : levels) {
      for (size_t i = 0; i < Nodes(level); ++i) Fill(order, lows, level, i);
    }
  }
  static size_t Nodes(const Level& level) { return (level.count + kFanout - 1) / kFanout; }
  void Fill(const KeyOrder& order, std::span<const Low> lows, const Level& level, size_t i) {
    const size_t first = i * kFanout;
    const size_t count = std::min<size_t>(kFanout, level.count - first);
    const auto low = [&](size_t at) { return lows[(first + at) * level.stride].low; };
    const bool is_last = first + count == level.count;
    const Separator high = is_last ? Separator() : low(count);
    const Common common = CommonOf(order, count, low, is_last ? nullptr : &high, i == 0);
    Node* const node = &nodes[level.begin + i];
    std::fill(std::begin(node->word), std::end(node->word), UINT64_MAX);
    for (size_t at = 0; at < count; ++at) node->word[at] = WordBehind(order, low(at), common.bytes);
    if (!bases.empty()) bases[level.begin + i] = {common, low(count - 1).prefix};
  }
  uint64_t bytes() const { return nodes.size() * sizeof(Node) + bases.size() * sizeof(NodeBase) + places.size() * sizeof(Place); }
};

// The PLNs of one full build and of the changes since. PLNs are in chunks; each chunk is twice as large as the one before, so
// PLNs never move.
struct InnerNodes::Generation {
  static constexpr uint32_t kFirstChunk = 64;
  static constexpr uint32_t kChunks = 26;

  HugeArray<Parent> chunks[kChunks];
  ParentId first = kNone;
  ParentId used = 0;
  uint64_t children = 0;
  uint64_t unindexed = 0;  // PLNs that are not in the levels
  std::atomic<const Levels*> levels{nullptr};

  ~Generation() { delete levels.load(std::memory_order_relaxed); }

  // Chunk c has kFirstChunk * 2^c PLNs, whose ids begin at (2^c - 1) * kFirstChunk. The highest bit of id / kFirstChunk + 1 gives
  // c.
  Parent* At(ParentId id) const {
    const auto chunk = static_cast<uint32_t>(std::bit_width(id / kFirstChunk + 1)) - 1;
    const uint32_t before = ((1u << chunk) - 1) * kFirstChunk;
    return const_cast<Parent*>(&chunks[chunk][id - before]);
  }
  ParentId New() {
    const auto chunk = static_cast<uint32_t>(std::bit_width(used / kFirstChunk + 1)) - 1;
    BRAIDDB_CHECK(chunk < kChunks);
    if (chunks[chunk].empty()) {
      HugeArray<Parent> memory(uint64_t{kFirstChunk} << chunk);
      if (memory.empty()) throw std::bad_alloc();
      chunks[chunk] = std::move(memory);
    }
    Parent* const parent = At(used);
    parent->next = kNone;
    return used++;
  }
  template <class Visit>
  void ForEachParent(const Visit& visit) const {
    for (ParentId id = first; id != kNone; id = static_cast<ParentId>(At(id)->next)) visit(id, *At(id));
  }
};

InnerNodes::~InnerNodes() {
  const Generation* const generation = generation_.load(std::memory_order_relaxed);
  if (generation == nullptr) return;
  generation->ForEachParent([](ParentId, const Parent& parent) {
    for (uint64_t i = 0; i < parent.count; ++i) {
      if (parent.rest[i] != nullptr) DeleteSeparatorRest(parent.rest[i]);
    }
  });
  for (const auto& reclaim : given_up_) reclaim();
  delete generation;
}

// ---- Search

// STEPS  1. If the target may lie outside the common bytes, compare these.  2. Words decide, unless the separator found has the
//        target's word.  3. Then compare entire separators. Equal words behind equal bytes: the target has their prefix.
template <bool kStrict, class Target, class LastNotAboveWord, class WordOf, class RestOf>
size_t InnerNodes::SlotOf(Common common, uint64_t base, size_t count, const Target& target,
                          const LastNotAboveWord& last_not_above, const WordOf& word_of, const RestOf& rest_of) const {
  if (count == 1) return 0;
  if (common.is_open && common.bytes > 0) {
    // A torn read of a PLN may find no rest.
    const Separator sample{base, rest_of(count - 1)};
    const uint32_t compared = sample.rest == nullptr ? std::min<uint32_t>(common.bytes, sizeof(base)) : common.bytes;
    const int outside = CompareCommon(*order_, target, sample, compared);
    if (outside != 0) return outside < 0 ? 0 : count - 1;
  }
  const uint64_t word = WordBehind(*order_, target, common.bytes);
  const size_t slot = std::min(last_not_above(word), count - 1);
  if (slot == 0 || word_of(slot) != word) return slot;
  const auto reaches = [&](size_t i) { return Reaches<kStrict>(*order_, Separator{target.prefix, rest_of(i)}, target); };
  if (reaches(slot)) return slot;
  BRAIDDB_SYNC_POINT("InnerNodes::SlotOf:NotReached");
  // A PLN may change between the two searches, and its separators with this word may then lie behind `slot`.
  const size_t first = word == 0 ? 0 : std::min(last_not_above(word - 1), slot);
  return LastReached(first, slot, reaches);
}

template <bool kStrict, class Target>
InnerNodes::Descent InnerNodes::Descend(const Levels& levels, const Target& target) const {
  size_t at = 0;
  if (kPrefixesDecide<Target> && levels.bases.empty()) {
    for (const Levels::Level& level : levels.levels)
      at = std::min(at * kFanout + levels.nodes[level.begin + at].LastNotAbove(target.prefix), level.count - 1);
    return {levels.places[at].parent, nullptr};
  }
  for (const Levels::Level& level : levels.levels) {
    const Levels::Node& node = levels.nodes[level.begin + at];
    const Levels::NodeBase base = levels.bases.empty() ? Levels::NodeBase() : levels.bases[level.begin + at];
    const size_t first = at * kFanout;
    at = first + SlotOf<kStrict>(
                     base.common, base.base, std::min<size_t>(kFanout, level.count - first), target,
                     [&](uint64_t word) { return node.LastNotAbove(word); }, [&](size_t i) { return node.word[i]; },
                     [&](size_t i) { return levels.places[(first + i) * level.stride].rest; });
  }
  return {levels.places[at].parent, at + 1 < levels.places.size() ? levels.places[at + 1].rest : nullptr};
}

// WHY IT IS RIGHT  A PLN is read like a seqlock: the result counts only if `version` was even and did not change. The epoch guard
//                  keeps everything alive that a torn read may reach: separator rests, levels and PLNs. A torn read stays within
//                  the slots of the count that the reader has loaded: the bounds of a search do not depend on two loads of words
//                  being consistent. A target behind the PLN's range is in a right neighbor, which the loop reads next. A PLN's
//                  range only shrinks, and the start of a PLN's range never changes, so its rest in the levels is the one that
//                  the PLN stores.
template <bool kStrict, class Target>
InnerNodes::Range InnerNodes::Search(const Target& target) const {
  // acquire: pair with the releases in Build and RebuildLevels.
  const Generation& generation = *generation_.load(std::memory_order_acquire);
  auto [id, next_rest] = Descend<kStrict>(*generation.levels.load(std::memory_order_acquire), target);
  for (SpinWait wait;; wait.Once()) {
    const Parent& parent = *generation.At(id);
    for (size_t line = kCacheLine; line < offsetof(Parent, rest); line += kCacheLine)
      Prefetch(reinterpret_cast<const char*>(&parent) + line);
    // acquire, as all loads of a PLN: no load moves before this one or behind the load that compares versions.
    const uint64_t version = Load(parent.version);
    if (version % 2 != 0) continue;
    const auto next = static_cast<ParentId>(Load(parent.next));
    Range range;
    range.high = {Load(parent.high.prefix), Load(parent.high.rest)};
    range.is_last = next == kNone;
    // The target is in a right neighbor. The descent has compared it with next_rest, and it is before that.
    const bool is_before_high = range.high.rest != nullptr && range.high.rest == next_rest;
    if (next != kNone && !is_before_high && Reaches<kStrict>(*order_, range.high, target)) {
      if (Load(parent.version) == version) id = next;
      continue;
    }
    // Most PLNs have no rests; the lines of `rest` are read only if some separator needs one.
    const Common common = Common::Of(Load(parent.common));
    const uint64_t low_prefix = Load(parent.low_prefix), base = Load(parent.base);
    for (size_t line = offsetof(Parent, rest); line < sizeof(Parent) && common.has_rests; line += kCacheLine)
      Prefetch(reinterpret_cast<const char*>(&parent) + line);
    const auto rest_of = [&](size_t slot) { return common.has_rests ? Load(parent.rest[slot]) : nullptr; };
    const uint64_t count = Load(parent.count);
    const size_t slot =
        kPrefixesDecide<Target> && !common.has_rests
            ? LastNotAbove(parent.word, count, target.prefix)
            : SlotOf<kStrict>(
                  common, base, count, target, [&](uint64_t word) { return LastNotAbove(parent.word, count, word); },
                  [&](size_t i) { return Load(parent.word[i]); }, rest_of);
    const auto low = [&](size_t i) {
      return Separator{PrefixOf(i, Load(parent.word[i]), common.bytes, low_prefix, base), rest_of(i)};
    };
    const uint64_t word = Load(parent.leaf[slot]);
    range.leaf = LeafOf(word);
    range.hint = HintOf(word);
    range.low = low(slot);
    // The range ends at the next separator, or at the end of the PLN's range.
    if (slot + 1 < count) {
      range.high = low(slot + 1);
      range.is_last = false;
    }
    if (Load(parent.version) != version) continue;
    range.generation = &generation;
    range.version_at = &parent.version;
    range.version = version;
    return range;
  }
}

template InnerNodes::Range InnerNodes::Search<false>(const SearchKey&) const;
template InnerNodes::Range InnerNodes::Search<true>(const SearchKey&) const;
template InnerNodes::Range InnerNodes::Search<false>(const Separator&) const;
template InnerNodes::Range InnerNodes::Search<true>(const Separator&) const;

// ---- Changes

// Called only by the changing thread, so relaxed and plain loads are enough, and the version is not checked.
InnerNodes::Parent* InnerNodes::Locate(const SearchKey& at, uint32_t* slot, uint32_t* moves) const {
  const Generation& generation = *generation_.load(std::memory_order_relaxed);
  Parent* parent = generation.At(Descend<false>(*generation.levels.load(std::memory_order_relaxed), at).parent);
  for (*moves = 0; parent->next != kNone && Reaches<false>(*order_, parent->high, at); ++*moves) {
    parent = generation.At(static_cast<ParentId>(parent->next));
  }
  *slot = static_cast<uint32_t>(SlotOf<false>(
      Common::Of(parent->common), parent->base, parent->count, at,
      [&](uint64_t word) { return LastNotAbove(parent->word, parent->count, word); }, [&](size_t i) { return parent->word[i]; },
      [&](size_t i) { return parent->rest[i]; }));
  return parent;
}

std::vector<InnerNodes::Child> InnerNodes::Neighbors(const SearchKey& at, uint32_t count) const {
  uint32_t slot = 0, moves = 0;
  const Parent* parent = Locate(at, &slot, &moves);
  std::vector<Child> children;
  for (; slot < parent->count && children.size() < count; ++slot) {
    children.push_back(parent->child(slot));
  }
  return children;
}

PmPtr InnerNodes::LeftOf(const SearchKey& at) const {
  uint32_t slot = 0, moves = 0;
  const Generation& generation = *generation_.load(std::memory_order_relaxed);
  const Parent* parent = Locate(at, &slot, &moves);
  if (slot > 0) return LeafOf(parent->leaf[slot - 1]);
  if (parent == generation.At(generation.first)) return PmPtr();
  return FindBefore(parent->low(0)).leaf;
}

// `count` is stored last: a reader that loads it finds that number of slots filled. It may see a mix of old and new slots; the
// version check rejects it. `is_first`: the PLN is the first one.
void InnerNodes::Fill(Parent* parent, std::span<const Child> children, uint64_t next, const Separator& high,
                      bool is_first) const {
  const auto low = [&](size_t i) { return children[i].low; };
  Common common = CommonOf(*order_, children.size(), low, next == kNone ? nullptr : &high, is_first);
  common.has_rests |= children.front().low.rest != nullptr;  // a search returns it, though it does not compare it
  for (size_t i = 0; i < children.size(); ++i) {
    Store(&parent->word[i], WordBehind(*order_, children[i].low, common.bytes));
    Store(&parent->rest[i], children[i].low.rest);
    Store(&parent->leaf[i], children[i].word());
  }
  Store(&parent->high.prefix, high.prefix);
  Store(&parent->high.rest, high.rest);
  Store(&parent->next, next);
  Store(&parent->common, common.word());
  Store(&parent->low_prefix, children.front().low.prefix);
  Store(&parent->base, children.back().low.prefix);
  Store(&parent->count, uint64_t{children.size()});
}

// STEPS  1. Prepare: if the PLN has no room, fill new PLNs, which no reader reaches yet.
//        2. Commit: store the PLN's new contents under an odd version. From then on readers see the change.
//        3. Rebuild the levels if that is due.
// WHAT A READER SEES  Before and after step 2 the same ranges, except for the replaced leaves. A reader that is on its way to the
//                     left part of a split PLN continues to the right neighbor, because `high` says so.
InnerNodes::Replacement InnerNodes::Prepare(const SearchKey& at, uint32_t count, std::span<const Child> children) {
  Generation* const generation = generation_.load(std::memory_order_relaxed);
  Replacement change;
  uint32_t moves = 0;
  change.parent = Locate(at, &change.slot, &moves);
  const Parent& parent = *change.parent;
  BRAIDDB_CHECK(count > 0 && change.slot + count <= parent.count && !children.empty());
  const Separator low = parent.low(change.slot);
  BRAIDDB_CHECK(children[0].low.prefix == low.prefix && children[0].low.rest == low.rest);
  given_up_.reserve(given_up_.size() + count);
  change.count = count;
  change.children = children.size();
  for (size_t i = 1; i < children.size(); ++i) change.rest_bytes += RestBytes(children[i].low);

  // The children of the PLN after the change.
  std::vector<Child> slots;
  for (uint64_t i = 0; i < change.slot; ++i) slots.push_back(parent.child(i));
  slots.insert(slots.end(), children.begin(), children.end());
  for (uint64_t i = change.slot + count; i < parent.count; ++i) slots.push_back(parent.child(i));
  // If the change is at the end, keys probably arrive in order: fill the left PLNs nearly completely. Otherwise divide evenly.
  const bool in_order = change.slot + count == parent.count;
  const size_t pieces = (slots.size() + kOrderedFill - 1) / kOrderedFill;
  const size_t share = in_order ? kOrderedFill : (slots.size() + pieces - 1) / pieces;
  const size_t piece = slots.size() <= kParentSlots ? slots.size() : share;

  change.next = parent.next;
  change.high = parent.high;
  size_t end = slots.size();
  // Fills the new PLNs from right to left: each gets the `next` and `high` of its right neighbor before it is linked from the
  // left.
  for (size_t begin = (slots.size() - 1) / piece * piece; begin > 0; begin -= piece) {
    const ParentId id = generation->New();
    Fill(generation->At(id), std::span(slots).subspan(begin, end - begin), change.next, change.high, false);
    change.next = id;
    change.high = slots[begin].low;
    end = begin;
    ++change.new_parents;
  }
  slots.resize(end);
  change.left = std::move(slots);
  // Rebuild if this search walked far to the right, or if too many PLNs are missing in the levels.
  change.rebuild = moves >= kMaxMoves || generation->unindexed + change.new_parents > kMaxMoves + generation->used / kNewParents;
  return change;
}

// STEPS  1. Odd version.  2. Collect the rests of the removed children for reclamation.  3. Store the new contents.
//        4. Even version.  5. Pass the removed memory to the epochs, after readers can no longer find it.
void InnerNodes::Commit(Replacement* change) noexcept {
  Generation* const generation = generation_.load(std::memory_order_relaxed);
  Parent* const parent = change->parent;
  const uint64_t version = parent->version;
  // A reader that sees any of the stores below also sees this odd version, so its version check fails.
  Store(&parent->version, version + 1);
  for (uint32_t i = 1; i < change->count; ++i) {
    const SeparatorRest* const rest = parent->rest[change->slot + i];
    if (rest == nullptr) continue;
    stats_.bytes -= rest->bytes();
    given_up_.emplace_back([rest] { DeleteSeparatorRest(rest); });  // Prepare reserved the room
  }
  Fill(parent, change->left, change->next, change->high, parent == generation->At(generation->first));
  Store(&parent->version, version + 2);

  stats_.bytes += change->rest_bytes;
  generation->children += change->children;
  generation->children -= change->count;
  generation->unindexed += change->new_parents;
  RetireGivenUp();
}

void InnerNodes::Settle(const Replacement& change) noexcept {
  if (!change.rebuild) return;
  try {
    RebuildLevels();
  } catch (const std::bad_alloc&) {  // walks to the right stay longer, but correct; the next change tries again
  }
}

// Readers that use the old levels still reach every PLN by walks to the right.
void InnerNodes::RebuildLevels() {
  const Stopwatch stopwatch(&stats_.rebuild_ns);
  Generation* const generation = generation_.load(std::memory_order_relaxed);
  std::vector<Levels::Low> lows;
  lows.reserve(generation->used);
  generation->ForEachParent([&](ParentId id, const Parent& parent) { lows.push_back({parent.child(0).low, id}); });
  auto levels = std::make_unique<Levels>(*order_, lows);
  given_up_.reserve(given_up_.size() + 1);
  const Levels* const before = generation->levels.load(std::memory_order_relaxed);
  generation->levels.store(levels.release(), std::memory_order_release);
  generation->unindexed = 0;
  ++stats_.rebuilds;
  given_up_.emplace_back([before] { delete before; });
  RetireGivenUp();
}

// Readers keep using the old generation until the store of generation_; it is then retired through the epochs. Plain stores are
// enough before that store, which has release order.
void InnerNodes::Build(std::span<const Child> children) {
  const Stopwatch stopwatch(&stats_.rebuild_ns);
  BRAIDDB_CHECK(!children.empty());
  auto generation = std::make_unique<Generation>();
  std::vector<Levels::Low> lows;
  lows.reserve((children.size() + kBuildFill - 1) / kBuildFill);
  uint64_t rest_bytes = 0;
  for (const Child& child : children) rest_bytes += RestBytes(child.low);
  for (size_t begin = 0; begin < children.size(); begin += kBuildFill) {
    const ParentId id = generation->New();  // in order: 0, 1, 2, …
    const std::span<const Child> own = children.subspan(begin, std::min<size_t>(kBuildFill, children.size() - begin));
    const bool is_last = begin + kBuildFill >= children.size();
    Fill(generation->At(id), own, is_last ? kNone : id + 1, is_last ? Separator() : children[begin + kBuildFill].low, begin == 0);
    lows.push_back({children[begin].low, id});
  }
  generation->first = lows.front().parent;
  auto levels = std::make_unique<Levels>(*order_, lows);
  generation->children = children.size();
  generation->levels.store(levels.release(), std::memory_order_relaxed);
  given_up_.reserve(given_up_.size() + 1);
  const Generation* const before = generation_.load(std::memory_order_relaxed);
  generation_.store(generation.release(), std::memory_order_release);
  stats_.bytes = rest_bytes;
  ++stats_.rebuilds;
  ++stats_.full_builds;
  if (before == nullptr) return;
  given_up_.emplace_back([before] { delete before; });
  RetireGivenUp();
}

// Only after many merges of leaves; a full build gives back the memory of nearly empty PLNs.
bool InnerNodes::Shrink() {
  const Generation& generation = *generation_.load(std::memory_order_relaxed);
  if (generation.used < kNewParents || generation.children >= uint64_t{generation.used} * kShrinkBelow) return false;
  Build(Children());
  return true;
}

// Passes the deleters to the epochs. If there is no memory, the rest waits for the next call.
void InnerNodes::RetireGivenUp() noexcept {
  try {
    for (; !given_up_.empty(); given_up_.pop_back()) epochs_->Retire(given_up_.back());
  } catch (const std::bad_alloc&) {
  }
}

// ---- Reading

std::vector<InnerNodes::Child> InnerNodes::Children() const {
  std::vector<Child> children;
  const Generation* const generation = generation_.load(std::memory_order_relaxed);
  if (generation == nullptr) return children;
  children.reserve(generation->children);
  generation->ForEachParent([&](ParentId, const Parent& parent) {
    for (uint64_t i = 0; i < parent.count; ++i) children.push_back(parent.child(i));
  });
  return children;
}

InnerNodes::Stats InnerNodes::GetStats() const {
  Stats stats = stats_;
  const Generation* const generation = generation_.load(std::memory_order_relaxed);
  if (generation == nullptr) return stats;
  stats.leaves = generation->children;
  stats.parents = generation->used;
  stats.bytes += generation->used * sizeof(Parent) + generation->levels.load(std::memory_order_relaxed)->bytes();
  return stats;
}

}  // namespace braiddb
