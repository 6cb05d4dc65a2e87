#include "pmem/segment_directory.h"

#include <algorithm>

#include "pmem/layout_check.h"
#include "pmem/region_set.h"
#include "util/check.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

constexpr uint64_t kGenerationsAtOnce = 64;  // generations that one persist reserves

}  // namespace

SegmentState SegmentDirectory::StateOf(const SegmentDescriptor& descriptor) {
  return static_cast<SegmentState>(LoadRelaxed(&descriptor.state_word) & 0xff);
}

uint64_t SegmentDirectory::DataOffsetOf(const SegmentDescriptor& descriptor) { return SegmentDataOffset(descriptor); }

uint64_t SegmentDirectory::CapacityOf(const SegmentDescriptor& descriptor) { return SegmentCapacity(descriptor); }

SegmentHeader* SegmentDirectory::HeaderOf(const SegmentDescriptor& descriptor) const {
  BRAIDDB_DCHECK(descriptor.object.offset != 0);
  return reinterpret_cast<SegmentHeader*>(region_->base() + SegmentHeaderOffset(descriptor));
}

Status SegmentDirectory::Damaged(const char* what) const {
  return Status::Corruption("region " + std::to_string(region_->index()) + " (" + region_->files()->directory() + ") has " +
                            what + " in its segment directory; restore the region's files from a backup");
}

// ---- Reading

// STEPS  1 follow the blocks, check each link by its tag, and each descriptor  2 compare the number of blocks with the root's
//        count  3 read the generation limit  4 check generations and overlaps. In a region that is open for reading only, ids
//        are completed first.
Status SegmentDirectory::Load(std::vector<SegmentDescriptor*>* descriptors) {
  RegionRoot* const root = region_->root();
  last_link_ = &root->directory;
  while (last_link_->offset != 0) {
    region_->CompleteId(last_link_);
    if (!region_->IsValidObject(*last_link_, sizeof(DirectoryBlock) + kCacheLine)) return Damaged("a damaged link");
    DirectoryBlock* const block = BlockAt(last_link_->offset);
    if (block->tag != BlockTag(block_count_, last_link_->offset)) return Damaged("a damaged link");
    for (SegmentDescriptor& descriptor : block->descriptors) {
      region_->CompleteId(&descriptor.object);
      if (Status status = Check(descriptor); !status.ok()) return status;
      descriptors->push_back(&descriptor);
    }
    last_link_ = &block->next;
    ++block_count_;  // the tag includes the number, so a cycle is detected as a damaged link
  }
  if (block_count_ < root->directory_blocks) return Damaged("a lost block");
  if (Status status = region_->RaiseGenerationLimit(0, &generation_limit_); !status.ok()) return status;
  next_generation_ = generation_limit_;
  if (Status status = CheckGenerations(*descriptors); !status.ok()) return status;
  return CheckOverlap(*descriptors);
}

// A descriptor without an object needs no matching hash: Take and Return leave such words behind in a crash.
Status SegmentDirectory::Check(const SegmentDescriptor& descriptor) const {
  const uint64_t word = descriptor.state_word;
  const SegmentState state = StateOf(descriptor);
  if (state > kLastSegmentState) return Damaged("an impossible state");
  if (descriptor.object.offset == 0) {
    return state == SegmentState::kUnused || state == SegmentState::kFree ? Status::OK() : Damaged("a segment without memory");
  }
  if (word != SegmentStateWord(descriptor, state)) return Damaged("a descriptor with a wrong checksum");
  if (descriptor.chunks == 0 || descriptor.chunks > region_->reserved_bytes() / kChunkBytes ||
      !region_->IsValidObject(descriptor.object, SegmentObjectBytes(descriptor.chunks))) {
    return Damaged("a segment that is not inside the pool");
  }
  if (state == SegmentState::kSealed && descriptor.sealed_bytes > CapacityOf(descriptor)) return Damaged("an impossible size");
  return state == SegmentState::kOpen || state == SegmentState::kIndex ? CheckHeader(descriptor) : Status::OK();
}

// Compares the header with the descriptor. Called for kOpen and kIndex only: the headers of sealed segments would cost a page
// read each, and their entries have checksums of their own.
Status SegmentDirectory::CheckHeader(const SegmentDescriptor& descriptor) const {
  const SegmentHeader& header = *HeaderOf(descriptor);
  if (header.magic != SegmentHeader::kMagic || header.checksum != SegmentHeaderChecksum(header))
    return Damaged("a damaged segment header");
  if (header.database_id != region_->database_id() || header.region != region_->index() ||
      header.generation != descriptor.generation || header.entry_seed != descriptor.entry_seed ||
      header.capacity != CapacityOf(descriptor) || header.mark != SegmentHeaderMark(header, region_->root()->secret)) {
    return Damaged("a segment header of another segment");
  }
  return Status::OK();
}

// Each use has a generation below the durable limit (CC-33), so a larger one is damage.
Status SegmentDirectory::CheckGenerations(const std::vector<SegmentDescriptor*>& descriptors) const {
  for (const SegmentDescriptor* descriptor : descriptors) {
    if (IsUsed(StateOf(*descriptor)) && descriptor->generation >= generation_limit_)
      return Damaged("a generation that was never given out");
  }
  return Status::OK();
}

// Sorts the objects by offset and compares neighbours.
Status SegmentDirectory::CheckOverlap(const std::vector<SegmentDescriptor*>& descriptors) const {
  std::vector<const SegmentDescriptor*> taken;
  for (const SegmentDescriptor* descriptor : descriptors) {
    if (descriptor->object.offset != 0) taken.push_back(descriptor);
  }
  std::sort(taken.begin(), taken.end(), [](auto* a, auto* b) { return a->object.offset < b->object.offset; });
  for (size_t i = 1; i < taken.size(); ++i) {
    if (taken[i]->object.offset < taken[i - 1]->object.offset + SegmentObjectBytes(taken[i - 1]->chunks)) {
      return Damaged("two segments that overlap");
    }
  }
  return Status::OK();
}

// ---- Changing

void SegmentDirectory::StoreStateWord(SegmentDescriptor* descriptor, uint64_t word) {
  if (BRAIDDB_MUTANT("state-word-torn"))
    StoreRelaxed(&descriptor->state_word, descriptor->state_word >> 32 << 32 | (word & UINT32_MAX));
  StoreRelease(&descriptor->state_word, word);  // release: for a reader of StateOf in another thread, as in tests
  if (!BRAIDDB_MUTANT("state-word-not-flushed")) region_->persistence()->Flush(&descriptor->state_word, sizeof(uint64_t));
}

Status SegmentDirectory::PersistStateWord(SegmentDescriptor* descriptor, uint64_t word) {
  StoreStateWord(descriptor, word);
  return region_->persistence()->Drain() ? Status::OK() : region_->persistence()->error();
}

Status SegmentDirectory::PersistFound(const std::vector<SegmentDescriptor*>& descriptors) {
  Persistence* const persistence = region_->persistence();
  persistence->Flush(&region_->root()->directory_blocks, sizeof(uint64_t));
  for (const SegmentDescriptor* descriptor : descriptors) persistence->Flush(descriptor, sizeof(*descriptor));
  // ORDER: the states that were found before the stores that the open makes because of them. [CC-46]
  return persistence->Drain() ? Status::OK() : persistence->error();
}

// kUnused with an object: Take was cut short after PMDK's commit, so the segment becomes kFree. A state word without an object:
// Take was cut short before the commit, or Return behind it, so the slot becomes unused.
Status SegmentDirectory::Finish(SegmentDescriptor* descriptor, uint64_t max_kept_chunks) {
  const SegmentState state = StateOf(*descriptor);
  if (descriptor->object.offset == 0) {
    return descriptor->state_word == 0 || BRAIDDB_MUTANT("return-not-finished") ? Status::OK() : PersistStateWord(descriptor, 0);
  }
  if (state == SegmentState::kUnused && !BRAIDDB_MUTANT("allocation-not-finished")) {
    if (Status status = Free(descriptor); !status.ok()) return status;
  }
  if (StateOf(*descriptor) != SegmentState::kFree || descriptor->chunks <= max_kept_chunks) return Status::OK();
  // ORDER: blocks for all pages before PMDK may use them. Without space the segment stays kFree. [CC-66]
  const uint64_t data = DataOffsetOf(*descriptor);
  if (region_->files()->has_free_holes()) {
    const Status taken = region_->TakeBlocks(PagesInside(data, data + CapacityOf(*descriptor)));
    if (!taken.ok()) return taken.IsNoSpace() ? Status::OK() : taken;
  }
  return Return(descriptor);
}

uint64_t SegmentDirectory::BlockTag(uint64_t number, uint64_t object_offset) const {
  return DirectoryBlockTag(region_->database_id(), region_->index(), number, object_offset);
}

DirectoryBlock* SegmentDirectory::BlockAt(uint64_t object_offset) const {
  BRAIDDB_DCHECK(object_offset != 0);
  return reinterpret_cast<DirectoryBlock*>(region_->base() + AlignToLine(object_offset));
}

// CRASH  before PMDK's commit: no block. After it: the block is linked, and the count is too small by one, which is legal.
Status SegmentDirectory::AddBlock(std::vector<SegmentDescriptor*>* descriptors) {
  BRAIDDB_DCHECK(last_link_ != nullptr);
  Persistence* const persistence = region_->persistence();
  const auto write_tag = [&](uint8_t* object) {
    const uint64_t offset = static_cast<uint64_t>(object - region_->base());
    DirectoryBlock* const block = BlockAt(offset);
    block->tag = BlockTag(block_count_, offset);
    // ORDER: the tag before the link, which PMDK commits. [CC-34]
    return BRAIDDB_MUTANT("block-tag-not-flushed") || persistence->Persist(&block->tag, sizeof(block->tag));
  };
  if (BRAIDDB_MUTANT("block-count-first")) {
    StoreRelaxed(&region_->root()->directory_blocks, block_count_ + 1);
    persistence->Flush(&region_->root()->directory_blocks, sizeof(uint64_t));  // before PMDK's fences
  }
  // An object starts at a multiple of 16. Another 64 bytes leave room to align the block to a line.
  Status status =
      region_->AllocateObject(last_link_, sizeof(DirectoryBlock) + kCacheLine, PoolObject::kDirectoryBlock, write_tag);
  if (!status.ok()) return status;
  DirectoryBlock* const block = BlockAt(last_link_->offset);
  last_link_ = &block->next;
  ++block_count_;
  for (SegmentDescriptor& descriptor : block->descriptors) descriptors->push_back(&descriptor);
  // ORDER: the link before the count, so that the count is never larger than the number of linked blocks. [CC-34]
  RegionRoot* const root = region_->root();
  StoreRelaxed(&root->directory_blocks, block_count_);
  return persistence->Persist(&root->directory_blocks, sizeof(uint64_t)) ? Status::OK() : persistence->error();
}

// CRASH  after the persist: the generations up to the limit are skipped; none is used twice. [CC-33]
Status SegmentDirectory::ReserveGenerations() {
  if (next_generation_ != generation_limit_) return Status::OK();
  Status status = region_->RaiseGenerationLimit(kGenerationsAtOnce, &next_generation_);
  if (status.ok()) generation_limit_ = next_generation_ + kGenerationsAtOnce;
  return status;
}

Status SegmentDirectory::NextGeneration(uint64_t* generation) {
  if (Status status = ReserveGenerations(); !status.ok()) return status;
  BRAIDDB_DCHECK(next_generation_ < generation_limit_);
  *generation = next_generation_++;
  return Status::OK();
}

// The system draws each seed. The seeds of a generator would be predictable from earlier ones, which a copy of the files
// reveals.
uint64_t SegmentDirectory::NewEntrySeed() const {
  return region_->root()->secret == 0 ? 0 : RegionSet::NewDatabaseId() | kEntrySeedBit;
}

// CRASH  after the persist: a state word without an object; Finish clears it. After PMDK's commit: kUnused with an object;
//        Finish makes it kFree. [CC-35]
Status SegmentDirectory::Take(SegmentDescriptor* descriptor, uint64_t chunks) {
  Persistence* const persistence = region_->persistence();
  if (persistence->failed()) return persistence->error();  // a failed allocation may have left the slot half changed
  BRAIDDB_CHECK(descriptor->state_word == 0 && descriptor->object.offset == 0);
  BRAIDDB_DCHECK(chunks > 0);
  descriptor->chunks = chunks;
  descriptor->state_word = SegmentStateWord(*descriptor, SegmentState::kUnused);
  // ORDER: the size and the mark of an allocation before the object, which PMDK commits. [CC-35]
  if (!BRAIDDB_MUTANT("take-not-announced") && !persistence->Persist(descriptor, sizeof(*descriptor))) {
    descriptor->state_word = 0;  // unused again, for later calls in this process; on media either word is legal
    return persistence->error();
  }
  Status status = region_->AllocateObject(&descriptor->object, SegmentObjectBytes(chunks), PoolObject::kSegment);
  if (!status.ok()) (void)PersistStateWord(descriptor, 0);
  return status;
}

// CRASH  before the state word is durable: the segment is kFree or taken, whatever header and fields have. After it: in use.
//        [CC-36]
Status SegmentDirectory::Open(SegmentDescriptor* descriptor, uint64_t generation, SegmentState state) {
  BRAIDDB_CHECK(IsUsed(state) && StateOf(*descriptor) <= SegmentState::kFree && descriptor->object.offset != 0);
  Persistence* const persistence = region_->persistence();
  SegmentHeader* const header = HeaderOf(*descriptor);
  *header = SegmentHeader{.magic = SegmentHeader::kMagic,
                          .database_id = region_->database_id(),
                          .region = region_->index(),
                          .unused0 = 0,
                          .generation = generation,
                          .capacity = CapacityOf(*descriptor),
                          .checksum = 0,
                          .entry_seed = NewEntrySeed(),
                          .mark = 0};
  header->checksum = SegmentHeaderChecksum(*header);
  header->mark = SegmentHeaderMark(*header, region_->root()->secret);
  BRAIDDB_DCHECK(generation < generation_limit_ && header->capacity > 0);
  descriptor->generation = generation;
  if (!BRAIDDB_MUTANT("entry-seed-after-state")) descriptor->entry_seed = header->entry_seed;
  if (!BRAIDDB_MUTANT("segment-header-not-flushed")) persistence->Flush(header, sizeof(*header));
  persistence->Flush(descriptor, sizeof(*descriptor));
  // ORDER: header, generation and seed before the state that makes them count. [CC-36]
  if (!BRAIDDB_MUTANT("segment-header-not-fenced") && !persistence->Drain()) return persistence->error();
  if (BRAIDDB_MUTANT("entry-seed-after-state")) {
    SegmentDescriptor opened = *descriptor;
    opened.entry_seed = header->entry_seed;
    if (Status status = PersistStateWord(descriptor, SegmentStateWord(opened, state)); !status.ok()) return status;
    descriptor->entry_seed = header->entry_seed;
    return persistence->Persist(descriptor, sizeof(*descriptor)) ? Status::OK() : persistence->error();
  }
  return PersistStateWord(descriptor, SegmentStateWord(*descriptor, state));
}

// The fields have no meaning in the present state, so a crash before SealPrepared leaves an open segment.
void SegmentDirectory::PrepareSeal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence) {
  const SegmentState state = StateOf(*descriptor);
  BRAIDDB_CHECK((state == SegmentState::kOpen || HoldsCopies(state)) && valid_bytes <= CapacityOf(*descriptor));
  descriptor->sealed_bytes = valid_bytes;
  descriptor->sealed_last_sequence = last_sequence;
  region_->persistence()->Flush(descriptor, sizeof(*descriptor));
}

void SegmentDirectory::SealPrepared(SegmentDescriptor* descriptor) {
  BRAIDDB_DCHECK(StateOf(*descriptor) == SegmentState::kOpen || HoldsCopies(StateOf(*descriptor)));
  StoreStateWord(descriptor, SegmentStateWord(*descriptor, SegmentState::kSealed));
}

Status SegmentDirectory::Seal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence) {
  Persistence* const persistence = region_->persistence();
  PrepareSeal(descriptor, valid_bytes, last_sequence);
  // ORDER: size and sequence number before the state that makes them count. [CC-36]
  if (!BRAIDDB_MUTANT("seal-in-one-persist") && !persistence->Drain()) return persistence->error();
  SealPrepared(descriptor);
  return persistence->Drain() ? Status::OK() : persistence->error();
}

Status SegmentDirectory::EraseHeader(SegmentDescriptor* descriptor) {
  Persistence* const persistence = region_->persistence();
  if (persistence->failed()) return persistence->error();  // a failed Seal may be durable, and a sealed segment needs its header
  SegmentHeader* const header = HeaderOf(*descriptor);
  header->magic = 0;
  // ORDER: the cleared header before the state kFree, so that a repair does not take the copies for a log. [CC-47]
  return persistence->Persist(header, sizeof(*header)) ? Status::OK() : persistence->error();
}

Status SegmentDirectory::Free(SegmentDescriptor* descriptor) {
  BRAIDDB_CHECK(StateOf(*descriptor) != SegmentState::kFree && descriptor->object.offset != 0);
  return PersistStateWord(descriptor, SegmentStateWord(*descriptor, SegmentState::kFree));
}

// CRASH  after PMDK's commit: kFree without an object; Finish clears the slot. [CC-35]
Status SegmentDirectory::Return(SegmentDescriptor* descriptor) {
  if (region_->persistence()->failed()) return region_->persistence()->error();
  BRAIDDB_CHECK(StateOf(*descriptor) == SegmentState::kFree && descriptor->object.offset != 0);
  if (BRAIDDB_MUTANT("return-slot-first")) {
    if (Status status = PersistStateWord(descriptor, 0); !status.ok()) return status;
  }
  region_->FreeObject(&descriptor->object);
  // ORDER: PMDK frees the object before the slot counts as unused. [CC-35]
  return PersistStateWord(descriptor, 0);
}

}  // namespace braiddb
