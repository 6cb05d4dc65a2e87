#include "lsm/merging_cursor.h"

#include <bit>
#include <numeric>
#include <utility>

#include "log/fetch_entry.h"

namespace braiddb {
namespace {

uint64_t MostFetchBytes(const std::vector<OrderedArray>& arrays, const EntryCursor* level) {
  uint64_t bytes = level == nullptr ? 0 : level->fetch_bytes();
  for (const OrderedArray& array : arrays) bytes = std::max(bytes, array.fetch_bytes);
  return bytes;
}

uint64_t SumOfSizes(const std::vector<OrderedArray>& arrays, const EntryCursor* level) {
  return std::accumulate(arrays.begin(), arrays.end(), level == nullptr ? 0 : level->entries(),
                         [](uint64_t sum, const OrderedArray& array) { return sum + array.size; });
}

}  // namespace

MergingCursor::MergingCursor(const RegionSet* regions, const KeyOrder* order, std::vector<OrderedArray> arrays,
                             std::unique_ptr<EntryCursor> level)
    : EntryCursor(true, MostFetchBytes(arrays, level.get())),
      regions_(regions),
      order_(order),
      arrays_(std::move(arrays)),
      level_(std::move(level)),
      entries_(SumOfSizes(arrays_, level_.get())),
      fetches_blocks_(fetch_bytes() > kMostBytesByStep),
      is_foreign_(std::ranges::any_of(arrays_, &OrderedArray::is_foreign)),
      items_ahead_(std::max(kItemsAhead, kMostItemsAhead / std::bit_ceil(arrays_.size()))),
      sources_(std::bit_ceil(arrays_.size() + (level_ == nullptr ? 0 : 1))),
      searches_(arrays_.size()),
      taken_(level_ == nullptr ? 0 : kMostTaken),
      keys_(sources_.size()),
      losers_(sources_.size()) {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    Source& source = sources_[i];
    source.items = arrays_[i].items;
    source.size = source.at = arrays_[i].size;
    source.is_alike = arrays_[i].IsAlike();
  }
}

// ---- Seeks

[[gnu::always_inline]] inline void MergingCursor::FetchKey(const Source& source, size_t ahead) const {
  const size_t at = source.at + ahead * (flip_ == 0 ? 1 : -size_t{1});
  if (at < source.size && !source.items[at].IsWhole()) FetchEntry(At(source.items[at]));
}

void MergingCursor::FetchFirstKeys(const Source& source) const {
  if (!source.is_alike || unlooked_ != 0) return;
  for (size_t ahead = 0; ahead < kReadAhead; ++ahead) FetchKey(source, ahead);
}

void MergingCursor::SeekToFirst() {
  for (Source& source : sources_) source.at = 0;
  if (level_ != nullptr) level_->SeekToFirst();
  Begin(true);
}

// An empty array gets the position SIZE_MAX, which counts as its end.
void MergingCursor::SeekToLast() {
  for (Source& source : sources_) source.at = source.size - 1;
  if (level_ != nullptr) level_->SeekToLast();
  Begin(false);
}

void MergingCursor::Seek(const SearchKey& target) {
  FindAll(target);
  if (level_ != nullptr) level_->Seek(target);
  Begin(true);
}

void MergingCursor::SeekBefore(const SearchKey& target) {
  FindAll(target);
  for (size_t i = 0; i < arrays_.size(); ++i) --sources_[i].at;  // wraps from the first item to the end
  if (level_ != nullptr) level_->SeekBefore(target);
  Begin(false);
}

[[gnu::always_inline]] inline void MergingCursor::PlayAll() {
  for (Source& source : sources_) NoteBehind(&source);
  not_plain_ = static_cast<size_t>(std::count_if(sources_.begin(), sources_.end(), [this](const Source& source) {
    return source.at < source.size && !IsPlain(source.items[source.at], flip_, unlooked_);
  }));
  first_ = static_cast<uint32_t>(Play(1).source);
}

// Merges one item, so that the cursor has a position. The first step merges the first batch: many seeks are followed by no step.
void MergingCursor::Begin(bool forward) {
  found_ = Found::kNothing;
  flip_ = forward ? 0 : ~uint64_t{0};
  if (level_ != nullptr) TakeFromLevel(kFirstTaken);
  unlooked_ = MaySettleLate() ? Item::kWhole : 0;
  for (const Source& source : sources_) FetchFirstKeys(source);
  PlayAll();
  at_ = 0;
  made_ = 0;
  fetched_ = 0;
  make_at_ = 0;
  ahead_ = std::min(kFirstMade, most_made_);
  last_ = {};
  Make(1);
  FetchUntil(made_);
  Set();
}

void MergingCursor::TakeFromLevel(size_t count) {
  Source& source = sources_[arrays_.size()];
  const bool forward = flip_ == 0;
  const size_t taken = level_->TakeItems(taken_.data(), count, forward);
  source.items = forward ? taken_.data() : taken_.data() + (count - taken);
  source.size = taken;
  source.at = forward ? 0 : taken - 1;
  source.is_alike = taken > 1 && source.items[0].prefix == source.items[taken - 1].prefix;
  NoteBehind(&source);
}

// ---- The tree

// A source at its end gets the largest key and kLooks. Precedes then decides against an item whose prefix is also all ones.
inline MergingCursor::Turn MergingCursor::TurnOf(const Source& source, uint64_t index, uint64_t flip, uint64_t unlooked) {
  if (source.at >= source.size) return {UINT64_MAX, index | Turn::kLooks};
  const Item& item = source.items[source.at];
  const uint64_t looks = ((~item.word | flip) & ~unlooked) / Item::kWhole * Turn::kLooks & Turn::kLooks;
  return {item.prefix ^ flip, index | looks};
}

// Of items whose keys fit their prefixes, equal keys are versions of one key. The sources are ordered from newer to older
// versions, so the source index decides. An entry and its copy compare equal; the index decides as well. It also does if ties
// are settled late.
bool MergingCursor::Precedes(const Turn& a, const Turn& b) const {
  const auto a_index = static_cast<uint32_t>(a.source);
  const auto b_index = static_cast<uint32_t>(b.source);
  const Source& x = sources_[a_index];
  const Source& y = sources_[b_index];
  if (x.at >= x.size || y.at >= y.size) return x.at < x.size;
  if (unlooked_ != 0) return a_index < b_index;
  const Item& of_a = x.items[x.at];
  const Item& of_b = y.items[y.at];
  const int order = of_a.IsWhole() && of_b.IsWhole() ? 0 : CompareEntries(*order_, *At(of_a), *At(of_b));
  return (order != 0 ? order < 0 : a_index < b_index) == (flip_ == 0);
}

// Plays the subtree recursively, which is needed once per seek. Merge then replays one path per item.
MergingCursor::Turn MergingCursor::Play(size_t node) {
  if (node >= losers_.size()) return TurnOf(sources_[node - losers_.size()], node - losers_.size(), flip_, unlooked_);
  const Turn left = Play(2 * node);
  const Turn right = Play(2 * node + 1);
  const bool is_left = left.key != right.key ? left.key < right.key : Precedes(left, right);
  const Turn& loser = is_left ? right : left;
  keys_[node] = loser.key;
  losers_[node] = loser.source;
  return is_left ? left : right;
}

inline void MergingCursor::PlayAbove(uint64_t* child, uint64_t* keys, uint64_t* losers, Turn* winner) {
  // A subtraction and two conditional moves are the whole dependency chain between two winners; compilers emit branches or longer
  // code. The shift moves the lowest bit of `child` into the carry: 1 for a right child. The carry is subtracted as well, so that
  // of equal keys the right child loses.
  uint64_t key;
  uint64_t source;
  uint64_t other_key;
  uint64_t other_source;
  uint64_t difference;
  asm("shrq %[node]\n\t"
      "movq (%[keys],%[node],8), %[key]\n\t"
      "movq (%[losers],%[node],8), %[source]\n\t"
      "movq %[key], %[difference]\n\t"
      "movq %[key], %[other_key]\n\t"
      "movq %[source], %[other_source]\n\t"
      "sbbq %[winner_key], %[difference]\n\t"
      "cmovbq %[winner_key], %[other_key]\n\t"
      "cmovbq %[winner_source], %[other_source]\n\t"
      "cmovbq %[key], %[winner_key]\n\t"
      "cmovbq %[source], %[winner_source]\n\t"
      "movq %[other_key], (%[keys],%[node],8)\n\t"
      "movq %[other_source], (%[losers],%[node],8)"
      : [node] "+&r"(*child), [winner_key] "+&r"(winner->key), [winner_source] "+&r"(winner->source), [key] "=&r"(key),
        [source] "=&r"(source), [other_key] "=&r"(other_key), [other_source] "=&r"(other_source), [difference] "=&r"(difference)
      : [keys] "r"(keys), [losers] "r"(losers)
      : "cc", "memory");
}

// WHY IT IS RIGHT  Invariant: losers hold the loser of each match, and first_ is the overall winner. The winner's source
//                  advances, and only the matches on its path to the root change.
// COST  The latency from one winner to the next bounds the throughput, so this chain is short. The choice of the winner and the
//       choice to skip an item are not branches. The fast paths have none of the checks that are needed only by a merge by
//       entries and at a source's end.
template <MergingCursor::Path kPath>
size_t MergingCursor::Merge(size_t until, size_t looks) {
  const RegionSet& regions = *regions_;
  const bool is_foreign = is_foreign_;
  Source* const sources = sources_.data();
  uint64_t* const keys = keys_.data();
  uint64_t* const losers = losers_.data();
  const size_t leaves = losers_.size();
  constexpr bool kAllPlain = kPath != Path::kAny;
  const uint64_t flip = kAllPlain ? (kPath == Path::kForward ? 0 : UINT64_MAX) : flip_;
  const uint64_t unlooked = unlooked_;
  const size_t step = flip == 0 ? 1 : -size_t{1};
  const uintptr_t far = step * (items_ahead_ + 1) * sizeof(Item);
  const bool keeps_all = kAllPlain ? kPath == Path::kBackward : has_all_ || flip != 0;
  size_t made = made_;
  uint64_t first = first_;
  Item last = last_;
  for (; looks != 0 && made != until; --looks) {
    Source& source = sources[first];
    const size_t at = source.at;
    if (at >= source.size) break;
    if (kAllPlain && (source.after >= source.size || !IsPlain(source.items[source.after], flip, unlooked))) break;
    const Item* const items = source.items + at;
    const Item item = *items;
    source.at = keeps_all ? at + step : source.after;
    Prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(items) + far));  // at times past the end: harmless
    Turn winner;
    if constexpr (kAllPlain) {
      // The prefix of the next item was loaded one step earlier, so the match does not wait for the load.
      winner = {source.behind ^ flip, first};
      source.NoteBehind<kPath == Path::kForward>();
    } else {
      // The level's source is empty: refill it before its next match.
      if (__builtin_expect(source.at >= source.size, 0) && level_ != nullptr && first == arrays_.size()) {
        TakeFromLevel(kMostTaken);
        FetchFirstKeys(source);
      }
      if (source.is_alike && unlooked == 0) FetchKey(source, kReadAhead - 1);
      if (!has_all_) {
        not_plain_ -= !IsPlain(item, flip, unlooked);
        not_plain_ += source.at < source.size && !IsPlain(source.items[source.at], flip, unlooked);
        NoteBehind(&source);
      }
      winner = TurnOf(source, first, flip, unlooked);
    }
    // Replay the matches on the path from the winner's leaf to the root.
    for (uint64_t child = leaves + first; child != 1;) {
      if constexpr (!kAllPlain) {
        const uint64_t node = child / 2;
        const uint64_t other = losers[node];
        // Equal keys of which at least one does not fit its prefix: the entries decide, out of line.
        const bool is_even = ((keys[node] ^ winner.key) | (~(other | winner.source) & Turn::kLooks)) == 0;
        if (__builtin_expect(is_even, 0)) {
          if (Precedes({keys[node], other}, winner)) losers[node] = std::exchange(winner.source, other);
          child = node;
          continue;
        }
      }
      PlayAbove(&child, keys, losers, &winner);
    }
    first = static_cast<uint32_t>(winner.source);
    // If both keys fit their prefixes, equal prefixes mean versions of one key. Otherwise only the item's own flag tells.
    const bool are_alike = item.prefix == last.prefix;
    const bool are_whole = (item.word & last.word & Item::kWhole) != 0;
    const bool is_older = item.IsOlder() | (are_alike & are_whole);
    const LogEntry* const resolved =
        __builtin_expect(is_foreign, 0) ? ForeignEntry(regions, item.Entry()) : regions.Resolve<LogEntry>(item.Entry());
    const auto entry = reinterpret_cast<uint64_t>(resolved);
    const uint64_t tied = are_alike & (keeps_all | !are_whole) ? unlooked : 0;
    static_assert(Merged::kTied == Item::kWhole);
    ring_[made % kRing] = {item.prefix, entry | tied | is_older * Item::kOlder};
    made += keeps_all | !is_older | (!kAllPlain && made == 0);  // the first item after a seek is kept, also an older version
    last = item;
  }
  first_ = first;
  last_ = last;
  made_ = made;
  return looks;
}

// WHY IT IS RIGHT  A source is sorted, so its remaining versions of the key are its next items; a source at another key has none.
//                  If ties are settled late, a source may stand at smaller keys with the same prefix. So only that source moves
//                  whose next item is known to be a version of the key.
[[gnu::noinline]] void MergingCursor::PassVersions() {
  // Sequence number 0 comes after all versions of the key.
  const SearchKey behind(last_.prefix, At(last_)->key(), 0);
  const auto is_version = [&](const Item& item) {
    return item.prefix == behind.prefix && CompareEntry(*order_, *At(item), behind) < 0;
  };
  for (size_t i = 0; i < arrays_.size(); ++i) {
    Source& source = sources_[i];
    const Item* const end = source.items + source.size;
    if (source.at < source.size && (unlooked_ == 0 || i == first_))
      source.at = static_cast<size_t>(std::partition_point(source.items + source.at, end, is_version) - source.items);
  }
  if (level_ != nullptr) {
    const Source& source = sources_[arrays_.size()];
    const bool may_move = unlooked_ == 0 || first_ == arrays_.size();
    if (may_move && source.at < source.size && is_version(source.items[source.at])) {
      level_->Seek(behind);
      TakeFromLevel(kMostTaken);
    }
  }
  PlayAll();
}

// All items that are skipped here are versions of the key that was merged last.
[[gnu::noinline]] void MergingCursor::MakeBehindVersions() {
  const size_t until = made_ + 1;
  for (;;) {
    Merge<Path::kAny>(until, kVersionsBeforeSearch);
    const Source& next = sources_[first_];
    if (made_ == until || next.at >= next.size) return;
    if (unlooked_ == 0 || (GoesOnAlike() && NextIsVersion())) PassVersions();
  }
}

// ---- Ties

// A source's first item may be an older version of a key whose newer version is before the target. The item must be kept, so the
// order of all items has to be known when it is merged.
bool MergingCursor::MaySettleLate() const {
  if (!order_->equal_means_same()) return false;
  const bool skips = flip_ == 0 && !has_all_;
  return std::ranges::none_of(sources_, [this, skips](const Source& source) {
    if (source.at >= source.size) return false;
    if (skips && source.items[source.at].IsOlder()) return true;
    const size_t far = flip_ == 0 ? source.at + kManyAlike - 1 : source.at - kManyAlike + 1;
    return source.is_alike && far < source.size && source.items[far].prefix == source.items[source.at].prefix;
  });
}

void MergingCursor::MakeTie() {
  size_t begin = made_ - 1;
  while (begin > 0 && ring_[begin % kRing].is_tied()) --begin;
  while (GoesOnAlike()) {
    if (made_ - begin >= kMostTied) return MergeByEntries(begin);
    const size_t before = made_;
    Merge<Path::kAny>(made_ + 1, kVersionsBeforeSearch);
    if (made_ == before && GoesOnAlike() && NextIsVersion()) PassVersions();
  }
}

// WHY IT IS RIGHT  The items of a source in a tie are neighbours in it. So the first entry of the tie, in the direction of the
//                  merge, is one that was merged, or the next one of a source. A seek to it moves each source to its first item
//                  of the tie.
[[gnu::noinline]] void MergingCursor::MergeByEntries(size_t begin) {
  const uint64_t prefix = ring_[begin % kRing].prefix;
  const LogEntry* first = ring_[begin % kRing].entry();
  const auto add = [&](const LogEntry* entry) {
    if ((CompareEntries(*order_, *entry, *first) < 0) == (flip_ == 0)) first = entry;
  };
  for (size_t i = begin + 1; i < made_; ++i) add(ring_[i % kRing].entry());
  for (const Source& source : sources_) {
    if (source.at < source.size && source.items[source.at].prefix == prefix) add(At(source.items[source.at]));
  }
  made_ = begin;
  fetched_ = std::min(fetched_, made_);
  last_ = {};
  unlooked_ = 0;
  const bool forward = flip_ == 0;
  const SearchKey target(prefix, first->key(), first->sequence() - (forward ? 0 : 1));  // backward: behind the entry
  FindAll(target);
  found_ = Found::kNothing;
  for (size_t i = 0; !forward && i < arrays_.size(); ++i) --sources_[i].at;
  if (level_ != nullptr) {
    forward ? level_->Seek(target) : level_->SeekBefore(target);
    TakeFromLevel(kMostTaken);
  }
  for (const Source& source : sources_) FetchFirstKeys(source);
  PlayAll();
}

// STEPS  1. Merge on the fast path while all next items are plain.  2. Merge the item that is not plain on the general path.
//        3. If the budget of examined items is used up, stop. If all of them were older versions, skip the rest by a search.
// WHY IT IS RIGHT  Each round merges or skips at least one item, so the loop ends. It merges at least one item unless the sources
//                  end.
void MergingCursor::MakeSome(size_t count) {
  const size_t before = made_;
  const size_t until = before + count;
  size_t looks = kMostLooks * count;
  while (made_ != until) {
    const Source& next = sources_[first_];
    if (next.at >= next.size) break;
    if (looks == 0) {
      if (made_ != before) break;
      return MakeBehindVersions();
    }
    const size_t left = !MergesPlain() ? looks
                        : flip_ == 0   ? Merge<Path::kForward>(until, looks)
                                       : Merge<Path::kBackward>(until, looks);
    if (left != looks) {
      looks = left;
      continue;
    }
    // Merge one item that is not plain; if more follow, as many as allowed.
    const size_t some = MergesPlain() ? 1 : looks;
    looks -= some - Merge<Path::kAny>(until, some);
  }
}

void MergingCursor::Make(size_t count) {
  const size_t until = made_ + count;
  MakeSome(count);
  if (unlooked_ == 0 || made_ == 0) return;
  MakeTie();
  if (unlooked_ == 0 && made_ < until) MakeSome(until - made_);
}

void MergingCursor::FetchUntil(size_t end) {
  std::array<const LogEntry*, kRing> entries;
  size_t count = 0;
  for (; fetched_ < end; ++fetched_) entries[count++] = ring_[fetched_ % kRing].entry();
  FetchAll(entries.data(), count);
}

void MergingCursor::FetchItems() const {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const Source& source = sources_[i];
    for (size_t ahead = 0; ahead < items_ahead_; ahead += kItemsOfLine) {
      const size_t at = flip_ == 0 ? source.at + ahead : source.at - ahead;
      if (at < source.size) Prefetch(&source.items[at]);
    }
  }
}

// Large entries: prefetch the whole batch at once, and merge again when the rest is less than one batch. Small entries: prefetch
// up to the distance; Step prefetches one more with each step, and the next batch is due when none is left.
void MergingCursor::MakeAhead() {
  if (at_ == 0 && items_ahead_ > kItemsAhead) FetchItems();
  Make(std::min(ahead_, most_made_));
  if (fetches_blocks_) {
    FetchUntil(made_);
    ahead_ = std::min(ahead_ + ahead_ / 2, most_made_);
    make_at_ = made_ - std::min(made_, ahead_);
  } else {
    FetchUntil(std::min(made_, at_ + ahead_));
    ahead_ = std::min(ahead_ + ahead_ / 2, 2 * most_made_);
    make_at_ = at_ + (made_ - fetched_);
  }
}

// ---- Steps

inline void MergingCursor::Step() {
  if (at_ >= make_at_) MakeAhead();
  ++at_;
  if (fetched_ != made_) Fetch(ring_[fetched_++ % kRing].entry());
}

inline void MergingCursor::Set() {
  entry_ = nullptr;
  if (at_ == made_) return;
  if (__builtin_expect(ring_[(at_ + 1) % kRing].is_tied(), 0)) Settle();
  const Merged& merged = ring_[at_ % kRing];
  prefix_ = merged.prefix;
  entry_ = merged.entry();
}

void MergingCursor::NextKey() {
  if (__builtin_expect(flip_ != 0, 0)) return Next();
  Step();
  if (__builtin_expect(StandsOnOlder(), 0)) return LeaveVersions();
  Set();
}

// If the key has many versions, a seek behind the last version replaces the steps.
[[gnu::noinline]] void MergingCursor::LeaveVersions() {
  for (size_t versions = 1; StandsOnOlder(); ++versions) {
    if (versions == kVersionsBeforeSearch) {
      const Merged& version = ring_[at_ % kRing];
      const SearchKey behind(version.prefix, version.entry()->key(), 0);
      found_ = Found::kNothing;
      Seek(behind);
      // A foreign array that changes could lead back again and again.
      if (is_foreign_ && entry_ != nullptr && CompareEntry(*order_, *entry_, behind) <= 0) entry_ = nullptr;
      return;
    }
    Step();
  }
  Set();
}

// Repositions at the current entry with all versions kept, then steps to its successor.
void MergingCursor::Next() {
  if (__builtin_expect(flip_ != 0 || !has_all_, 0)) {
    has_all_ = true;
    found_ = Found::kNothing;
    Seek(SearchKey(prefix_, entry_->key(), entry_->sequence()));
  }
  Step();
  Set();
}

// A change of direction searches the current entry again.
void MergingCursor::Prev() {
  if (flip_ == 0) {
    found_ = Found::kNothing;
    return SeekBefore(SearchKey(prefix_, entry_->key(), entry_->sequence()));
  }
  Step();
  Set();
}

}  // namespace braiddb
