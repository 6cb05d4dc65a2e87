// The parts of a merging cursor that read entries out of the merge: the search of a seek in all arrays, and the order of a tie.
#include "log/fetch_entry.h"
#include "lsm/merging_cursor.h"

namespace braiddb {

// STEPS  Each call makes one step for all arrays: the upper levels of the search, the lowest level, the items. Each step
//        prefetches the lines that the next one reads, so that the cache misses of all arrays overlap.
bool MergingCursor::FetchForSeek(const SearchKey& target) {
  if (level_ != nullptr) found_ == Found::kNothing ? level_->BeginFetchForSeek(target) : level_->FetchForSeek(target);
  switch (found_) {
    case Found::kNothing:
      for (size_t i = 0; i < arrays_.size(); ++i) searches_[i].group = arrays_[i].FindAbove(target.prefix);
      found_ = Found::kAbove;
      return true;
    case Found::kAbove:
      for (size_t i = 0; i < arrays_.size(); ++i) searches_[i].group = arrays_[i].FindGroup(searches_[i].group, target.prefix);
      found_ = Found::kGroup;
      return true;
    case Found::kGroup: {
      // Prefetch the entries that the seek probably reads: the smallest one, and those that the search among the items with the
      // target's prefix reads first.
      const Item* first = nullptr;
      bool more = false;
      for (size_t i = 0; i < arrays_.size(); ++i) {
        Search& search = searches_[i];
        search.at = arrays_[i].FindPrefix(search.group, target.prefix);
        search.end = arrays_[i].FindAlikeEnd(search.group, search.at, target.prefix);
        if (search.at != search.end) arrays_[i].alike->Narrow(*order_, target, &search.at, &search.end);
        if (search.at >= arrays_[i].size) continue;
        const Item* const item = &arrays_[i].items[search.at];
        if (search.at != search.end) Fetch(At(arrays_[i].items[search.middle()]));
        more |= search.at != search.end;
        if (first == nullptr || item->prefix < first->prefix) first = item;
      }
      if (first != nullptr && first->prefix != target.prefix) Fetch(At(*first));
      found_ = more ? Found::kAlike : Found::kItem;
      return more;
    }
    case Found::kAlike:
      if (NarrowAlike(target)) return true;
      found_ = Found::kItem;
      return false;
    case Found::kItem:
      return false;
  }
  return false;
}

bool MergingCursor::NarrowAlike(const SearchKey& target) {
  bool more = false;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    Search& search = searches_[i];
    if (search.at == search.end) continue;
    const size_t middle = search.middle();
    if (CompareEntry(*order_, *At(arrays_[i].items[middle]), target) < 0) {
      search.at = middle + 1;
    } else {
      search.end = middle;
    }
    if (search.at == search.end) continue;
    Fetch(At(arrays_[i].items[search.middle()]));
    more = true;
  }
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
