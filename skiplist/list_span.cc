#include "skiplist/list_span.h"

#include <algorithm>

#include "log/fetch_entry.h"

namespace braiddb {

// Room for lanes is kept, since a cursor that is moved by a seek often scans again.
void ListSpan::Clear() {
  entries_.clear();
  begun_ = false;
  wanted_ = kFirst;
  place_ = kUnknown;
}

// The first call fixes the reader's region and allocates room for all lanes.
size_t ListSpan::Width() {
  if (capacity_ == 0) {
    reader_ = list_->Home().reader;
    distance_ = index_->Distance(reader_);
    const size_t capacity = 8 * distance_;  // gaps between nodes are geometrically distributed, so few lanes are longer
    room_.resize(kMostLanes * (capacity + 1));
    capacity_ = capacity;
    for (size_t lane = 0; lane < kMostLanes; ++lane) lanes_[lane].found = &room_[lane * (capacity_ + 1)];
  }
  const uint64_t wanted = wanted_;
  wanted_ = std::min(2 * wanted_, kMost);
  return std::clamp<size_t>(wanted / distance_, 2, kMostLanes);
}

// The first entry is prefetched; the first round reads it.
void ListSpan::BeginLane(size_t lane, const LogEntry* first, const LogEntry* end, uint64_t end_prefix) {
  Lane& begun = lanes_[lane];
  begun.at = first;
  begun.end = end;
  begun.end_prefix = end_prefix;
  begun.count = 0;
  begun.is_cut = false;
  if (first == nullptr) return;
  FetchEntry(first);
  running_[walking_++] = static_cast<uint8_t>(lane);
}

// A lane that has ended keeps its slot in `found`, whose last element is then overwritten or ignored: there is room for one
// more than capacity_. Conditions are computed as numbers, so the loop has no unpredictable branch.
size_t ListSpan::DoRound(size_t count) {
  size_t still = 0;
  for (size_t i = 0; i < count; ++i) {
    Lane& lane = lanes_[running_[i]];
    const LogEntry* const entry = lane.at;
    const uint64_t prefix = list_->order().Prefix(entry->key());
    bool goes_on = (entry != lane.end) & (prefix <= lane.end_prefix);
    if (__builtin_expect(goes_on && prefix == lane.end_prefix && lane.end != nullptr, 0))
      goes_on = CompareEntries(list_->order(), *entry, *lane.end) < 0;  // the lane's end may have been unlinked
    lane.found[lane.count] = entry;
    lane.count += goes_on;
    const LogEntry* const next = list_->Next(entry);
    FetchEntry(goes_on ? next : entry);
    FetchEntryEnd(entry);
    lane.at = next;
    lane.is_cut = lane.count > capacity_;
    running_[still] = running_[i];
    still += goes_on & (next != nullptr) & !lane.is_cut;
  }
  return still;
}

// STEPS  1 find the place of the first indexed node behind `entry`, unless the span before has left it  2 begin a lane behind
//        `entry` that ends at that node  3 begin further lanes, from each indexed node to the next, until the span has its
//        width.
void ListSpan::BeginAfter(const LogEntry& entry) {
  const size_t width = Width();
  const IndexTree& nodes = index_->NodesOf(reader_);
  begun_ = true;
  begun_lanes_ = walking_ = 0;
  if (nodes.nodes() == 0) return;
  if (place_ == kUnknown) place_ = index_->Find(reader_, SearchKey(list_->order(), entry.key(), entry.sequence() - 1));
  // The first lane is the rest of the gap in which the entry lies; the others are the next gaps of the index.
  uint64_t begin = place_;
  uint64_t end = place_;
  for (bool is_last = false; !is_last && begun_lanes_ < width; ++begun_lanes_) {
    const LogEntry* const first = begun_lanes_ == 0 ? list_->Next(&entry) : nodes.EntryAt(begin);
    is_last = end == nodes.End();
    if (is_last) {
      BeginLane(begun_lanes_, first, nullptr, UINT64_MAX);
    } else {
      BeginLane(begun_lanes_, first, nodes.EntryAt(end), nodes.PrefixAt(end));
      begin = end;
      end = nodes.Next(end);
    }
    place_ = is_last ? kUnknown : end;
  }
}

// Entries behind a cut lane are dropped: they are not adjacent to those of the cut lane. The next span then searches the index.
void ListSpan::FinishAfter(const LogEntry& entry) {
  if (!begun_) BeginAfter(entry);
  while (walking_ > 0) walking_ = DoRound(walking_);
  entries_.clear();
  for (size_t i = 0; i < begun_lanes_; ++i) {
    const Lane& lane = lanes_[i];
    entries_.insert(entries_.end(), lane.found, lane.found + lane.count);
    if (!lane.is_cut) continue;
    place_ = kUnknown;
    break;
  }
  begun_ = false;
}

// STEPS  1 find the indexed nodes before `entry`, as many as the width  2 begin a lane at each, the last one ends at `entry`  3
//        do all rounds  4 join the lanes.
void ListSpan::CollectBefore(const LogEntry& entry) {
  const size_t width = Width();
  entries_.clear();
  begun_ = false;
  place_ = kUnknown;
  const IndexTree& nodes = index_->NodesOf(reader_);
  uint64_t begin = index_->Find(reader_, SearchKey(list_->order(), entry.key(), entry.sequence()));
  size_t lanes = 0;
  for (; lanes < width && begin > 0; ++lanes) begin = nodes.Prev(begin);
  walking_ = 0;
  for (size_t lane = 0; lane < lanes; ++lane) {
    const LogEntry* const first = nodes.EntryAt(begin);
    if (lane + 1 == lanes) {
      BeginLane(lane, first, &entry, list_->order().Prefix(entry.key()));
    } else {
      begin = nodes.Next(begin);
      BeginLane(lane, first, nodes.EntryAt(begin), nodes.PrefixAt(begin));
    }
  }
  while (walking_ > 0) walking_ = DoRound(walking_);
  // The entries before a cut lane are not adjacent to those behind it, so only the lanes behind the last cut one count.
  size_t from = lanes;
  while (from > 0 && !lanes_[from - 1].is_cut) --from;
  for (; from < lanes; ++from) entries_.insert(entries_.end(), lanes_[from].found, lanes_[from].found + lanes_[from].count);
}

}  // namespace braiddb
