#include "index/range_tombstones.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace braiddb {

std::shared_ptr<const RangeTombstones> RangeTombstones::With(const RangeTombstones* old, std::vector<Tombstone> added,
                                                             const KeyOrder& order) {
  std::shared_ptr<RangeTombstones> result(new RangeTombstones(order));
  if (old != nullptr) {
    result->runs_ = old->runs_;
    result->bytes_ = old->bytes_;
  }
  for (const Tombstone& tombstone : added) result->bytes_ += BytesOf(*tombstone);
  std::sort(added.begin(), added.end(),
            [&order](const Tombstone& a, const Tombstone& b) { return order.Compare(a->begin, b->begin) < 0; });
  result->AddRun(std::move(added));
  return result;
}

std::shared_ptr<const RangeTombstones> RangeTombstones::Without(const RangeTombstones& old,
                                                                const std::function<bool(const RangeTombstone&)>& leaves) {
  std::vector<Tombstone> rest;
  old.ForEach([&](const Tombstone& tombstone) {
    if (!leaves(*tombstone)) rest.push_back(tombstone);
  });
  return rest.empty() ? nullptr : With(nullptr, std::move(rest), old.order_);
}

// The object and its count of owners in one allocation, bounds that do not lie in their strings, its place in a run, and what an
// allocator adds to each.
uint64_t RangeTombstones::BytesOf(const RangeTombstone& tombstone) {
  constexpr uint64_t kOwners = 16;
  constexpr uint64_t kAllocator = 16;
  uint64_t bytes = sizeof(RangeTombstone) + kOwners + kAllocator + sizeof(Place);
  for (const std::string* bound : {&tombstone.begin, &tombstone.end}) {
    const bool is_inside = bound->capacity() <= std::string().capacity();
    bytes += is_inside ? 0 : bound->capacity() + 1 + kAllocator;
  }
  return bytes;
}

// Merges runs while the previous run is smaller than twice the new one, which bounds the number of runs by the logarithm of the
// size.
void RangeTombstones::AddRun(std::vector<Tombstone> sorted) {
  std::shared_ptr<const Run> last = MakeRun(std::move(sorted));
  while (!runs_.empty() && runs_.back()->size() < 2 * last->size()) {
    last = MakeRun(Join(*runs_.back(), *last));
    runs_.pop_back();
  }
  runs_.push_back(std::move(last));
}

std::vector<RangeTombstones::Tombstone> RangeTombstones::Join(const Run& a, const Run& b) const {
  std::vector<Tombstone> joined;
  joined.reserve(a.size() + b.size());
  size_t from_b = 0;
  for (const Place& place : a) {
    while (from_b < b.size() && order_.Compare(b[from_b].own->begin, place.own->begin) < 0) joined.push_back(b[from_b++].own);
    joined.push_back(place.own);
  }
  while (from_b < b.size()) joined.push_back(b[from_b++].own);
  return joined;
}

std::shared_ptr<const RangeTombstones::Run> RangeTombstones::MakeRun(std::vector<Tombstone> sorted) const {
  auto run = std::make_shared<Run>();
  run->reserve(sorted.size());
  for (Tombstone& tombstone : sorted) {
    const RangeTombstone* const own = tombstone.get();
    run->push_back({std::move(tombstone), own, own->sequence, own->sequence});
  }
  Summarize(run.get(), 0, run->size());
  return run;
}

// Computes the summaries of the subtree [lo, hi) bottom-up.
void RangeTombstones::Summarize(Run* run, size_t lo, size_t hi) const {
  if (hi - lo < 2) return;
  const size_t root = lo + (hi - lo) / 2;
  Place& place = (*run)[root];
  for (const auto& [begin, end] : {std::pair(lo, root), std::pair(root + 1, hi)}) {
    if (begin == end) continue;
    Summarize(run, begin, end);
    const Place& child = (*run)[begin + (end - begin) / 2];
    if (order_.Compare(place.last->end, child.last->end) < 0) place.last = child.last;
    place.largest = std::max(place.largest, child.largest);
    place.smallest = std::min(place.smallest, child.smallest);
  }
}

template <class IsOfUse, class IsBetter, class Take>
void RangeTombstones::Search(const Run& run, size_t lo, size_t hi, Slice key, const IsOfUse& is_of_use, const IsBetter& is_better,
                             const Take& take) const {
  if (lo >= hi) return;
  const size_t root = lo + (hi - lo) / 2;
  const Place& place = run[root];
  if (!is_of_use(place) || order_.Compare(place.last->end, key) <= 0) return;
  const RangeTombstone& own = *place.own;
  const bool goes_right = order_.Compare(own.begin, key) <= 0;  // or all tombstones behind it begin behind the key, too
  if (goes_right && order_.Compare(key, own.end) < 0) take(own.sequence);
  const bool right_first =
      goes_right && lo < root && root + 1 < hi && is_better(run[root + 1 + (hi - root - 1) / 2], run[lo + (root - lo) / 2]);
  if (!right_first) Search(run, lo, root, key, is_of_use, is_better, take);
  if (goes_right) Search(run, root + 1, hi, key, is_of_use, is_better, take);
  if (right_first) Search(run, lo, root, key, is_of_use, is_better, take);
}

uint64_t RangeTombstones::Newest(Slice key, uint64_t at_most) const {
  uint64_t newest = 0;
  const auto is_of_use = [&](const Place& place) { return place.largest > newest && place.smallest <= at_most; };
  const auto is_better = [](const Place& a, const Place& b) { return a.largest > b.largest; };
  const auto take = [&](uint64_t number) { newest = number <= at_most ? std::max(newest, number) : newest; };
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) Search(**run, 0, (*run)->size(), key, is_of_use, is_better, take);
  return newest;
}

uint64_t RangeTombstones::Next(Slice key, uint64_t above) const {
  uint64_t next = UINT64_MAX;
  const auto is_of_use = [&](const Place& place) { return place.smallest < next && place.largest > above; };
  const auto is_better = [](const Place& a, const Place& b) { return a.smallest < b.smallest; };
  const auto take = [&](uint64_t number) { next = number > above ? std::min(next, number) : next; };
  for (const auto& run : runs_) Search(*run, 0, run->size(), key, is_of_use, is_better, take);
  return next;
}

size_t RangeTombstones::size() const {
  size_t sum = 0;
  for (const auto& run : runs_) sum += run->size();
  return sum;
}

void RangeTombstones::ForEach(const std::function<void(const Tombstone&)>& visit) const {
  for (const auto& run : runs_) {
    for (const Place& place : *run) visit(place.own);
  }
}

}  // namespace braiddb
