// MergingCursor: an EntryCursor that merges sorted arrays of entries, and optionally the items of one older level.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/alike_steps.h"
#include "index/bit_tree.h"
#include "index/cursor.h"
#include "index/key_order.h"
#include "log/foreign_entry.h"
#include "log/log_entry.h"
#include "lsm/ordered_array.h"
#include "pmem/region_set.h"

namespace braiddb {

// ALGORITHM    A loser tree (Knuth, The Art of Computer Programming, vol. 3, 5.4.1) merges the sources, which are the arrays and
//              the level. The cursor merges a batch of items beyond its position into a ring, comparing only 8-byte key prefixes,
//              and prefetches each merged entry. The entry is then in the cache when the cursor reaches it. The inner loop has no
//              unpredictable branch, and reads no entry. A seek searches the items with the target's prefix by their entries, in
//              all arrays side by side: three cache misses for all arrays together, as AlikeSteps narrow that search.
// TIES         Neighbours in the ring with equal prefixes, of which at least one does not fit its key (OrderedItem::IsWhole), are
//              a tie. The merge puts a tie into the order of its sources. The cursor sorts it by the entries when it reaches the
//              tie's first item (Settle), since the entries are in the cache then. A batch ends only behind a tie. If a tie would
//              have more than kMostTied items, the cursor merges by entries until the next seek: the tree compares entries where
//              prefixes are equal, and each source's next entries are prefetched. So it does at once if a seek ends in such a
//              place of an array, and for a comparator that does not compare bytes.
// VERSIONS     NextKey skips items that are known to be older versions of the key before them. The first Next searches the
//              cursor's position once and from then on keeps all versions.
// COST         Per item about log2 of the number of sources steps in the tree, and one prefetched entry.
// CONCURRENCY  As EntryCursor. The arrays are immutable.
class MergingCursor final : public EntryCursor {
 public:
  // `arrays`: at least one. If a key fits its prefix (OrderedItem::IsWhole), an earlier array must have the newer versions. An
  // array without an owner must outlive the cursor. `level`: an older level, or null; a cursor with gives_items(). The level has
  // older versions of such keys than the arrays. May throw std::bad_alloc; no other method does.
  MergingCursor(const RegionSet* regions, const KeyOrder* order, std::vector<OrderedArray> arrays,
                std::unique_ptr<EntryCursor> level = nullptr);

  void SetReadAhead(size_t entries) override { most_made_ = std::clamp<size_t>(entries / 2, 1, kMostMade); }
  uint64_t entries() const override { return entries_; }
  bool FetchForSeek(const SearchKey& target) override;
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const SearchKey& target) override;
  void SeekBefore(const SearchKey& target) override;
  void Next() override;
  void Prev() override;
  void NextKey() override;

 protected:
  void ForgetFetched() override { found_ = Found::kNothing; }

 private:
  using Item = OrderedItem;
  // Few elements are in the cursor itself, since an iterator for one short scan should not wait for the allocator.
  template <class T>
  using Few = boost::container::small_vector<T, 4>;
  // Size of the ring of merged items.
  static constexpr size_t kRing = 64;
  // Maximum of items per merged batch; twice as many are prefetched ahead of the position. SetReadAhead lowers it.
  static constexpr size_t kMostMade = 12;
  // Maximum of items of a tie that goes on behind its batch.
  static constexpr size_t kMostTied = 16;
  static_assert(4 * kMostMade + kMostTied <= kRing);
  // An array in which so many items have one prefix is merged by entries there.
  static constexpr size_t kManyAlike = 8;
  // Size of the first batch after a seek, which may be followed by few steps. Each batch doubles it.
  static constexpr size_t kFirstMade = 6;
  // Entries with more bytes are prefetched per batch, first lines first. This takes less time than one by one.
  static constexpr uint64_t kMostBytesByStep = 3 * kCacheLine;
  // Maximum of items examined per item kept, if the others are skipped.
  static constexpr size_t kMostLooks = 4;
  // Number of older versions of a key that are skipped one by one before a search skips the rest.
  static constexpr size_t kVersionsBeforeSearch = 16;
  // Prefetch distance in an array, in items. It is larger if there are few arrays, since each array is then read more often.
  static constexpr size_t kItemsOfLine = kCacheLine / sizeof(Item);
  static constexpr size_t kItemsAhead = 2 * kItemsOfLine;
  static constexpr size_t kMostItemsAhead = 8 * kCacheLine / sizeof(Item);
  // Prefetch distance in a source, in items, of entries that the tree may read.
  static constexpr size_t kReadAhead = 2;
  // Items taken from the level per call, and after a seek.
  static constexpr size_t kMostTaken = 32;
  static constexpr size_t kFirstTaken = 8;

  // Progress of FetchForSeek in all arrays.
  enum class Found : uint8_t { kNothing, kAbove, kGroup, kAlike, kItem };
  struct Source {
    const Item* items = nullptr;
    size_t size = 0;
    size_t at = 0;  // position of the next item; >= size: at the end
    // Position of the item after the next one, behind older versions that are skipped, and its prefix. The prefix saves one load
    // between two winners of the tree.
    size_t after = 0;
    uint64_t behind = 0;
    bool is_alike = false;  // many neighbours have one prefix

    // Sets `after` and `behind`. Forward, older versions of the next item are passed, up to kVersionsBeforeSearch of them.
    template <bool kForward>
    void NoteBehind() {
      size_t place = kForward ? at + 1 : at - 1;
      if constexpr (kForward) {
        for (size_t left = kVersionsBeforeSearch; left != 0 && place + 1 < size && items[place].IsOlder(); --left) ++place;
      }
      after = place;
      if (place < size) behind = items[place].prefix;
    }
  };
  // Of one array.
  struct Search {
    // What the next step of a search among items with the target's prefix does: halve the range, find the bit tree's candidate,
    // prefetch its entry, or compare with it.
    enum class Step : uint8_t { kHalve, kBits, kEntry, kCompare };

    const AlikeSteps::Top* top = nullptr;  // the array has many items with the target's prefix
    size_t group = 0;                      // result of FindAbove, then of FindGroup: of AlikeSteps if there is a top
    // The first item at or after the target is in [at, end]. Equal: it is found. All items of [at, end) have the target's prefix.
    size_t at = 0;
    size_t end = 0;
    Step step = Step::kHalve;
    size_t candidate = 0;            // position in the range
    const uint16_t* bits = nullptr;  // of the range

    size_t middle() const { return at + (end - at) / 2; }
    BitTree tree() const { return {bits, static_cast<uint32_t>(end - at)}; }
  };
  // The next item of a source, as compared in the tree. The smaller key wins. If keys are equal and either has kLooks, Precedes
  // decides; if neither has it, the source with the smaller index wins. Only a merge by entries sets kLooks before a source's
  // end.
  struct Turn {
    static constexpr uint64_t kLooks = uint64_t{1} << 32;
    uint64_t key;     // the prefix, or its complement going backward; all ones at the end
    uint64_t source;  // index of the source, and kLooks
  };
  struct Merged {
    uint64_t prefix;
    static constexpr uint64_t kTied = 2;
    // Address of the entry. kOlder: known to be an older version than the item before. kTied: in a tie with the item before,
    // which is not settled yet.
    uint64_t word;

    const LogEntry* entry() const { return reinterpret_cast<const LogEntry*>(word & ~(Item::kOlder | kTied)); }
    bool is_older() const { return (word & Item::kOlder) != 0; }
    bool is_tied() const { return (word & kTied) != 0; }
  };

  // How Merge merges: any items, or on a fast path for plain items in one direction.
  enum class Path : uint8_t { kAny, kForward, kBackward };

  // `flip`: flip_. `unlooked`: unlooked_. Sets kLooks unless the prefix decides alone.
  static Turn TurnOf(const Source& source, uint64_t index, uint64_t flip, uint64_t unlooked);
  // No entry is read to merge the item, and its prefix differs from that of sources at the end.
  static bool IsPlain(const Item& item, uint64_t flip, uint64_t unlooked) {
    return (((item.word & ~flip) | unlooked) & Item::kWhole) != 0 && item.prefix != ~flip;
  }
  void NoteBehind(Source* source) const { flip_ == 0 ? source->NoteBehind<true>() : source->NoteBehind<false>(); }
  // One match of the tree: *child becomes its parent node. The larger key stays at the node; the other becomes *winner. If keys
  // are equal, the left child wins, which has the newer versions. REQUIRES: neither has kLooks if their keys are equal.
  static void PlayAbove(uint64_t* child, uint64_t* keys, uint64_t* losers, Turn* winner);
  // Compares equal keys by their entries, or by the sources. REQUIRES: the keys are equal.
  bool Precedes(const Turn& a, const Turn& b) const;
  const LogEntry* At(const Item& item) const {
    if (__builtin_expect(is_foreign_, 0)) return ForeignEntry(*regions_, item.Entry());
    return regions_->Resolve<LogEntry>(item.Entry());
  }
  // Positions all arrays at the first item at or after the target.
  void FindAll(const SearchKey& target);
  // Begins a step of the search in an array, in a new range: by a bit tree if there is one, else by halves. Prefetches what the
  // step reads. False: the search has ended.
  bool BeginStep(const OrderedArray& array, Search* search) const;
  // One step of the search in an array, among the items with the target's prefix. False: the search has ended.
  bool NarrowIn(const OrderedArray& array, const SearchKey& target, Search* search) const;
  // The same in each array.
  bool NarrowAlike(const SearchKey& target);
  // Prefetches the key of the item that is `ahead` items behind the source's next one, unless the key fits its prefix.
  void FetchKey(const Source& source, size_t ahead) const;
  // Prefetches the first keys that the tree reads, if the source's keys are alike.
  void FetchFirstKeys(const Source& source) const;
  // Replaces the items of the level's source with the next ones of the level.
  void TakeFromLevel(size_t count);
  // Starts merging at the sources' positions.
  void Begin(bool forward);
  // Plays the subtree below this node and returns its winner.
  Turn Play(size_t node);
  // Merges `count` more items, and the rest of the last one's tie; at least one, and fewer only at the end or after many skipped
  // ones.
  void Make(size_t count);
  // As Make, but may end within a tie.
  void MakeSome(size_t count);
  // Moves the sources behind all versions of last_'s key by a search: all sources in a merge by entries, else the next item's.
  // REQUIRES: going forward; the next item is such a version.
  void PassVersions();
  // Merges one more item, if there is one. REQUIRES: all items since the last merged one were skipped.
  void MakeBehindVersions();
  // The next item has the prefix of the last one.
  bool GoesOnAlike() const {
    const Source& next = sources_[first_];
    return next.at < next.size && next.items[next.at].prefix == last_.prefix;
  }
  // The next item is known to be an older version of last_'s key. REQUIRES: GoesOnAlike().
  bool NextIsVersion() const {
    const Item& next = sources_[first_].items[sources_[first_].at];
    return next.IsOlder() || (next.IsWhole() && last_.IsWhole());
  }
  // Merges the rest of the last item's tie. REQUIRES: made_ > 0; ties are settled late.
  void MakeTie();
  // Takes the last merged items from `begin` on back, and merges them by entries. REQUIRES: they are a tie, or the part of one.
  void MergeByEntries(size_t begin);
  // Sorts the tie that begins at the position, and marks older versions in it.
  void Settle();
  // True if the merge may settle ties late from the sources' positions on.
  bool MaySettleLate() const;
  // Builds the tree from the sources' positions.
  void PlayAll();
  // Merges until made_ == `until`, `looks` items were examined, or the sources end. Returns the rest of `looks`. A fast
  // path stops before an item that is not plain and before the last item of a source. REQUIRES for it: MergesPlain().
  template <Path kPath>
  size_t Merge(size_t until, size_t looks);
  // True if all sources' next items are plain, and the cursor does not keep versions that a fast path skips.
  bool MergesPlain() const { return not_plain_ == 0 && !has_all_ && made_ != 0; }
  // Prefetches the merged items before `end` together.
  void FetchUntil(size_t end);
  // Merges and prefetches more. Called at make_at_: when all merged items are prefetched, or, with large entries, when less than
  // one batch of them is left.
  void MakeAhead();
  // Advances by one merged item and prefetches one more entry.
  void Step();
  // True if the cursor stands on a known older version of the preceding key.
  bool StandsOnOlder() const { return at_ != made_ && ring_[at_ % kRing].is_older(); }
  // Advances to the next key. REQUIRES: StandsOnOlder().
  void LeaveVersions();
  // If there are few arrays: prefetches the array lines that the first batch after a seek reads.
  void FetchItems() const;
  void Set();

  const RegionSet* const regions_;
  const KeyOrder* const order_;
  const std::vector<OrderedArray> arrays_;
  const std::unique_ptr<EntryCursor> level_;
  const uint64_t entries_;
  const bool fetches_blocks_;
  const bool is_foreign_;  // at least one of the arrays is
  const size_t items_ahead_;
  // One per leaf of the tree: the arrays, the level, and empty sources up to a power of two.
  Few<Source> sources_;
  Few<Search> searches_;
  std::vector<Item> taken_;
  // The loser at each node. Node n has the children 2 n and 2 n + 1. Children beyond the array are the sources.
  Few<uint64_t> keys_;
  Few<uint64_t> losers_;
  uint64_t first_ = 0;     // index of the source with the next item
  size_t not_plain_ = 0;   // number of sources whose next item is not plain
  uint64_t flip_ = 0;      // all ones going backward, else 0
  uint64_t unlooked_ = 0;  // kWhole if ties are settled late; 0 in a merge by entries
  bool has_all_ = false;   // older versions are kept; going backward they always are
  size_t most_made_ = kUsualReadAhead / 2;
  Found found_ = Found::kNothing;
  // Counters since the last seek: position, merged items, prefetched items.
  size_t at_ = 0;
  size_t made_ = 0;
  size_t fetched_ = 0;
  size_t make_at_ = 0;  // position at which MakeAhead is called
  size_t ahead_ = 0;    // prefetch distance in entries; size of a batch if entries are large
  Item last_{};         // the last item that was merged or skipped; not whole if there is none
  std::array<Merged, kRing> ring_{};
};

}  // namespace braiddb
