#include "hash_index/hash_index.h"

#include <xxhash.h>

#include <algorithm>
#include <new>

#include "index/atomic_words.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// A page with fewer entries is not split: its buckets are full because of many versions of one key. Tests of crashes use a bound
// that few pages reach, so that they have overflow pages.
constexpr uint32_t kLeastToSplit = kCrashTest ? HashPage::kSlots - 2 : HashPage::kSlots / 2;
// Two pages with at most so many entries together are joined.
constexpr uint32_t kMostToJoin = HashPage::kSlots * 2 / 5;
// A directory may have so many cells for each page, and for kPagesAtFirst pages more. Signatures that were chosen to begin alike
// then lead to overflow pages instead of a huge directory.
constexpr uint64_t kCellsPerPage = 16;
constexpr uint64_t kPagesAtFirst = 16;
// Additions to overflow pages between two looks at whether their first page is to be split.
constexpr uint32_t kUnsplitAdditions = 64;
// A mark covers a multiple of so many blocks.
constexpr uint64_t kMarkedBlocks = kCrashTest ? 4 : 32;
// Distance of prefetches in Apply, in changes.
constexpr size_t kAhead = 8;

uint64_t UpperHalf(uint32_t depth, uint64_t prefix) { return prefix | uint64_t{1} << (63 - depth); }

// The free slot of a bucket with the smallest number; null if there is none. Adds the number of free slots to *count.
template <class Bucket>
auto FreeInBucket(Bucket& bucket, const HashPage::Range& range, uint32_t* count) {
  auto* free = static_cast<decltype(&bucket[0])>(nullptr);
  for (size_t i = HashPage::kBucketSlots; i-- > 0;) {
    if (range.IsUsed(LoadRelaxed(&bucket[i]))) continue;
    free = &bucket[i];
    ++*count;
  }
  return free;
}

// The free slot in the emptier one of the signature's buckets.
uint64_t* ChooseSlot(HashPage* page, const HashPage::Range& range, uint64_t signature) {
  uint32_t in_first = 0, in_second = 0;
  uint64_t* const first = FreeInBucket(page->buckets[HashPage::FirstBucket(signature)], range, &in_first);
  uint64_t* const second = FreeInBucket(page->buckets[HashPage::SecondBucket(signature)], range, &in_second);
  return in_second > in_first ? second : first;
}

}  // namespace

uint64_t KeySignature(uint64_t tree_id, Slice key) { return XXH3_64bits_withSeed(key.data(), key.size(), tree_id); }

// ---- Changes of slots

// The next changes' buckets are prefetched without the lock. The hint may be outdated.
Status HashIndex::Apply(std::span<const HashChange> changes) try {
  for (size_t i = 0; i < std::min(kAhead, changes.size()); ++i) Prefetch(changes[i].signature);
  for (size_t i = 0; i < changes.size(); ++i) {
    if (i + kAhead < changes.size()) Prefetch(changes[i + kAhead].signature);
    const std::lock_guard lock(PartitionOf(changes[i].signature)->mutex);
    if (Status status = ApplyOne(changes[i]); !status.ok()) return status;
  }
  Reclaim();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status HashIndex::ApplyOne(const HashChange& change) {
  if (change.from.is_null()) return Add(change.signature, change.to);
  const Found found = Find(change.signature);
  uint64_t* const slot =
      found.page == nullptr ? nullptr : FindSlot(PartitionOf(change.signature), found, change.signature, change.from);
  if (slot == nullptr) return Damaged();
  PartitionOf(change.signature)->removals.fetch_add(1, std::memory_order_release);
  StoreRelease(slot, change.to.is_null() ? 0 : change.to.raw() | HashPage::TagOf(found.base(), change.signature));
  if (change.to.is_null()) PartitionOf(change.signature)->has_holes = true;
  if (!BRAIDDB_MUTANT("hash-slot-not-flushed")) FlushLine(slot);
  return Status::OK();
}

Status HashIndex::Add(uint64_t signature, PmPtr entry) {
  for (;;) {
    const Found found = Find(signature);
    Status status;
    if (found.page == nullptr) {
      status = AddFirstPage(signature);
    } else {
      uint64_t* slot = FreeInBuckets(found, signature);
      const bool splits = slot == nullptr && IsToSplit(PartitionOf(signature), found);
      if (slot == nullptr && !splits) slot = FreeInOverflow(PartitionOf(signature), found);
      if (slot != nullptr) {
        StoreRelease(slot, entry.raw() | HashPage::TagOf(found.base(), signature));
        if (!BRAIDDB_MUTANT("hash-new-slot-not-flushed")) FlushLine(slot);
        return Status::OK();
      }
      const HashPage::Range range = found.page->range();
      if (!splits) {
        status = AddOverflow(found);
      } else if (range.depth - range.base < HashPage::kMaxSplits && NextOf(found.place(), *found.page).is_null()) {
        status = SplitInPlace(found);
      } else {
        status = SplitByCopying(found);
      }
    }
    if (!status.ok()) return status;
  }
}

uint64_t* HashIndex::FindSlot(Partition* partition, const Found& found, uint64_t signature, PmPtr entry) const {
  const uint64_t word = entry.raw() | HashPage::TagOf(found.base(), signature);
  const auto in_bucket = [word](HashPage::Bucket& bucket) -> uint64_t* {
    for (uint64_t& slot : bucket) {
      if (LoadRelaxed(&slot) == word) return &slot;
    }
    return nullptr;
  };
  if (uint64_t* const slot = in_bucket(found.page->buckets[HashPage::FirstBucket(signature)])) return slot;
  if (uint64_t* const slot = in_bucket(found.page->buckets[HashPage::SecondBucket(signature)])) return slot;
  return FindInOverflow(partition, found, true, [word](uint64_t slot) { return slot == word; });
}

uint64_t* HashIndex::FreeInBuckets(const Found& found, uint64_t signature) const {
  return ChooseSlot(found.page, found.page->range(), signature);
}

uint64_t* HashIndex::FreeInOverflow(Partition* partition, const Found& found) const {
  const HashPage::Range range = found.page->range();
  uint64_t* const slot =
      FindInOverflow(partition, found, partition->has_holes, [&range](uint64_t word) { return !range.IsUsed(word); });
  if (slot == nullptr) partition->has_holes = false;
  return slot;
}

// Two passes: from the hint to the end, if the hint is in the page's chain, and from the beginning.
template <class Matches>
uint64_t* HashIndex::FindInOverflow(Partition* partition, const Found& found, bool wraps, const Matches& matches) const {
  const PmPtr first = NextOf(found.place(), *found.page);
  if (first.is_null()) return nullptr;
  const bool has_hint = HasHint(*partition, found);
  for (const bool from_hint : {true, false}) {
    if (from_hint ? !has_hint : has_hint && !wraps) continue;
    uint32_t begin = from_hint ? partition->hint_slot : 0;
    for (PmPtr place = from_hint ? partition->hint_page : first; !place.is_null(); place = NextOf(place, *At(place)), begin = 0) {
      for (uint32_t i = begin; i < HashPage::kSlots; ++i) {
        uint64_t* const slot = &At(place)->buckets[i / HashPage::kBucketSlots][i % HashPage::kBucketSlots];
        if (!matches(LoadRelaxed(slot))) continue;
        partition->hint_page = place;
        partition->hint_slot = i;
        return slot;
      }
    }
  }
  return nullptr;
}

void HashIndex::FlushLine(const void* address) {
  persistence()->Flush(address, 1);
  flushed_lines_.fetch_add(1, std::memory_order_relaxed);
}

// ---- Pages

bool HashIndex::MaySplit(const Partition& partition, const Found& found) const {
  const uint32_t depth = found.page->range().depth;
  if (depth >= HashPage::kMaxDepth || Count(*found.page) < kLeastToSplit) return false;
  const uint64_t cells = uint64_t{1} << (depth + 1 - kPartitionBits);
  return depth < partition.directories.back()->depth || cells <= kCellsPerPage * (partition.pages + kPagesAtFirst);
}

bool HashIndex::IsToSplit(Partition* partition, const Found& found) const {
  if (partition->unsplit_cell == found.cell && partition->unsplit_additions > 0) {
    --partition->unsplit_additions;
    return false;
  }
  const bool splits = MaySplit(*partition, found);
  partition->unsplit_cell = splits ? 0 : found.cell;
  partition->unsplit_additions = kUnsplitAdditions;
  return splits;
}

uint32_t HashIndex::Count(const HashPage& page) const {
  const HashPage::Range range = page.range();
  uint32_t free = 0;
  for (const HashPage::Bucket& bucket : page.buckets) (void)FreeInBucket(bucket, range, &free);
  return HashPage::kSlots - free;
}

// All entries are prefetched before the first one is read.
Status HashIndex::Collect(const Found& found, std::vector<Entry>* entries) const {
  const HashPage::Range range = found.page->range();
  std::vector<uint64_t> slots;
  VisitSlots(found, [&](uint64_t slot) {
    slots.push_back(slot);
    parts_.keys->Prefetch(HashPage::EntryOf(slot));
  });
  for (const uint64_t slot : slots) {
    Entry entry{0, HashPage::EntryOf(slot)};
    if (!parts_.keys->SignatureOf(entry.place, &entry.signature) || !range.Matches(slot, entry.signature)) return Damaged();
    entries->push_back(entry);
  }
  return Status::OK();
}

HashIndex::Chain HashIndex::MakeChain(uint32_t depth, uint64_t prefix, const std::vector<Entry>& entries) const {
  Chain chain;
  chain.depth = depth;
  chain.prefix = prefix;
  chain.pages.emplace_back();
  const HashPage::Range range{depth, depth, prefix};
  uint32_t in_overflow = HashPage::kSlots;  // used slots of the last overflow page
  for (const Entry& entry : entries) {
    if (!range.Covers(entry.signature)) continue;
    uint64_t* slot = ChooseSlot(&chain.pages.front(), range, entry.signature);
    if (slot == nullptr) {
      if (in_overflow == HashPage::kSlots) {
        chain.pages.emplace_back();
        in_overflow = 0;
      }
      slot = &chain.pages.back().buckets[in_overflow / HashPage::kBucketSlots][in_overflow % HashPage::kBucketSlots];
      ++in_overflow;
    }
    *slot = entry.place.raw() | HashPage::TagOf(depth, entry.signature);
  }
  return chain;
}

Status HashIndex::Allocate(std::span<Chain> chains) {
  for (Chain& chain : chains) chain.places.reserve(chain.pages.size());
  Status status;
  for (Chain& chain : chains) {
    while (status.ok() && chain.places.size() < chain.pages.size()) {
      PmPtr place;
      status = space_->Allocate(&place);
      if (!status.ok()) break;
      chain.places.push_back(place);
      status = Mark(place);
    }
  }
  if (status.ok()) return status;
  for (const Chain& chain : chains) {
    for (const PmPtr place : chain.places) space_->Free(place);
  }
  return status;
}

// ORDER: the mark before the block's contents. [CC-74]
Status HashIndex::Mark(PmPtr block) {
  Segment* const segment = parts_.segments->Find(block);
  const std::lock_guard lock(used_mutex_);
  uint64_t& marked = marks_[segment];
  const uint64_t number = segment->OffsetOf(block) / HashPage::kBytes;  // the first block has number 1
  if (number <= marked) return Status::OK();
  const uint64_t blocks =
      std::min(segment->capacity() / HashPage::kBytes - 1, (number + kMarkedBlocks - 1) / kMarkedBlocks * kMarkedBlocks);
  auto* const mark = reinterpret_cast<uint64_t*>(segment->data() + HashMark::kOffset);
  StoreRelease(mark, HashMark::Make(root_->tree_id, segment->generation(), blocks));
  if (!BRAIDDB_MUTANT("hash-mark-not-persisted") && !persistence()->Persist(mark, sizeof(*mark))) return persistence()->error();
  marked = blocks;
  return Status::OK();
}

// P1 the contents; a fence. P2 the states; a fence.
Status HashIndex::Write(std::span<Chain> chains) {
  for (Chain& chain : chains) {
    for (size_t i = 0; i < chain.pages.size(); ++i) {
      HashPage& page = chain.pages[i];
      const PmPtr next = i + 1 < chain.pages.size() ? chain.places[i + 1] : PmPtr();
      page.state = 0;
      page.prefix = i == 0 ? chain.prefix : chain.places[0].raw();
      page.next = MakeLink(LinkOwner(chain.places[i]), next);
      HashPage* const media = At(chain.places[i]);
      StoreWords(page, reinterpret_cast<uint8_t*>(media));
      if (!BRAIDDB_MUTANT("hash-page-not-flushed")) persistence()->Flush(media, sizeof(*media));
      flushed_lines_.fetch_add(sizeof(*media) / kCacheLine, std::memory_order_relaxed);
    }
  }
  // ORDER: the contents before the states. [CC-74]
  if (!BRAIDDB_MUTANT("hash-page-not-fenced") && !persistence()->Drain()) return persistence()->error();
  for (const Chain& chain : chains) {
    for (size_t i = 0; i < chain.places.size(); ++i) {
      HashPage* const media = At(chain.places[i]);
      const uint32_t depth = i == 0 ? chain.depth : 0;
      StoreRelease(&media->state,
                   HashPage::MakeState(root_->tree_id, chain.places[i], depth, depth, i != 0, LoadRelaxed(&media->prefix)));
      if (!BRAIDDB_MUTANT("hash-state-not-flushed")) persistence()->Flush(&media->state, sizeof(media->state));
    }
  }
  if (!persistence()->Drain()) return persistence()->error();
  return Status::OK();
}

bool HashIndex::SetState(PmPtr place, uint64_t state) {
  HashPage* const page = At(place);
  StoreRelease(&page->state, state);
  return BRAIDDB_MUTANT("hash-old-state-not-persisted") || persistence()->Persist(&page->state, sizeof(page->state));
}

Status HashIndex::AddFirstPage(uint64_t signature) {
  Partition* const partition = PartitionOf(signature);
  const uint64_t number = signature >> (64 - kPartitionBits);
  Chain chain = MakeChain(kPartitionBits, number << (64 - kPartitionBits), {});
  Status status = Allocate({&chain, 1});
  if (status.ok()) status = Write({&chain, 1});
  if (!status.ok()) return status;
  // ORDER: the page before its bit. An open that finds the bit without a page takes the index for damaged.
  {
    const std::lock_guard lock(used_mutex_);
    StoreRelease(&root_->used, LoadRelaxed(&root_->used) | uint64_t{1} << number);
    if (!persistence()->Persist(&root_->used, sizeof(root_->used))) return persistence()->error();
  }
  Publish(partition, chain);
  ++partition->pages;
  pages_.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

// GOAL   The upper half of the page's entries is in a new page, in the same buckets.
// STEPS  1. P1 write the new page.  2. P2 store the old page's depth.  3. Change the directory. Only then slots of the old page
//        that hold moved entries count as free.
// CRASH  Before 2 the old page covers the new one, which does not count. After 2 both count.
// A READER between 2 and 3 finds the moved entries in the old page.
Status HashIndex::SplitInPlace(const Found& found) {
  const HashPage::Range before = found.page->range();
  const HashPage::Range lower{before.depth + 1, before.base, before.prefix};
  Partition* const partition = PartitionOf(before.prefix);
  PrepareDirectory(partition, lower.depth);
  Chain chain;
  chain.depth = lower.depth;
  chain.prefix = UpperHalf(before.depth, before.prefix);
  chain.pages.emplace_back();
  const HashPage::Range upper{lower.depth, before.base, chain.prefix};
  const auto for_each_moved = [&](const auto& visit) {
    for (uint32_t i = 0; i < HashPage::kBuckets; ++i) {
      for (uint32_t j = 0; j < HashPage::kBucketSlots; ++j) {
        if (const uint64_t slot = LoadRelaxed(&found.page->buckets[i][j]); upper.IsUsed(slot))
          visit(slot, &chain.pages[0].buckets[i][j]);
      }
    }
  };
  for_each_moved([&](uint64_t slot, uint64_t*) { parts_.keys->Prefetch(HashPage::EntryOf(slot)); });
  bool is_sound = true;
  for_each_moved([&](uint64_t slot, uint64_t* to) {
    uint64_t signature = 0;
    const PmPtr entry = HashPage::EntryOf(slot);
    is_sound = is_sound && parts_.keys->SignatureOf(entry, &signature) && upper.Matches(slot, signature);
    *to = entry.raw() | HashPage::TagOf(chain.depth, signature);
  });
  if (!is_sound) return Damaged();
  Status status = Allocate({&chain, 1});
  if (status.ok()) status = Write({&chain, 1});
  if (!status.ok()) return status;
  BRAIDDB_SYNC_POINT("HashIndex::SplitInPlace:Written");
  // ORDER: the new page before the depth. [CC-75]
  if (!SetState(found.place(), HashPage::MakeState(root_->tree_id, found.place(), lower.depth, lower.base, false, lower.prefix)))
    return persistence()->error();
  Publish(partition, chain);
  ++partition->pages;
  pages_.fetch_add(1, std::memory_order_relaxed);
  splits_.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

// GOAL   All entries of the page and of its overflow pages are in two new pages.
// STEPS  1. P1 write the new pages.  2. P2 clear the old page's state.  3. Change the directory, and retire the old pages.
// CRASH  Before 2 the old page covers the new ones, which do not count. After 2 the new ones count.
Status HashIndex::SplitByCopying(const Found& found) {
  const uint32_t depth = found.page->range().depth;
  const uint64_t prefix = found.page->range().prefix;
  Partition* const partition = PartitionOf(prefix);
  PrepareDirectory(partition, depth + 1);
  std::vector<Entry> entries;
  if (Status status = Collect(found, &entries); !status.ok()) return status;
  Chain chains[] = {MakeChain(depth + 1, prefix, entries), MakeChain(depth + 1, UpperHalf(depth, prefix), entries)};
  Status status = Allocate(chains);
  if (status.ok()) status = Write(chains);
  if (!status.ok()) return status;
  // ORDER: the new pages before the old one leaves. [CC-75]
  if (!SetState(found.place(), 0)) return persistence()->error();
  for (const Chain& chain : chains) Publish(partition, chain);
  const uint64_t overflow = chains[0].pages.size() + chains[1].pages.size() - 2;
  overflow_pages_.fetch_add(overflow, std::memory_order_relaxed);
  ++partition->pages;
  pages_.fetch_add(2 + overflow, std::memory_order_relaxed);
  splits_.fetch_add(1, std::memory_order_relaxed);
  Retire(found);
  return Status::OK();
}

// Appends an empty overflow page to the last page of the chain. The link is the commit point: no entry depends on it yet.
Status HashIndex::AddOverflow(const Found& found) {
  Partition* const partition = PartitionOf(found.page->range().prefix);
  PmPtr last = HasHint(*partition, found) ? partition->hint_page : found.place();
  for (PmPtr next = NextOf(last, *At(last)); !next.is_null(); next = NextOf(last, *At(last))) last = next;
  Chain chain;
  chain.pages.resize(1);
  Status status = Allocate({&chain, 1});
  if (!status.ok()) return status;
  const PmPtr place = chain.places[0];
  // An overflow page is the second one of a chain.
  HashPage* const media = At(place);
  HashPage& page = chain.pages[0];
  page.prefix = found.place().raw();
  page.next = MakeLink(LinkOwner(place), PmPtr());
  page.state = HashPage::MakeState(root_->tree_id, place, 0, 0, true, page.prefix);
  StoreWords(page, reinterpret_cast<uint8_t*>(media));
  if (!BRAIDDB_MUTANT("hash-overflow-not-flushed")) persistence()->Flush(media, sizeof(*media));
  // ORDER: the page before the link to it. [CC-74]
  if (!persistence()->Drain()) return persistence()->error();
  StoreRelease(&At(last)->next, MakeLink(LinkOwner(last), place));
  if (!BRAIDDB_MUTANT("hash-overflow-link-not-persisted") && !persistence()->Persist(&At(last)->next, sizeof(uint64_t)))
    return persistence()->error();
  flushed_lines_.fetch_add(sizeof(page) / kCacheLine + 1, std::memory_order_relaxed);
  partition->hint_page = place;
  partition->hint_slot = 0;
  Publish(partition, found.place(), found.page->range(), true);
  pages_.fetch_add(1, std::memory_order_relaxed);
  overflow_pages_.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

// ORDER: the link around the page is durable before its block is reused. [CC-74]
// CRASH  Before the link an empty page is in the chain. After it the page's block is free.
Status HashIndex::UnlinkEmpty(Partition* partition, const Found& found) {
  const HashPage::Range range = found.page->range();
  PmPtr before = found.place();
  for (PmPtr place = NextOf(before, *At(before)); !place.is_null();) {
    const HashPage& page = *At(place);
    const PmPtr next = NextOf(place, page);
    uint32_t free = 0;
    for (const HashPage::Bucket& bucket : page.buckets) (void)FreeInBucket(bucket, range, &free);
    if (free < HashPage::kSlots) {
      before = place;
    } else {
      StoreRelease(&At(before)->next, MakeLink(LinkOwner(before), next));
      if (!BRAIDDB_MUTANT("hash-unlink-not-persisted") && !persistence()->Persist(&At(before)->next, sizeof(uint64_t)))
        return persistence()->error();
      partition->hint_page = PmPtr();
      overflow_pages_.fetch_sub(1, std::memory_order_relaxed);
      RetireBlock(place);
      retired_.store(true, std::memory_order_relaxed);
    }
    place = next;
  }
  Publish(partition, found.place(), range, !NextOf(found.place(), *found.page).is_null());
  return Status::OK();
}

// For each pair of neighbors that came from one page. A joined page may be joined again with the next one, so the pass over a
// partition repeats until nothing changes.
Status HashIndex::Shrink() try {
  for (Partition& partition : partitions_) {
    const std::lock_guard lock(partition.mutex);
    for (bool has_joined = true; has_joined;) {
      has_joined = false;
      const Directory& directory = *partition.directories.back();
      for (uint64_t i = 0; i < directory.size();) {
        Found left = FoundAt(directory.cells[i].load(std::memory_order_relaxed));
        if (left.page == nullptr) break;
        if (left.has_overflow()) {
          if (Status status = UnlinkEmpty(&partition, left); !status.ok()) return status;
          left = FoundAt(directory.cells[i].load(std::memory_order_relaxed));
        }
        const uint32_t depth = left.page->range().depth;
        const uint64_t cells = uint64_t{1} << (directory.depth - depth);
        const bool is_lower = depth > kPartitionBits && (i & cells) == 0;
        const Found right = is_lower ? FoundAt(directory.cells[i + cells].load(std::memory_order_relaxed)) : Found();
        if (right.page != nullptr && right.page->range().depth == depth && NextOf(left.place(), *left.page).is_null() &&
            NextOf(right.place(), *right.page).is_null() && Count(*left.page) + Count(*right.page) <= kMostToJoin) {
          if (Status status = Join(&partition, left, right, &has_joined); !status.ok()) return status;
        }
        i += cells;
      }
    }
  }
  Reclaim();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// GOAL   All entries of two neighboring pages are in one new page.
// STEPS  1. P1 write the new page.  2. P2 clear the states of the old pages.  3. Change the directory, and retire the old pages.
// CRASH  Before the new page's state is durable, the old pages count. After that, the new page covers them.
Status HashIndex::Join(Partition* partition, const Found& left, const Found& right, bool* has_joined) {
  std::vector<Entry> entries;
  for (const Found& found : {left, right}) {
    if (Status status = Collect(found, &entries); !status.ok()) return status;
  }
  Chain chain = MakeChain(left.page->range().depth - 1, left.page->range().prefix, entries);
  if (chain.pages.size() > 1) return Status::OK();  // too many entries have the same two buckets
  Status status = Allocate({&chain, 1});
  if (status.ok()) status = Write({&chain, 1});
  // Without space the pages stay as they are.
  if (!status.ok()) return status.IsNoSpace() ? Status::OK() : status;
  BRAIDDB_SYNC_POINT("HashIndex::Join:Written");
  // ORDER: the old states are gone before a split gives another page their depth, and before their space is reused. [CC-75]
  if (!SetState(left.place(), 0) || !SetState(right.place(), 0)) return persistence()->error();
  *has_joined = true;
  Publish(partition, chain);
  --partition->pages;
  pages_.fetch_add(1, std::memory_order_relaxed);
  joins_.fetch_add(1, std::memory_order_relaxed);
  Retire(left);
  Retire(right);
  return Status::OK();
}

// ---- Directories

void HashIndex::PrepareDirectory(Partition* partition, uint32_t depth) {
  const Directory& now = *partition->directories.back();
  if (depth <= now.depth) return;
  partition->directories.reserve(partition->directories.size() + 1);
  auto larger = std::make_unique<Directory>(depth - kPartitionBits);
  const uint32_t shift = depth - now.depth;
  for (uint64_t i = 0; i < larger->size(); ++i)
    larger->cells[i].store(now.cells[i >> shift].load(std::memory_order_relaxed), std::memory_order_relaxed);
  partition->directory.store(larger.get(), std::memory_order_release);
  partition->directories.push_back(std::move(larger));
}

void HashIndex::Publish(Partition* partition, PmPtr place, const HashPage::Range& range, bool has_overflow) noexcept {
  const Directory& directory = *partition->directories.back();
  std::atomic<uint64_t>* const first = &directory.CellOf(range.prefix);
  const uint64_t cell = place.raw() | uint64_t{range.base} << HashPage::kTagShift | (has_overflow ? kHasOverflow : 0);
  for (uint64_t i = 0; i < uint64_t{1} << (directory.depth - range.depth); ++i) first[i].store(cell, std::memory_order_release);
}

// If there is no memory, the block stays unused until the next open.
void HashIndex::RetireBlock(PmPtr place) noexcept {
  pages_.fetch_sub(1, std::memory_order_relaxed);
  try {
    parts_.epochs->Retire([space = space_, place] { space->Free(place); });
  } catch (const std::bad_alloc&) {
  }
}

void HashIndex::Retire(const Found& found) noexcept {
  PartitionOf(LoadRelaxed(&found.page->prefix))->hint_page = PmPtr();
  for (PmPtr place = found.place(); !place.is_null();) {
    const PmPtr next = NextOf(place, *At(place));
    if (!(place == found.place())) overflow_pages_.fetch_sub(1, std::memory_order_relaxed);
    RetireBlock(place);
    place = next;
  }
  retired_.store(true, std::memory_order_relaxed);
}

// Without a lock, since callbacks of others run here.
void HashIndex::Reclaim() {
  if (retired_.exchange(false, std::memory_order_relaxed)) parts_.epochs->Reclaim();
}

// ---- Others

Status HashIndex::FlushAll() {
  for (uint32_t i = 0; i < kPartitions; ++i) {
    const std::lock_guard lock(partitions_[i].mutex);
    const Directory& directory = *partitions_[i].directories.back();
    for (uint64_t cell = 0; cell < directory.size();) {
      const Found found = FoundAt(directory.cells[cell].load(std::memory_order_relaxed));
      if (found.page == nullptr) break;
      cell += uint64_t{1} << (directory.depth - found.page->range().depth);
      PmPtr place = found.place();
      for (; !place.is_null(); place = NextOf(place, *At(place))) {
        if (!BRAIDDB_MUTANT("found-slots-not-flushed")) persistence()->Flush(At(place), HashPage::kBytes);
      }
    }
  }
  return persistence()->Drain() ? Status::OK() : persistence()->error();
}

HashIndex::Stats HashIndex::GetStats() const {
  return {pages_.load(std::memory_order_relaxed), overflow_pages_.load(std::memory_order_relaxed), space_->free_blocks(),
          splits_.load(std::memory_order_relaxed), joins_.load(std::memory_order_relaxed)};
}

uint64_t HashIndex::DramBytes() const {
  uint64_t bytes = sizeof(*this);
  for (const Partition& partition : partitions_) {
    const std::lock_guard lock(partition.mutex);
    for (const auto& directory : partition.directories) bytes += directory->size() * sizeof(uint64_t);
  }
  return bytes;
}

Status HashIndex::ReleaseSegments() {
  const std::vector<Segment*> own = space_->segments();
  for (Segment* const segment : own) {
    if (Status status = parts_.segments->Release(segment); !status.ok()) return status;
  }
  return Status::OK();
}

Status HashIndex::NoMemory() { return Status::MemoryLimit("no memory for a page of the hash index"); }

Status HashIndex::Damaged() const {
  parts_.regions->NoteDamage();
  return Status::Corruption("hash index: an entry is missing; run braiddb check, then restore the database from a copy");
}

}  // namespace braiddb
