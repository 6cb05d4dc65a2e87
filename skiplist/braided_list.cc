#include "skiplist/braided_list.h"

#include "util/spin.h"

namespace braiddb {
namespace {

const LogEntry* EntryOfTower(const uint64_t* tower) {
  return reinterpret_cast<const LogEntry*>(reinterpret_cast<const char*>(tower) - offsetof(LogEntry, next));
}

}  // namespace

void BraidedList::Account(VisitCounts* visits, uint64_t local, uint64_t remote) const {
  if (visits == nullptr) return;
  visits->local += local;
  visits->remote += remote;
  const Persistence* persistence = regions_->persistence();
  const uint64_t delay_ns = (local + remote) * persistence->read_latency_ns() + remote * persistence->remote_latency_ns();
  if (__builtin_expect(delay_ns != 0, 0)) SpinFor(delay_ns);
}

LogEntry* BraidedList::FindGreaterOrEqual(const SearchKey& target, VisitCounts* visits) const {
  const uint32_t home = regions_->count() == 1 ? 0 : regions_->HomeRegion();
  const uint64_t* tower = heads_[home];
  uint64_t bound = 0;  // the nearest entry known to be at or after target
  uint64_t visited = 0;
  uint64_t remote = 0;
  for (uint32_t layer = kMaxHeight - 1;; --layer) {
    if (layer == 0) tower = BottomStart(tower, home);
    for (;;) {
      const uint64_t raw = LoadAcquire(&tower[layer]) & ~LogEntry::kTagBits;
      if (raw == 0 || raw == bound) break;
      auto* next = regions_->Resolve<LogEntry>(PmPtr(raw));
      // Both ways on are fetched at once: to the right, and one layer down.
      if (layer > 0) {
        const uint64_t below = LoadRelaxed(&tower[layer - 1]) & ~LogEntry::kTagBits;
        if (below != raw && below != 0) __builtin_prefetch(regions_->Resolve(PmPtr(below)));
      }
      ++visited;
      remote += PmPtr(raw).region() != home;
      if (CompareEntry(*order_, *next, target) >= 0) {
        bound = raw;
        break;
      }
      tower = next->next;
    }
    if (layer == 0) {
      // What the last tower leads to is at or after target, or nothing is.
      Account(visits, visited - remote, remote);
      const uint64_t raw = bound != 0 && (LoadAcquire(&tower[0]) & ~LogEntry::kTagBits) == bound ? bound : 0;
      if (raw != 0) return regions_->Resolve<LogEntry>(PmPtr(raw));
      // An entry came between since: settle it by walking on.
      LogEntry* next = Load(tower, 0);
      while (next != nullptr && CompareEntry(*order_, *next, target) < 0) next = Load(next->next, 0);
      return next;
    }
  }
}

LogEntry* BraidedList::FindLess(const SearchKey& target) const {
  const uint32_t home = regions_->HomeRegion();
  const uint64_t* tower = heads_[home];
  for (uint32_t layer = kMaxHeight; layer-- > 0;) {
    if (layer == 0) tower = BottomStart(tower, home);
    for (LogEntry* next = Load(tower, layer); next != nullptr && CompareEntry(*order_, *next, target) < 0;
         next = Load(tower, layer)) {
      tower = next->next;
    }
  }
  return tower == heads_[0] ? nullptr : const_cast<LogEntry*>(EntryOfTower(tower));
}

LogEntry* BraidedList::FindLast() const {
  const uint32_t home = regions_->HomeRegion();
  const uint64_t* tower = heads_[home];
  for (uint32_t layer = kMaxHeight; layer-- > 0;) {
    if (layer == 0) tower = BottomStart(tower, home);
    while (LogEntry* next = Load(tower, layer)) tower = next->next;
  }
  return tower == heads_[0] ? nullptr : const_cast<LogEntry*>(EntryOfTower(tower));
}

// A dead entry is the answer for no reader. A list can still show one while its table is merged: the tombstone that hides it may already
// be out of sight, dropped from a newer table of the same merge. Marks are set before what hid the entry disappears.
const LogEntry* BraidedList::Find(const SearchKey& target, VisitCounts* visits) const {
  for (const LogEntry* entry = FindGreaterOrEqual(target, visits); entry != nullptr; entry = Next(entry)) {
    if (order_->Compare(entry->key(), target.key) != 0) return nullptr;
    if (!entry->is_dead()) return entry;
  }
  return nullptr;
}

namespace {

class BraidedCursor final : public EntryCursor {
 public:
  explicit BraidedCursor(const BraidedList* list) : list_(list) {}

  void SeekToFirst() override { entry_ = list_->First(); }
  void SeekToLast() override { entry_ = list_->FindLast(); }
  void Seek(const SearchKey& target) override { entry_ = list_->FindGreaterOrEqual(target); }
  void SeekBefore(const SearchKey& target) override { entry_ = list_->FindLess(target); }
  void Next() override { entry_ = list_->Next(entry_); }
  void Prev() override { entry_ = list_->FindLess(SearchKey(list_->order(), entry_->key(), entry_->sequence())); }
  const LogEntry* entry() const override { return entry_; }

 private:
  const BraidedList* list_;
  LogEntry* entry_ = nullptr;
};

}  // namespace

std::unique_ptr<EntryCursor> BraidedList::NewCursor() const { return std::make_unique<BraidedCursor>(this); }

}  // namespace braiddb
