#include "nvtree/nv_level.h"

#include <algorithm>

#include "nvtree/nv_cursor.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

class NvEntryCursor final : public EntryCursor {
 public:
  NvEntryCursor(const NvTree* tree, const EntryKeys* keys)
      : EntryCursor(true, keys->usual_bytes()), cursor_(tree), keys_(keys), bytes_(keys->usual_bytes()) {}
  ~NvEntryCursor() override { keys_->NoteUsualBytes(bytes_); }

  void SeekToFirst() override {
    is_forward_ = true;
    cursor_.SeekToFirst();
    FetchForward();
    Load();
  }
  void SeekToLast() override {
    is_forward_ = false;
    cursor_.SeekToLast();
    FetchBackward();
    Load();
  }
  void Seek(const SearchKey& target) override {
    is_forward_ = true;
    cursor_.Seek(target);
    FetchForward();
    Load();
  }
  void SeekBefore(const SearchKey& target) override {
    is_forward_ = false;
    cursor_.SeekBefore(target);
    FetchBackward();
    Load();
  }
  void Next() override {
    is_forward_ = true;
    cursor_.Next();
    if (cursor_.element() == cursor_.begin()) FetchForward();
    Load();
  }
  void Prev() override {
    is_forward_ = false;
    cursor_.Prev();
    if (const Element* element = cursor_.element(); element != nullptr && element + 1 == cursor_.end()) FetchBackward();
    Load();
  }

 private:
  static constexpr std::ptrdiff_t kAhead = EntryKeys::kAhead;

  // The entries of a run's first elements, side by side.
  void FetchForward() const {
    const Element* const element = cursor_.element();
    if (element == nullptr) return;
    for (const Element* next = element; next != std::min(element + kAhead, cursor_.end()); ++next)
      keys_->PrefetchWhole(*next, bytes_);
  }
  void FetchBackward() const {
    const Element* const element = cursor_.element();
    if (element == nullptr) return;
    for (std::ptrdiff_t i = std::min(kAhead, element - cursor_.begin() + 1); i > 0; --i)
      keys_->PrefetchWhole(element[1 - i], bytes_);
  }

  // Fetches ahead. The entries are as large as the last one that was looked at, or so it seems.
  void Load() {
    const LogEntry* const last = entry_;
    const Element* const element = cursor_.element();
    entry_ = nullptr;
    if (element == nullptr) return;
    prefix_ = element->key;
    entry_ = keys_->EntryOf(*element);
    if (last != nullptr) bytes_ = static_cast<uint32_t>(std::min<uint64_t>(LogEntrySize(*last), EntryKeys::kMostFetched));
    if (is_forward_) {
      if (cursor_.end() - element > kAhead) keys_->PrefetchWhole(element[kAhead], bytes_);
    } else if (element - cursor_.begin() >= kAhead) {
      keys_->PrefetchWhole(element[-kAhead], bytes_);
    }
  }

  NvCursor cursor_;
  const EntryKeys* const keys_;
  uint32_t bytes_;  // of an entry
  bool is_forward_ = true;
};

}  // namespace

Status NvLevel::Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<NvLevel>* result) {
  std::shared_ptr<NvLevel> level(new NvLevel(regions, order));
  Status status = NvTree::Open({regions, segments, epochs, order, &level->keys_, place, false}, threads, false, &level->tree_);
  if (status.ok()) *result = std::move(level);
  return status;
}

// What a leaf has changes by one store, which takes a version away and brings the newer one: a search that comes too late for
// one version finds the other.
const LogEntry* NvLevel::Find(const SearchKey& target, LookupTrace* trace) const {
  const RegionSet& regions = keys_.regions();
  const uint32_t home = regions.count() == 1 ? 0 : regions.HomeRegion();
  uint64_t local = 0, remote = 0;
  const auto count = [&](PmPtr visited) { ++(visited.region() == home ? local : remote); };
  const LogEntry* newest = nullptr;
  const auto visit = [&](const Element& element) {
    const LogEntry* const entry = keys_.EntryOf(element);
    if (entry == nullptr) return Visited::kEnough;
    count(PmPtr(element.value));
    const int by_key = order_->Compare(entry->key(), target.key);
    if (by_key != 0) return by_key > 0 ? Visited::kPastKey : Visited::kGoOn;
    if (entry->sequence() > target.sequence) return Visited::kGoOn;
    if (entry->is_dead()) {
      trace->met_dead = true;
    } else if (newest == nullptr || entry->sequence() > newest->sequence()) {
      newest = entry;
      BRAIDDB_SYNC_POINT("NvLevel::Find:Visited");
    }
    return Visited::kGoOn;
  };
  tree_->VisitKey(target, visit, count);
  // Versions come in no order. An older one may have been visited before a merge marked it, and then the tombstone that hides it
  // after that: so the mark is looked at once more. What a registered snapshot sees is never marked.
  if (newest != nullptr && trace->met_dead && newest->is_dead()) newest = nullptr;
  trace->Account(*regions.persistence(), local, remote);
  return newest;
}

std::unique_ptr<EntryCursor> NvLevel::NewCursor() const { return std::make_unique<NvEntryCursor>(tree_.get(), &keys_); }

}  // namespace braiddb
