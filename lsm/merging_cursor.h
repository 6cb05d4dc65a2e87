// MergingCursor: an EntryCursor over arrays of entries, and over the items of a level below them, merged as it goes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/cursor.h"
#include "lsm/ordered_array.h"

namespace braiddb {

// A tree of losers (Knuth, The Art of Computer Programming, vol. 3, 5.4.1) that is run ahead of where the cursor stands, some
// items at a time: what comes next is known by prefixes alone, so that entries are fetched before their turn, one with each step
// unless they are large, and nothing is branched on that nothing foretells. Entries are looked at where their prefixes are equal,
// and not even there if these say all of the keys.
// Going from key to key, items that are known to be older versions are left out; a step to the next version looks for its place
// once, and from then on the cursor has them all.
// Thread safety: as EntryCursor; the arrays are not changed.
class MergingCursor final : public EntryCursor {
 public:
  // The arrays: at least one, those with the newer versions of keys that prefixes say all of (OrderedItem::IsWhole) first. What
  // has no owner must outlive the cursor. `level`: what is below them, or null; a cursor that gives items, of such keys older
  // versions than the arrays have. May throw std::bad_alloc; nothing else does.
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
  // Merged items, a ring.
  static constexpr size_t kRing = 64;
  // At most so many are merged at once, and twice as many are fetched ahead of where it stands; fewer by SetReadAhead.
  static constexpr size_t kMostMade = 12;
  static_assert(3 * kMostMade < kRing);
  // Behind a seek, of which there may be one for few steps: so many, and twice as many the next time.
  static constexpr size_t kFirstMade = 6;
  // Entries that take more are fetched as many at once as are merged, line by line, which takes less time than one by one.
  static constexpr uint64_t kMostBytesByStep = 3 * kCacheLine;
  // For each that is merged so many are looked at, if the others are left out.
  static constexpr size_t kMostLooks = 4;
  // Older versions of one key that are passed one by one before a search passes the rest.
  static constexpr size_t kVersionsBeforeSearch = 16;
  // An array's lines are fetched, too, so many items before they are merged; of few arrays more, as each has its turn more often.
  static constexpr size_t kItemsAhead = 2 * kCacheLine / sizeof(Item);
  static constexpr size_t kMostItemsAhead = 8 * kCacheLine / sizeof(Item);
  // So many items are taken from the level at once, and behind a seek.
  static constexpr size_t kMostTaken = 32;
  static constexpr size_t kFirstTaken = 8;

  // For the next seek, of each array.
  enum class Found : uint8_t { kNothing, kAbove, kGroup, kItem };
  struct Source {
    const Item* items = nullptr;
    size_t size = 0;
    size_t at = 0;  // of what comes next of it; not less than size: nothing
    // The prefix of what comes behind that, going forward, if something does: one load less between who won and who wins next.
    uint64_t behind = 0;

    void NoteBehind() {
      if (at + 1 < size) behind = items[at + 1].prefix;
    }
  };
  struct Search {
    size_t group = 0;  // what FindAbove returned, and then FindGroup
    size_t at = 0;     // what FindPrefix did
  };
  // What a source has next. Of two the lesser one comes first; if their keys are equal, and kLooks is in one of them, Precedes
  // decides.
  struct Turn {
    static constexpr uint64_t kLooks = uint64_t{1} << 32;
    uint64_t key;     // the prefix, or its complement; all ones at the end
    uint64_t source;  // which it is, and kLooks
  };
  struct Merged {
    uint64_t prefix;
    uint64_t word;  // the entry's address, and whether it is known to be older than the one before it, of the same key

    const LogEntry* entry() const { return reinterpret_cast<const LogEntry*>(word & ~Item::kOlder); }
    bool is_older() const { return (word & Item::kOlder) != 0; }
  };

  static Turn TurnOf(const Source& source, uint64_t index, uint64_t flip);
  // Its prefix says all of its key, and is none that sources at their end have.
  static bool IsPlain(const Item& item) { return item.IsWhole() && item.prefix != UINT64_MAX; }
  // At the node above `child`, which it becomes: the greater one by key stays there, and the other is the winner. Of equal ones
  // that below the left child wins, which is of the first sources: REQUIRES that neither has kLooks then.
  static void PlayAbove(uint64_t* child, uint64_t* keys, uint64_t* losers, Turn* winner);
  // REQUIRES: their keys are equal.
  bool Precedes(const Turn& a, const Turn& b) const;
  const LogEntry* At(const Item& item) const { return regions_->Resolve<LogEntry>(item.Entry()); }
  void FindAll(const SearchKey& target);
  // The level's next ones become what its source has.
  void TakeFromLevel(size_t count);
  // From where the sources are.
  void Begin(bool forward);
  // The winner below this node of the tree.
  Turn Play(size_t node);
  // So many more items, at least one, or as many as there are.
  void Make(size_t count);
  // Moves each source behind all versions of last_'s key, by a search. REQUIRES: going forward.
  void PassVersions();
  // Merges one more item, if there is one. REQUIRES: all items since the last one that was made were left out.
  void MakeBehindVersions();
  // Builds the tree from the positions of the sources.
  void PlayAll();
  // Until made_ is `until`, so many items have been looked at, or there are no more; how many may still be looked at.
  // `kAllPlain`: only as far as what comes next is plain, and not the last two of a source. REQUIRES for that: MergesPlain().
  template <bool kAllPlain>
  size_t Merge(size_t until, size_t looks);
  // What the sources have next is plain, the last item whole, and versions that are known to be older are left out.
  bool MergesPlain() const { return not_plain_ == 0 && last_.IsWhole() && flip_ == 0 && !has_all_ && made_ != 0; }
  // Of what was merged: at once.
  void FetchUntil(size_t end);
  // At make_at_, where all that was merged has been fetched, or, of large entries, few are left of it.
  void MakeAhead();
  // To the next one. Another one is fetched.
  void Step();
  // Whether it stands on an item that is known to be an older version of the key before it.
  bool StandsOnOlder() const { return at_ != made_ && ring_[at_ % kRing].is_older(); }
  // Goes on to the next key. REQUIRES: StandsOnOlder().
  void LeaveVersions();
  // Of few arrays, what the first ones that are merged behind a seek would wait for.
  void FetchItems() const;
  void Set();

  const RegionSet* const regions_;
  const KeyOrder* const order_;
  const std::vector<OrderedArray> arrays_;
  const std::unique_ptr<EntryCursor> level_;
  const uint64_t entries_;
  const bool fetches_blocks_;
  const size_t items_ahead_;
  // As many as leaves of the tree: the arrays', the level's, and some with nothing in them.
  std::vector<Source> sources_;
  std::vector<Search> searches_;
  std::vector<Item> taken_;
  // Of what lost against another below a node. The children of node n are nodes 2 n and 2 n + 1; those that there are no nodes
  // for are the sources.
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> losers_;
  uint64_t first_ = 0;    // the source that is next
  size_t not_plain_ = 0;  // so many sources have an item next that is not
  uint64_t flip_ = 0;     // all ones if it goes backward
  bool has_all_ = false;  // nothing is left out; backward it never is
  size_t most_made_ = kUsualReadAhead / 2;
  Found found_ = Found::kNothing;
  // Since the last seek: where it stands, how many have been merged, and fetched.
  size_t at_ = 0;
  size_t made_ = 0;
  size_t fetched_ = 0;
  size_t make_at_ = 0;  // from there on it is time to merge more
  size_t ahead_ = 0;    // so far ahead entries are fetched then; of large ones, so many
  Item last_{};         // merged, or left out; none: not whole
  std::array<Merged, kRing> ring_;
};

}  // namespace braiddb
