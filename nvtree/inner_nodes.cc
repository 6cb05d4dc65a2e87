#include "nvtree/inner_nodes.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "pmem/persistence.h"
#include "util/check.h"
#include "util/prefetch.h"
#include "util/spin.h"

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

// Index of the last prefix that is not larger; 0 if all are larger. Binary search with conditional moves instead of branches.
inline size_t LastNotAbove(const uint64_t* prefixes, size_t count, uint64_t prefix) {
  const uint64_t* at = prefixes;
  for (size_t left = count; left > 1; left -= left / 2) at = Load(at[left / 2]) <= prefix ? at + left / 2 : at;
  return static_cast<size_t>(at - prefixes);
}

// Index of the last separator in [first, behind) that reaches the target; `first` if none does. Binary search.
template <bool kStrict, class Target, class SeparatorAt>
size_t LastReached(const KeyOrder& order, size_t first, size_t behind, const Target& target, const SeparatorAt& separator_at) {
  size_t reached = first;
  for (size_t left = behind - first; left > 1; left -= left / 2) {
    if (Reaches<kStrict>(order, separator_at(reached + left / 2), target)) reached += left / 2;
  }
  return reached;
}

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

// The IN part. The lowest level contains the start of each PLN's range. Immutable.
struct InnerNodes::Levels {
  struct alignas(kCacheLine) Node {
    uint64_t prefix[kFanout];  // padded with the largest number behind the end of a level

    // The last prefix that is not larger, 0 if none. Compares all of them: no load depends on another, so misses overlap.
    size_t LastNotAbove(uint64_t of) const {
      size_t not_above = 0;
#pragma GCC unroll 16
      for (size_t i = 1; i < kFanout; ++i) not_above += prefix[i] <= of;
      return not_above;
    }
    // The last prefix that is smaller, 0 if none.
    size_t LastBelow(uint64_t of) const { return of == 0 ? 0 : LastNotAbove(of - 1); }
  };
  struct Level {
    size_t begin;  // index of its first node
    size_t count;  // number of prefixes
  };
  std::vector<Node> nodes;  // of all levels, top level first
  std::vector<Level> levels;
  // Per PLN.
  std::vector<const SeparatorRest*> rest;
  std::vector<ParentId> parents;

  // A PLN and the start of its range.
  struct Low {
    Separator low;
    ParentId parent;
  };
  // REQUIRES: at least one element, in order.
  // STEPS  1. Compute the levels' sizes from the bottom up.  2. Lay the levels out from the top down in one array.
  //        3. Fill the lowest level.  4. Fill each upper level with the first prefix of each node below.
  explicit Levels(std::span<const Low> lows) : rest(lows.size()), parents(lows.size()) {
    for (levels.push_back({0, lows.size()}); levels.back().count > kFanout;) levels.push_back({0, Nodes(levels.back())});
    std::reverse(levels.begin(), levels.end());
    for (size_t i = 1; i < levels.size(); ++i) levels[i].begin = levels[i - 1].begin + Nodes(levels[i - 1]);
    nodes.resize(levels.back().begin + Nodes(levels.back()));
    for (Node& node : nodes) std::fill(std::begin(node.prefix), std::end(node.prefix), UINT64_MAX);
    for (size_t i = 0; i < lows.size(); ++i) {
      *At(levels.back(), i) = lows[i].low.prefix;
      rest[i] = lows[i].low.rest;
      parents[i] = lows[i].parent;
    }
    for (size_t depth = levels.size() - 1; depth-- > 0;) {
      for (size_t i = 0; i < levels[depth].count; ++i) *At(levels[depth], i) = *At(levels[depth + 1], i * kFanout);
    }
  }
  static size_t Nodes(const Level& level) { return (level.count + kFanout - 1) / kFanout; }
  uint64_t* At(const Level& level, size_t i) { return &nodes[level.begin + i / kFanout].prefix[i % kFanout]; }
  uint64_t prefix(size_t i) const { return nodes[levels.back().begin + i / kFanout].prefix[i % kFanout]; }
  uint64_t bytes() const { return nodes.size() * sizeof(Node) + parents.size() * (sizeof(ParentId) + sizeof(rest[0])); }
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

// STEPS  1. Descend by prefixes.  2. If the PLN found has the target's prefix but begins behind the target, the rests decide:
//        binary search among the PLNs with this prefix.
// COST   One node of two cache lines per level.
template <bool kStrict, class Target>
InnerNodes::ParentId InnerNodes::Descend(const Levels& levels, const Target& target) const {
  const uint64_t prefix = target.prefix;
  size_t at = 0;
  for (const Levels::Level& level : levels.levels) {
    at = std::min(at * kFanout + levels.nodes[level.begin + at].LastNotAbove(prefix), level.count - 1);
  }
  if (__builtin_expect(levels.prefix(at) == prefix && !Reaches<kStrict>(*order_, {prefix, levels.rest[at]}, target), 0)) {
    size_t below = 0;
    for (const Levels::Level& level : levels.levels) {
      below = std::min(below * kFanout + levels.nodes[level.begin + below].LastBelow(prefix), level.count - 1);
    }
    at = LastReached<kStrict>(*order_, below, at, target, [&](size_t i) { return Separator{levels.prefix(i), levels.rest[i]}; });
  }
  return levels.parents[at];
}

// WHY IT IS RIGHT  A PLN is read like a seqlock: the result counts only if `version` was even and did not change. The epoch guard
//                  keeps everything alive that a torn read may reach: separator rests, levels and PLNs. A target behind the PLN's
//                  range is in a right neighbor, which the loop reads next.
template <bool kStrict, class Target>
InnerNodes::Range InnerNodes::Search(const Target& target) const {
  // acquire: pair with the releases in Build and RebuildLevels.
  const Generation& generation = *generation_.load(std::memory_order_acquire);
  ParentId id = Descend<kStrict>(*generation.levels.load(std::memory_order_acquire), target);
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
    // The target is in a right neighbor.
    if (next != kNone && Reaches<kStrict>(*order_, range.high, target)) {
      if (Load(parent.version) == version) id = next;
      continue;
    }
    // Most PLNs have no rests; the lines of `rest` are read only if some separator needs one.
    const bool has_rests = Load(parent.rests) != 0;
    if (has_rests) {
      for (size_t line = offsetof(Parent, rest); line < sizeof(Parent); line += kCacheLine)
        Prefetch(reinterpret_cast<const char*>(&parent) + line);
    }
    const auto separator = [&](uint64_t slot) {
      return Separator{Load(parent.prefix[slot]), has_rests ? Load(parent.rest[slot]) : nullptr};
    };
    const uint64_t count = Load(parent.count);
    // Prefixes decide unless the separator found has the target's prefix and begins behind the target.
    uint64_t slot = LastNotAbove(parent.prefix, count, target.prefix);
    if (Load(parent.prefix[slot]) == target.prefix && !Reaches<kStrict>(*order_, separator(slot), target)) {
      slot = LastReached<kStrict>(*order_, 0, slot, target, separator);
    }
    const uint64_t word = Load(parent.leaf[slot]);
    range.leaf = LeafOf(word);
    range.sorted = HintOf(word);
    range.low = separator(slot);
    // The range ends at the next separator, or at the end of the PLN's range.
    if (slot + 1 < count) {
      range.high = separator(slot + 1);
      range.is_last = false;
    }
    if (Load(parent.version) == version) return range;
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
  Parent* parent = generation.At(Descend<false>(*generation.levels.load(std::memory_order_relaxed), at));
  for (*moves = 0; parent->next != kNone && Reaches<false>(*order_, parent->high, at); ++*moves) {
    parent = generation.At(static_cast<ParentId>(parent->next));
  }
  *slot = 0;
  while (*slot + 1 < parent->count && Reaches<false>(*order_, {parent->prefix[*slot + 1], parent->rest[*slot + 1]}, at)) ++*slot;
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
  return FindBefore(Separator{parent->prefix[0], parent->rest[0]}).leaf;
}

// `count` is stored last: a reader that loads it finds that number of slots filled. It may see a mix of old and new slots; the
// version check rejects it.
void InnerNodes::Fill(Parent* parent, std::span<const Child> children, uint64_t next, const Separator& high) {
  uint64_t rests = 0;
  for (size_t i = 0; i < children.size(); ++i) {
    rests += children[i].low.rest != nullptr;
    Store(&parent->prefix[i], children[i].low.prefix);
    Store(&parent->rest[i], children[i].low.rest);
    Store(&parent->leaf[i], children[i].word());
  }
  Store(&parent->high.prefix, high.prefix);
  Store(&parent->high.rest, high.rest);
  Store(&parent->next, next);
  Store(&parent->rests, rests);
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
  BRAIDDB_CHECK(children[0].low.prefix == parent.prefix[change.slot] && children[0].low.rest == parent.rest[change.slot]);
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
    Fill(generation->At(id), std::span(slots).subspan(begin, end - begin), change.next, change.high);
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
  Fill(parent, change->left, change->next, change->high);
  Store(&parent->version, version + 2);

  stats_.bytes += change->rest_bytes;
  generation->children += change->children;
  generation->children -= change->count;
  generation->unindexed += change->new_parents;
  RetireGivenUp();
  if (!change->rebuild) return;
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
  auto levels = std::make_unique<Levels>(lows);
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
  Parent* last = nullptr;
  uint64_t rest_bytes = 0;
  for (size_t begin = 0; begin < children.size(); begin += kBuildFill) {
    const ParentId id = generation->New();
    Parent* const parent = generation->At(id);
    parent->count = std::min<size_t>(kBuildFill, children.size() - begin);
    for (size_t i = 0; i < parent->count; ++i) {
      const Child& child = children[begin + i];
      parent->prefix[i] = child.low.prefix;
      parent->rest[i] = child.low.rest;
      parent->leaf[i] = child.word();
      parent->rests += child.low.rest != nullptr;
      rest_bytes += RestBytes(child.low);
    }
    if (last == nullptr) {
      generation->first = id;
    } else {
      last->next = id;
      last->high = children[begin].low;
    }
    last = parent;
    lows.push_back({children[begin].low, id});
  }
  auto levels = std::make_unique<Levels>(lows);
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
