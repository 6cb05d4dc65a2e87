#include "skiplist/braided_skiplist.h"

namespace braiddb {

// PERSIST ORDER  One persist per head; no order among the heads, since the MANIFEST lists the family later.
Status BraidedSkipList::Create(RegionSet* regions, const LevelPlace& place) {
  for (uint32_t region = 0; region < regions->count(); ++region) {
    void* object = nullptr;
    Status status = place.Take(regions, region, sizeof(SkipListHead), &object);
    if (!status.ok()) return status;
    // One line holds the magic and the checksum; the words are zero already. No reader exists before the creation commits.
    // [CC-1]
    auto* head = static_cast<SkipListHead*>(object);
    head->checksum = SkipListHead::ComputeChecksum(head->next);
    StoreRelease(&head->magic, SkipListHead::kMagic);
    if (!regions->persistence()->Persist(head, sizeof(*head))) return regions->persistence()->error();
  }
  return Status::OK();
}

// The checksums of the heads are not verified here: an interrupted batch is redone first, and VerifyHeads follows.
Status BraidedSkipList::Open(const RegionSet* regions, const KeyOrder* order, std::shared_ptr<const BraidedSkipList>* result,
                             const LevelPlace& place) {
  BraidedList list(regions, order);
  for (uint32_t region = 0; region < regions->count(); ++region) {
    auto* head = static_cast<SkipListHead*>(place.Find(*regions, region, sizeof(SkipListHead)));
    if (head == nullptr || head->magic != SkipListHead::kMagic) {
      return Status::Corruption("region " + std::to_string(region) + " has no head of the last level; restore it from a copy");
    }
    list.SetHead(region, head->next);
  }
  result->reset(new BraidedSkipList(list));
  return Status::OK();
}

// The checksum lies directly before the words, so words[-1] is SkipListHead::checksum (static_assert in the header).
Status BraidedSkipList::VerifyHeads() const {
  for (uint32_t region = 0; region < list_.regions().count(); ++region) {
    const uint64_t* words = list_.head(region);
    if (words[-1] != SkipListHead::ComputeChecksum(words)) {
      return Status::Corruption("region " + std::to_string(region) +
                                ": the head of the last level is damaged; restore the database from a copy");
    }
  }
  return Status::OK();
}

// The new object shares the list's heads with this one. Readers of old views keep this object and its index.
std::shared_ptr<const BraidedSkipList> BraidedSkipList::WithIndex(uint64_t entries, uint64_t index_bytes,
                                                                  const IndexChanges* changes, const std::atomic<bool>* stop,
                                                                  SharedHeap* heap) const {
  return With(changes == nullptr ? TallIndex(list_, entries, index_bytes, stop, heap)
                                 : TallIndex(index_, *changes, entries, index_bytes, stop, heap));
}

}  // namespace braiddb
