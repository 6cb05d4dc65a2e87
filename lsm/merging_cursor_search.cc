// The parts of a merging cursor that read entries out of the merge: the search of a seek in all arrays, and the order of a tie.
#include "log/fetch_entry.h"
#include "lsm/merging_cursor.h"
#include "util/prefetch.h"

namespace braiddb {

// STEPS  Each call makes one step for all arrays: the upper levels of the search, the lowest level, the items. Each step
//        prefetches the lines that the next one reads, so that the cache misses of all arrays overlap. An array in which many
//        items have the target's prefix is searched by its AlikeSteps.
bool MergingCursor::FetchForSeek(const SearchKey& target) {
  bool level_goes_on = false;
  if (level_ != nullptr)
    level_goes_on = found_ == Found::kNothing ? level_->BeginFetchForSeek(target) : level_->FetchForSeek(target);
  switch (found_) {
    case Found::kNothing:
      for (size_t i = 0; i < arrays_.size(); ++i) {
        Search& search = searches_[i];
        search.top = arrays_[i].alike->TopOf(target.prefix);
        search.group = search.top == nullptr ? arrays_[i].FindAbove(target.prefix)
                                             : arrays_[i].alike->FindAbove(*order_, target, *search.top);
      }
      found_ = Found::kAbove;
      return true;
    case Found::kAbove:
      for (size_t i = 0; i < arrays_.size(); ++i) {
        Search& search = searches_[i];
        search.group = search.top == nullptr ? arrays_[i].FindGroup(search.group, target.prefix)
                                             : arrays_[i].alike->FindGroup(*order_, target, *search.top, search.group);
      }
      found_ = Found::kGroup;
      return true;
    case Found::kGroup: {
      // Prefetch the entry that the seek probably reads, which is the smallest one, and what the search among the items with the
      // target's prefix reads first.
      const Item* first = nullptr;
      bool more = false;
      for (size_t i = 0; i < arrays_.size(); ++i) {
        Search& search = searches_[i];
        if (search.top == nullptr) {
          arrays_[i].FindAlike(search.group, target.prefix, &search.at, &search.end);
        } else {
          search.at = search.top->begin;
          search.end = search.at + search.top->items;
          arrays_[i].alike->NarrowFrom(*order_, target, *search.top, search.group, &search.at, &search.end);
        }
        if (BeginStep(arrays_[i], &search)) {
          more = true;
        } else if (search.top == nullptr && search.at < arrays_[i].size) {
          const Item* const item = &arrays_[i].items[search.at];
          if (first == nullptr || item->prefix < first->prefix) first = item;
        }
      }
      if (first != nullptr && !more) Fetch(At(*first));
      found_ = more ? Found::kAlike : Found::kItem;
      return more || level_goes_on;
    }
    case Found::kAlike:
      if (NarrowAlike(target)) return true;
      found_ = Found::kItem;
      return level_goes_on;
    case Found::kItem:
      return level_goes_on;
  }
  return false;
}

bool MergingCursor::BeginStep(const OrderedArray& array, Search* search) const {
  if (search->at == search->end) return false;
  search->bits = search->top == nullptr ? nullptr : array.alike->BitsOf(*search->top, search->at, search->end);
  if (search->bits == nullptr) {
    search->step = Search::Step::kHalve;
    const LogEntry* const middle = At(array.items[search->middle()]);
    search->end - search->at == 1 ? Fetch(middle) : FetchEntry(middle);  // of a single item, the seek probably shows it
  } else {
    search->step = Search::Step::kBits;
    PrefetchAll(search->bits, (search->end - search->at) * sizeof(uint16_t));
  }
  return true;
}

bool MergingCursor::NarrowIn(const OrderedArray& array, const SearchKey& target, Search* search) const {
  const Item* const range = array.items + search->at;
  switch (search->step) {
    case Search::Step::kHalve: {
      const size_t middle = search->middle();
      const bool is_before = CompareEntry(*order_, *At(array.items[middle]), target) < 0;
      (is_before ? search->at : search->end) = middle + (is_before ? 1 : 0);
      return BeginStep(array, search);
    }
    case Search::Step::kBits:
      search->candidate = search->tree().Candidate(target.key, order_->is_reverse());
      Prefetch(&range[search->candidate]);
      Prefetch(&range[search->candidate] + kItemsOfLine);  // the seek ends there or near; at times past the end: harmless
      search->step = Search::Step::kEntry;
      return true;
    case Search::Step::kEntry:
      FetchEntry(At(range[search->candidate]));
      search->step = Search::Step::kCompare;
      return true;
    case Search::Step::kCompare: {
      bool has_key = false;
      const auto key_at = [&](uint32_t i) {
        const LogEntry* const entry = At(range[i]);
        return SearchKey(target.prefix, entry->key(), entry->sequence());
      };
      search->at += search->tree().FirstNotBefore(*order_, target, static_cast<uint32_t>(search->candidate), key_at, &has_key);
      search->end = search->at;
      return false;
    }
  }
  return false;
}

bool MergingCursor::NarrowAlike(const SearchKey& target) {
  bool more = false;
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (searches_[i].at != searches_[i].end) more |= NarrowIn(arrays_[i], target, &searches_[i]);
  return more;
}

// Completes the steps that FetchForSeek has not made yet.
void MergingCursor::FindAll(const SearchKey& target) {
  while (FetchForSeek(target)) {
  }
  for (size_t i = 0; i < arrays_.size(); ++i) sources_[i].at = searches_[i].at;
}

// An insertion sort, since a tie has few items and mostly two. It is stable: of an entry and its copy, the earlier source's comes
// first.
[[gnu::noinline]] void MergingCursor::Settle() {
  for (size_t next = at_ + 1; next < made_ && ring_[next % kRing].is_tied(); ++next) {
    const Merged item = ring_[next % kRing];
    const LogEntry& entry = *item.entry();
    bool is_older = false;     // than the item before it
    bool is_followed = false;  // by an older version
    size_t to = next;
    for (; to > at_; --to) {
      const Merged& before = ring_[(to - 1) % kRing];
      const int ascending = order_->Compare(entry.key(), before.entry()->key());
      const int order = flip_ == 0 ? ascending : -ascending;
      is_older = order == 0 && (entry.sequence() <= before.entry()->sequence()) == (flip_ == 0);
      if (order > 0 || is_older) break;
      is_followed = order == 0;
      ring_[to % kRing] = before;
    }
    ring_[to % kRing] = {item.prefix, reinterpret_cast<uint64_t>(&entry) | is_older * Item::kOlder};
    if (is_followed) ring_[(to + 1) % kRing].word |= Item::kOlder;
  }
}

}  // namespace braiddb
