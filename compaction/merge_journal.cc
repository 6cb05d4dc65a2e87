#include "compaction/merge_journal.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "pmem/layout.h"
#include "util/check.h"
#include "util/sync_point.h"

namespace braiddb {

struct MergeJournal::Header {
  uint64_t checksum;  // XXH3 of the rest of the header and of the stores
  uint64_t merge_id;
  uint64_t number;
  uint64_t count;
  uint64_t progress;  // PmPtr
  uint64_t reserved[3];

  uint64_t ComputeChecksum() const {
    return XXH3_64bits(&merge_id, sizeof(Header) - offsetof(Header, merge_id) + count * sizeof(JournalStore));
  }
};

namespace {

constexpr uint64_t kBeginning = kCacheLine;  // size of the line that holds the word `begun`
constexpr uint64_t kBufferBytes = 64 + kJournalStores * sizeof(JournalStore);
constexpr uint64_t kJournalBytes = kBeginning + 2 * kBufferBytes;
static_assert(kJournalBytes + kCacheLine <= kChunkBytes - kObjectHeaderBytes);

// Size of each of the two buffers in a journal of `bytes` bytes.
uint64_t BufferBytesOf(uint64_t bytes) { return (bytes - kBeginning) / 2 / kCacheLine * kCacheLine; }

// The stored form of a batch number. 0 means that no batch was begun, as in a zeroed allocation.
uint64_t EncodeBegun(uint64_t number) { return number == 0 ? 0 : number << 16 | (XXH3_64bits(&number, sizeof(number)) & 0xffff); }

}  // namespace

Status MergeJournal::Create(RegionSet* regions) {
  static_assert(sizeof(Header) == 64);
  void* object = nullptr;
  // The allocation is zeroed. Both buffers are invalid, because the checksum of a zeroed header is not zero.
  return regions->AllocateMetadata(0, MetadataSlot::kMergeJournal, kJournalBytes, &object);
}

// The object may be larger than kJournalBytes, if an older version created it. Its size determines the buffers.
Status MergeJournal::Open(RegionSet* regions, MergeJournal* journal) {
  uint64_t bytes = 0;
  void* object = regions->Metadata(0, MetadataSlot::kMergeJournal, &bytes);
  if (object == nullptr || bytes < kJournalBytes) {
    return Status::Corruption("the merge journal is missing; restore the database from a copy");
  }
  journal->regions_ = regions;
  journal->object_ = static_cast<uint8_t*>(object);
  journal->bytes_ = bytes;
  return Status::OK();
}

uint8_t* MergeJournal::Buffer(uint64_t number) const {
  return object_ + kBeginning + (BRAIDDB_MUTANT("journal-one-buffer") ? 0 : number % 2) * BufferBytesOf(bytes_);
}

// Writes the record into the buffer that holds the batch before the previous one. That batch and the previous batch are durable,
// so the overwritten record is not needed.
Status MergeJournal::Apply(const std::vector<JournalStore>& stores, PmPtr progress, uint64_t* flushed_lines) {
  BRAIDDB_CHECK(!stores.empty() && stores.size() <= kJournalStores);
  auto* header = reinterpret_cast<Header*>(Buffer(number_ + 1));
  memcpy(header + 1, stores.data(), stores.size() * sizeof(JournalStore));
  *header = Header{0, merge_id_, number_ + 1, stores.size(), progress.raw(), {}};
  header->checksum = header->ComputeChecksum();
  const uint64_t bytes = sizeof(Header) + stores.size() * sizeof(JournalStore);
  *flushed_lines += bytes / kCacheLine + 1;
  // ORDER: the whole record before the first of its stores. [CC-4]
  const uint64_t flushed = BRAIDDB_MUTANT("journal-flush-too-short") ? sizeof(Header) : bytes;
  if (!BRAIDDB_MUTANT("journal-not-flushed")) regions_->persistence()->Flush(header, flushed);
  if (!BRAIDDB_MUTANT("journal-not-fenced") && !regions_->persistence()->Drain()) return regions_->persistence()->error();
  ++number_;
  BRAIDDB_SYNC_POINT("MergeJournal::Apply:Recorded");
  Status status = Do(number_, stores.data(), stores.size(), flushed_lines);
  BRAIDDB_SYNC_POINT("MergeJournal::Apply:Done");
  return status;
}

// The stores become visible one by one, in order, each with release. A reader that acquires a pointer sees all earlier stores of
// the batch. After a crash any subset of the stores may be durable; the redo repeats all of them.
Status MergeJournal::Do(uint64_t number, const JournalStore* stores, uint64_t count, uint64_t* flushed_lines) {
  StoreRelease(reinterpret_cast<uint64_t*>(object_), EncodeBegun(number));
  for (uint64_t i = 0; i < count; ++i) StoreRelease(regions_->Resolve<uint64_t>(PmPtr(stores[i].address)), stores[i].value);
  Persistence* persistence = regions_->persistence();
  persistence->Flush(object_, sizeof(uint64_t));
  uint64_t last_line = UINT64_MAX;
  for (uint64_t i = 0; i < count; ++i) {
    // The words of one tower are consecutive in the list. Flush a line once for consecutive stores.
    const uint64_t line = stores[i].address / kCacheLine;
    if (line == last_line) continue;
    last_line = line;
    const uint64_t wrong = BRAIDDB_MUTANT("merge-flushes-next-line") ? kCacheLine : 0;
    if (BRAIDDB_MUTANT("merge-not-flushed")) continue;
    persistence->Flush(regions_->Resolve(PmPtr(stores[i].address + wrong)), sizeof(uint64_t));
    ++*flushed_lines;
  }
  // ORDER: this batch's stores before the next record, which overwrites the buffer of the previous batch. [CC-4]
  if (!BRAIDDB_MUTANT("merge-not-fenced") && !persistence->Drain()) return persistence->error();
  return Status::OK();
}

// Reads the journal without changing it. Also used on a private mapping, by a check of the files.
Status MergeJournal::FindNewest(const void* object, uint64_t bytes, uint64_t merge_id, JournalBatch* newest,
                                uint64_t* last_number) {
  *newest = JournalBatch();
  *last_number = 0;
  if (object == nullptr || bytes < kJournalBytes) {
    return Status::Corruption("the merge journal is missing; restore the database from a copy");
  }
  const uint64_t begun_word = LoadRelaxed(static_cast<const uint64_t*>(object));
  const uint64_t begun = begun_word >> 16;
  const uint64_t buffer_bytes = BufferBytesOf(bytes);
  for (uint64_t buffer = 0; buffer < 2; ++buffer) {
    const auto* header =
        reinterpret_cast<const Header*>(static_cast<const uint8_t*>(object) + kBeginning + buffer * buffer_bytes);
    if (header->count == 0 || header->count > (buffer_bytes - sizeof(Header)) / sizeof(JournalStore)) continue;
    if (header->checksum != header->ComputeChecksum() && !BRAIDDB_MUTANT("redo-trusts-torn-record")) continue;
    // A number is never used again after a store of its batch was begun. So a stale buffer is never taken for the newest batch.
    *last_number = std::max(*last_number, header->number);
    if (merge_id == 0 || header->merge_id != merge_id || header->number < newest->number) continue;
    *newest = {header->number, reinterpret_cast<const JournalStore*>(header + 1), header->count, PmPtr(header->progress)};
  }
  // `begun` has its own checksum bits. A mismatch, or a number larger than that of any valid record, means that a record was lost
  // after its stores were begun. If a merge was running, the state of its level is unknown.
  const bool damaged = begun_word != EncodeBegun(begun) || begun > *last_number;
  *last_number = std::max(*last_number, begun);
  if (!damaged || merge_id == 0) return Status::OK();
  return Status::Corruption("the merge journal is damaged, and a merge was running; restore the database from a copy");
}

// 1. Find the newest valid batch of the running merge.
// 2. Continue its numbering, also if no merge is running.
// 3. Check that all its addresses lie inside the regions.
// 4. Make the record durable, and repeat its stores.
// A crash in step 4 leaves the record in place, so the next open repeats the same stores.
Status MergeJournal::Redo(uint64_t merge_id, PmPtr* progress) {
  JournalBatch batch;
  uint64_t last_number = 0;
  if (Status status = FindNewest(object_, bytes_, merge_id, &batch, &last_number); !status.ok()) return status;
  if (!BRAIDDB_MUTANT("journal-numbers-restart")) number_ = std::max(number_, last_number);
  merge_id_ = merge_id;
  *progress = batch.progress;
  if (batch.count == 0) return Status::OK();
  for (uint64_t i = 0; i < batch.count; ++i) {
    if (!regions_->Contains(PmPtr(batch.stores[i].address), sizeof(uint64_t))) {
      return Status::Corruption("the merge journal points outside the database; restore it from a copy");
    }
  }
  if (BRAIDDB_MUTANT("redo-forgets-progress")) *progress = PmPtr();
  if (BRAIDDB_MUTANT("redo-left-out")) return Status::OK();
  if (BRAIDDB_MUTANT("redo-not-persisted")) {
    for (uint64_t i = 0; i < batch.count; ++i)
      StoreRelease(regions_->Resolve<uint64_t>(PmPtr(batch.stores[i].address)), batch.stores[i].value);
    return Status::OK();
  }
  // ORDER: the record before the first of its stores. A record that recovery reads may still be only in the CPU cache. [CC-4,
  // CC-46]
  Persistence* const persistence = regions_->persistence();
  const void* const record = reinterpret_cast<const Header*>(batch.stores) - 1;
  if (!BRAIDDB_MUTANT("found-record-not-persisted") &&
      !persistence->Persist(record, sizeof(Header) + batch.count * sizeof(JournalStore))) {
    return persistence->error();
  }
  uint64_t flushed_lines = 0;
  return Do(batch.number, batch.stores, batch.count, &flushed_lines);
}

}  // namespace braiddb
