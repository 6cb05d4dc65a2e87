#include "skiplist/list_span.h"

#include <algorithm>

#include "log/fetch_entry.h"

namespace braiddb {

void ListSpan::Clear() {
  entries_.clear();
  begun_ = false;
  wanted_ = kFirst;
  place_ = kUnknown;
}

size_t ListSpan::Width() {
  if (capacity_ == 0) {
    reader_ = list_->Home().reader;
    distance_ = index_->Distance(reader_);
    const size_t capacity = 8 * distance_;  // longer ones are one in three thousand
    room_.resize(kMostLanes * (capacity + 1));
    capacity_ = capacity;
    for (size_t lane = 0; lane < kMostLanes; ++lane) lanes_[lane].found = &room_[lane * (capacity_ + 1)];
  }
  const uint64_t wanted = wanted_;
  wanted_ = std::min(2 * wanted_, kMost);
  return std::clamp<size_t>(wanted / distance_, 2, kMostLanes);
}

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

size_t ListSpan::DoRound(size_t count) {
  size_t still = 0;
  for (size_t i = 0; i < count; ++i) {
    Lane& lane = lanes_[running_[i]];
    const LogEntry* const entry = lane.at;
    const uint64_t prefix = list_->order().Prefix(entry->key());
    bool goes_on = (entry != lane.end) & (prefix <= lane.end_prefix);
    if (__builtin_expect(goes_on && prefix == lane.end_prefix && lane.end != nullptr, 0))
      goes_on = CompareEntries(list_->order(), *entry, *lane.end) < 0;  // the end may have been unlinked
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

void ListSpan::BeginAfter(const LogEntry& entry) {
  const size_t width = Width();
  const IndexTree& nodes = index_->NodesOf(reader_);
  begun_ = true;
  begun_lanes_ = walking_ = 0;
  if (nodes.nodes() == 0) return;
  if (place_ == kUnknown) place_ = index_->Find(reader_, SearchKey(list_->order(), entry.key(), entry.sequence() - 1));
  // The rest of the stretch that the entry is in, and those behind it.
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
  // What lies before a lane that was cut is not next to what follows it.
  size_t from = lanes;
  while (from > 0 && !lanes_[from - 1].is_cut) --from;
  for (; from < lanes; ++from) entries_.insert(entries_.end(), lanes_[from].found, lanes_[from].found + lanes_[from].count);
}

}  // namespace braiddb
