// The part of HashIndex that creates and opens an index.
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "hash_index/hash_index.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

uint64_t ComputeChecksum(const HashRoot& root) { return XXH3_64bits(&root, offsetof(HashRoot, checksum)); }

Status DamagedIndex(const char* what) {
  return Status::Corruption(std::string("hash index: ") + what + "; restore the database from a copy");
}

}  // namespace

uint64_t HashTreeId(uint64_t database_id, uint64_t number) {
  return Mix64(database_id ^ HashRoot::kMagic ^ number * 0x9e3779b97f4a7c15ull);
}

bool IsHashRoot(const HashRoot& root, uint64_t database_id, uint64_t number) {
  return root.magic == HashRoot::kMagic && root.checksum == ComputeChecksum(root) &&
         root.tree_id == HashTreeId(database_id, number) && root.page_bytes == HashPage::kBytes;
}

// A page that covers another one comes before it, by its prefix or by its depth. So one pass finds the covered pages.
CountingPages::CountingPages(std::vector<Page> pages, uint64_t used) {
  std::sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) {
    return a.range.prefix != b.range.prefix ? a.range.prefix < b.range.prefix : a.range.depth < b.range.depth;
  });
  for (const Page& page : pages) {
    const Page* const last = counting_.empty() ? nullptr : &counting_.back();
    const bool is_covered = last != nullptr && last->range.Covers(page.range.prefix);
    if (is_covered && page.range.depth == last->range.depth) damage_ = "two pages have the same entries";
    (is_covered ? others_ : counting_).push_back(page);
  }
  constexpr uint32_t kShift = 64 - HashIndex::kPartitionBits;
  auto at = counting_.begin();
  for (uint64_t partition = 0; partition < HashIndex::kPartitions; ++partition) {
    const uint64_t first = partition << kShift;
    uint64_t next = first;  // the prefix that the next page must have
    bool has_pages = false;
    for (; at != counting_.end() && at->range.prefix >> kShift == partition; ++at) {
      if (at->range.prefix != next || at->range.depth < HashIndex::kPartitionBits) damage_ = "a page is missing or damaged";
      next += uint64_t{1} << (64 - at->range.depth);
      has_pages = true;
    }
    if (next != (has_pages ? first + (uint64_t{1} << kShift) : first) || (!has_pages && (used >> partition & 1) != 0))
      damage_ = "a page is missing or damaged";
  }
}

HashIndex::HashIndex(const HashIndexParts& parts, HashRoot* root)
    : parts_(parts),
      root_(root),
      space_(std::make_shared<LeafSpace>(parts.regions, parts.segments, root->tree_id, HashPage::kBytes)) {}

Status HashIndex::Create(RegionSet* regions, SegmentAllocator* /*segments*/, const LevelPlace& place) {
  void* object = nullptr;
  Status status = place.Take(regions, 0, sizeof(HashRoot), &object);
  if (!status.ok()) return status;
  auto* const root = static_cast<HashRoot*>(object);
  *root = {HashRoot::kMagic, HashTreeId(regions->database_id(), place.number), HashPage::kBytes, {}, 0, 0};
  root->checksum = ComputeChecksum(*root);
  Persistence* const persistence = regions->persistence();
  return persistence->Persist(root, sizeof(*root)) ? Status::OK() : persistence->error();
}

Status HashIndex::Open(const HashIndexParts& parts, uint32_t threads, std::unique_ptr<HashIndex>* result) try {
  auto* const root = static_cast<HashRoot*>(parts.place.Find(*parts.regions, 0, sizeof(HashRoot)));
  if (root == nullptr || !IsHashRoot(*root, parts.regions->database_id(), parts.place.number))
    return DamagedIndex("its root is missing or damaged");
  std::unique_ptr<HashIndex> index(new HashIndex(parts, root));
  if (!index->space_->FindSegments()) return parts.regions->persistence()->error();
  Status status = index->Rebuild(std::max<uint32_t>(threads, 1));
  if (status.ok()) *result = std::move(index);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// GOAL   Directories that lead to the counting pages. All other blocks are free.
// STEPS  1. Threads read the first line of each block that the segments' marks cover, and flush it.  2. Choose the pages that
//        count. 3. Follow their overflow pages.  4. Clear the states of other valid pages.  5. Build the directories.
// CRASH  Step 4 clears states of pages that do not count, one at a time.
// COST   One cache miss and one flush for each page, in parallel.
Status HashIndex::Rebuild(uint32_t threads) {
  // Step 1. ORDER: what was found is durable before anything depends on it. [CC-46]
  const std::vector<Segment*>& segments = space_->segments();
  std::vector<std::vector<CountingPages::Page>> found(threads);
  std::vector<std::vector<PmPtr>> overflow(threads);
  std::vector<uint64_t> marked(segments.size());
  std::atomic<size_t> next_segment{0};
  std::atomic<bool> is_durable{true};
  threads = std::clamp<uint32_t>(static_cast<uint32_t>(segments.size()), 1, threads);
  RunParallel(threads, [&](uint32_t thread) {
    for (size_t i = next_segment++; i < segments.size(); i = next_segment++) {
      uint8_t* const start = segments[i]->data();
      persistence()->Flush(start + HashMark::kOffset, sizeof(HashMark));
      const uint64_t blocks = HashMark::Blocks(start, root_->tree_id, segments[i]->generation(), space_->Blocks(*segments[i]));
      marked[i] = blocks;
      for (uint64_t block = 0; block < blocks; ++block) {
        const PmPtr place = space_->Block(*segments[i], block);
        const HashPage& page = *At(place);
        constexpr uint64_t kFetchAhead = 16;
        if (block + kFetchAhead < blocks) braiddb::Prefetch(At(space_->Block(*segments[i], block + kFetchAhead)));
        persistence()->Flush(&page, kCacheLine);
        if (!page.IsValid(root_->tree_id, place)) continue;
        if (HashPage::IsOverflow(page.state)) {
          overflow[thread].push_back(place);
        } else {
          found[thread].push_back({place, page.range()});
        }
      }
    }
    if (!persistence()->Drain()) is_durable = false;
  });
  persistence()->Flush(root_, sizeof(*root_));
  if (!persistence()->Drain() || !is_durable) return persistence()->error();

  for (size_t i = 0; i < segments.size(); ++i) marks_[segments[i]] = marked[i];

  // Step 2.
  std::vector<CountingPages::Page> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  const CountingPages pages(std::move(all), LoadRelaxed(&root_->used));
  if (pages.damage() != nullptr) return DamagedIndex(pages.damage());

  // Step 3.
  std::vector<PmPtr> overflow_pages;
  for (const auto& part : overflow) overflow_pages.insert(overflow_pages.end(), part.begin(), part.end());
  std::sort(overflow_pages.begin(), overflow_pages.end(), [](PmPtr a, PmPtr b) { return a.raw() < b.raw(); });
  std::vector<PmPtr> used;
  for (const CountingPages::Page& page : pages.counting()) {
    used.push_back(page.place);
    for (PmPtr place = page.place;;) {
      const uint64_t link = LoadRelaxed(&At(place)->next);
      if (!IsLink(LinkOwner(place), link)) return DamagedIndex("a link to an overflow page is damaged");
      place = LinkTarget(link);
      if (place.is_null()) break;
      const bool is_there = std::binary_search(overflow_pages.begin(), overflow_pages.end(), place,
                                               [](PmPtr a, PmPtr b) { return a.raw() < b.raw(); });
      if (!is_there || At(place)->prefix != page.place.raw() || overflow_pages_ == overflow_pages.size())
        return DamagedIndex("an overflow page is damaged");
      used.push_back(place);
      ++overflow_pages_;
    }
  }

  // Step 4. ORDER: before a new page gets their depth, or their blocks are reused. [CC-75]
  for (const CountingPages::Page& page : pages.others()) {
    if (!SetState(page.place, 0)) return persistence()->error();
  }
  if (!space_->FreeOthers(used)) return DamagedIndex("two links lead to one overflow page");
  pages_ = used.size();
  return BuildDirectories(pages.counting());
}

// Sets `used` where a crash has cut off the creation of a partition's first page.
Status HashIndex::BuildDirectories(const std::vector<CountingPages::Page>& pages) {
  uint32_t depths[kPartitions];
  std::fill(std::begin(depths), std::end(depths), kPartitionBits);
  uint64_t used = 0;
  for (const CountingPages::Page& page : pages) {
    const uint64_t partition = page.range.prefix >> (64 - kPartitionBits);
    depths[partition] = std::max(depths[partition], page.range.depth);
    used |= uint64_t{1} << partition;
  }
  for (uint32_t i = 0; i < kPartitions; ++i) {
    partitions_[i].directories.push_back(std::make_unique<Directory>(depths[i] - kPartitionBits));
    partitions_[i].directory.store(partitions_[i].directories.back().get(), std::memory_order_release);
  }
  for (const CountingPages::Page& page : pages) {
    Partition* const partition = PartitionOf(page.range.prefix);
    Publish(partition, page.place, page.range, !NextOf(page.place, *At(page.place)).is_null());
    ++partition->pages;
  }
  StoreRelease(&root_->used, used);
  return persistence()->Persist(&root_->used, sizeof(root_->used)) ? Status::OK() : persistence()->error();
}

}  // namespace braiddb
