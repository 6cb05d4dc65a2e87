// HybridView: the read interface of a hybrid level: point reads by the hash index, cursors by the ordered index.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "index/ordered_level.h"
#include "levels/hybrid/ordered_index.h"

namespace braiddb {

// CONCURRENCY  The hash index changes while readers use it. A version that a registered snapshot sees keeps its slot; a copy that
//              replaces it by relocation takes the slot over. So a read as of such a snapshot finds the version. A read of the
//              newest state may pass the slot of a newer version before that is added, and the slot of the older one after its
//              removal. Then HashIndex::VisitEntries reports a removal. Find treats that as a met mark, so the database repeats
//              the read as of a registered snapshot (DBImpl::ReadKeyAs). [CC-4]
// WHY A STALE ORDERED INDEX IS SAFE  As for the index of a braided skiplist (skiplist/indexed_cursor.h): it has every entry that
//              the level had when the view was installed. Entries that were added later are in tables of the view, or are newer
//              than the view. The memory of removed entries is not reused while a reader of the view lives. An index that is
//              built later than the view lacks only versions that no reader of the view can see.
// Cursors enter no epoch guard. Find requires one.
class HybridView final : public OrderedLevel {
 public:
  struct Parts {
    const RegionSet* regions;
    EpochManager* epochs;
    const KeyOrder* order;
    std::shared_ptr<HashIndex> hash;
    uint32_t threads;  // that build the ordered index
  };

  // `index`: null if it is built when the first cursor needs it.
  HybridView(const Parts& parts, std::shared_ptr<const OrderedIndex> index)
      : parts_(parts), built_(index.get()), index_(std::move(index)) {}

  // With a comparator of the user's, equal keys may have different signatures, so the search goes through the ordered index.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  // Waits until the ordered index is built. May throw std::bad_alloc.
  std::unique_ptr<EntryCursor> NewCursor() const override;

  // Null if it is not built.
  std::shared_ptr<const OrderedIndex> BuiltIndex() const {
    return built_.load(std::memory_order_acquire) == nullptr ? nullptr : index_;
  }
  // Builds the ordered index if it is not built. Returns false if `stop`, which may be null, became true. May throw
  // std::bad_alloc. Thread-safe; a second caller waits.
  bool BuildIndex(const std::atomic<bool>* stop) const;

  // Calls `visit(LogEntry*, PmPtr)` for each version of the key that the level has, in any order; a version may be visited twice.
  // REQUIRES: an epoch guard if the keys are hashed. `built`: the ordered index; null if the keys are hashed. Returns false if
  // entries were removed meanwhile.
  template <class Visit>
  bool VisitVersions(const OrderedIndex* built, const SearchKey& newest, uint64_t signature, const Visit& visit) const;
  // The entry of an address of the level. Null if it is outside of the regions; RegionSet::damage_seen then returns true.
  LogEntry* EntryAt(PmPtr place) const {
    if (__builtin_expect(parts_.regions->Holds(place), 1)) return parts_.regions->Resolve<LogEntry>(place);
    parts_.regions->NoteDamage();
    return nullptr;
  }
  const Parts& parts() const { return parts_; }
  uint64_t SignatureOf(Slice key) const { return KeySignature(parts_.hash->tree_id(), key); }
  bool is_hashed() const { return parts_.order->equal_means_same(); }

 private:
  const Parts parts_;
  mutable std::mutex build_mutex_;
  mutable std::atomic<const OrderedIndex*> built_;
  mutable std::shared_ptr<const OrderedIndex> index_;  // written once, before built_
};

template <class Visit>
bool HybridView::VisitVersions(const OrderedIndex* built, const SearchKey& newest, uint64_t signature, const Visit& visit) const {
  if (is_hashed()) {
    return parts_.hash->VisitEntries(signature, [&](PmPtr place) {
      LogEntry* const entry = EntryAt(place);
      if (entry != nullptr && parts_.order->Same(entry->key(), newest.key)) visit(entry, place);
    });
  }
  const IndexTree& nodes = built->nodes().nodes;
  uint64_t at = built->nodes().Find(*parts_.order, newest);
  for (; at < nodes.End() && nodes.PrefixAt(at) == newest.prefix; at = nodes.Next(at)) {
    const PmPtr place = IndexNode::EntryOf(nodes.WordAt(at));
    LogEntry* const entry = EntryAt(place);
    if (entry == nullptr || !parts_.order->Same(entry->key(), newest.key)) break;
    visit(entry, place);
  }
  return true;
}

}  // namespace braiddb
