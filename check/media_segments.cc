// The part of Media that reads the segment directories, and compares them with PMDK's heap.
#include <algorithm>
#include <map>

#include "check/media.h"
#include "pmem/layout_check.h"

namespace braiddb {

void Media::LoadDirectory(uint32_t region, Findings* findings) {
  if (roots_[region] == nullptr) return;
  const RegionRoot& root = *roots_[region];
  const RegionImage& image = *images_[region];
  const ObjectId* link = &root.directory;
  uint64_t blocks = 0;
  for (; link->offset != 0; ++blocks) {
    // The offset may be damaged, so it is checked before it becomes an address.
    const auto* const block = IsObject(region, *link, sizeof(DirectoryBlock) + kCacheLine)
                                  ? reinterpret_cast<const DirectoryBlock*>(image.base() + AlignToLine(link->offset))
                                  : nullptr;
    // The tag includes the number of the block, so a cycle is detected.
    if (block == nullptr || block->tag != DirectoryBlockTag(root.database_id, region, blocks, link->offset)) {
      findings->Add("the link to a block of the segment directory is damaged",
                    image.Place(static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(link) - image.base())));
      directories_are_sound_ = false;
      return;
    }
    for (const SegmentDescriptor& descriptor : block->descriptors) LoadDescriptor(region, descriptor, findings);
    if (std::any_of(std::begin(block->unused), std::end(block->unused), [](uint64_t word) { return word != 0; }))
      findings->Add("unused words are not zero", image.Place(AlignToLine(link->offset)) + ", block of the segment directory");
    link = &block->next;
  }
  if (blocks < root.directory_blocks) {
    findings->Add("blocks of the segment directory are lost", "root of region " + std::to_string(region));
    directories_are_sound_ = false;
  }
}

// Returns the id as PMDK's next open will complete it. PMDK stores the two words of an id one after the other, from a redo log.
// A crash in between leaves the log pending, and may leave the offset without the pool.
ObjectId Media::Complete(uint32_t region, const ObjectId& id) const {
  if (id.pool != 0 || id.offset == 0) return id;
  const PoolView pool(images_[region]->base(), images_[region]->bytes());
  return pool.RedoPending() ? ObjectId{pool.identity(), id.offset} : id;
}

void Media::LoadDescriptor(uint32_t region, const SegmentDescriptor& on_media, Findings* findings) {
  const RegionImage& image = *images_[region];
  SegmentDescriptor descriptor = on_media;
  descriptor.object = Complete(region, on_media.object);
  const auto state = static_cast<SegmentState>(descriptor.state_word & 0xff);
  const auto damaged = [&](const char* what) {
    const uint64_t offset = static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(&on_media) - image.base());
    findings->Add(what, image.Place(offset) + ", segment descriptor");
    directories_are_sound_ = false;
  };
  if (state > kLastSegmentState) return damaged("an impossible state of a segment");
  if (IsUsed(state) && (descriptor.entry_seed != 0) != (roots_[region]->secret != 0))
    return damaged("a seed of entries that is not of this version");
  if (descriptor.object.offset == 0) {
    // kUnused and kFree without an object: an allocation or a release was cut short, and the next open finishes it.
    if (state != SegmentState::kUnused && state != SegmentState::kFree) damaged("a segment without memory");
    return;
  }
  if (descriptor.state_word != SegmentStateWord(descriptor, state))
    return damaged("the checksum of a segment descriptor is wrong");
  if (descriptor.chunks == 0 || descriptor.chunks > image.bytes() / kChunkBytes ||
      !IsObject(region, descriptor.object, SegmentObjectBytes(descriptor.chunks))) {
    return damaged("a segment that is not inside the pool");
  }
  MediaSegment segment{.region = region,
                       .state = state,
                       .chunks = descriptor.chunks,
                       .object = descriptor.object.offset,
                       .data = SegmentDataOffset(descriptor),
                       .capacity = SegmentCapacity(descriptor)};
  if (segment.used()) {
    segment.generation = descriptor.generation;
    segment.entry_seed = EntrySeed(descriptor);
  }
  if (state == SegmentState::kSealed) {
    segment.sealed_bytes = descriptor.sealed_bytes;
    segment.sealed_last_sequence = descriptor.sealed_last_sequence;
    if (segment.sealed_bytes > segment.capacity) return damaged("a segment with more bytes of entries than it has room for");
  }
  if (segment.used() && segment.generation >= roots_[region]->generation_word >> 16)
    damaged("a segment with a generation that was never given out");
  segments_.push_back(segment);
  if (!segment.used()) return;
  const auto& header = *reinterpret_cast<const SegmentHeader*>(image.base() + SegmentHeaderOffset(descriptor));
  if (HoldsCopies(state) && header.magic == 0) return;  // a crash has cut a Discard short
  const std::string where = image.Place(SegmentHeaderOffset(descriptor)) + ", segment header";
  if (header.magic != SegmentHeader::kMagic || header.checksum != SegmentHeaderChecksum(header)) {
    findings->Add("a damaged segment header", where);
  } else if (header.database_id != roots_[region]->database_id || header.region != region ||
             header.generation != segment.generation || header.entry_seed != descriptor.entry_seed ||
             header.capacity != segment.capacity) {
    findings->Add("the header of another segment", where);
  } else if (header.mark != SegmentHeaderMark(header, roots_[region]->secret)) {
    findings->Add("a segment header without the mark of this database", where);
  }
}

void Media::CheckOverlap(Findings* findings) {
  std::sort(segments_.begin(), segments_.end(),
            [](const MediaSegment& a, const MediaSegment& b) { return a.start().raw() < b.start().raw(); });
  for (size_t i = 1; i < segments_.size(); ++i) {
    const MediaSegment& before = segments_[i - 1];
    if (segments_[i].region != before.region || segments_[i].data >= before.data + before.capacity) continue;
    findings->Add("two segments overlap", Place(segments_[i].start()));
    directories_are_sound_ = false;
  }
}

// Checks that every large object of PMDK's heap is a segment with the same chunks, and every segment is such an object. Small
// objects share runs; they are only checked to lie in a run. With a pending redo log the heap may be of before or after, so it
// is skipped.
void Media::CheckHeap(uint32_t region, Findings* findings) const {
  if (roots_[region] == nullptr || !directories_are_sound_) return;
  const RegionImage& image = *images_[region];
  const PoolView pool(image.base(), image.bytes());
  if (const char* damage = pool.FindLaneDamage()) {
    findings->Add(damage, image.directory() + ", lanes of the pool");
    return;
  }
  if (pool.RedoPending()) return;
  std::map<uint64_t, uint64_t> segments;  // chunks, by where they begin
  std::vector<uint64_t> small;
  for (const MediaSegment& segment : segments_) {
    if (segment.region == region) segments.emplace(segment.object - kObjectHeaderBytes, segment.chunks);
  }
  for (const ObjectId& id : roots_[region]->metadata) {
    if (id.offset != 0) small.push_back(id.offset);
  }
  for (const ObjectId* link = &roots_[region]->directory; link->offset != 0;) {
    small.push_back(link->offset);
    link = &reinterpret_cast<const DirectoryBlock*>(image.base() + AlignToLine(link->offset))->next;
  }
  const char* damage = pool.ForEachChunks([&](PoolView::Chunks kind, uint64_t offset, uint64_t chunks) {
    const bool run = kind == PoolView::Chunks::kRun;
    const auto lies_here = [&](uint64_t at) { return at >= offset && at < offset + chunks * kChunkBytes; };
    if (kind != PoolView::Chunks::kFree && std::erase_if(small, lies_here) > 0) return;
    const auto it = segments.find(offset);
    const bool ours = it != segments.end() && it->second == chunks;
    if (kind == PoolView::Chunks::kObject && !ours) {
      findings->Add("space that the heap has given away and that nothing uses", image.Place(offset),
                    "the data is intact; `braiddb repair` into a new database brings the space back");
    }
    if (kind == PoolView::Chunks::kObject && ours) segments.erase(it);
    if (run && it != segments.end()) findings->Add("a segment in memory of small objects", image.Place(offset));
  });
  if (damage != nullptr) {
    findings->Add(damage, image.directory() + ", heap of the pool");
    return;
  }
  for (const auto& [offset, chunks] : segments) findings->Add("a segment that the heap counts as free", image.Place(offset));
  for (const uint64_t offset : small) findings->Add("metadata that the heap counts as free", image.Place(offset));
}

}  // namespace braiddb
