#include "lsm/manifest.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lsm/manifest_record.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/random.h"

namespace braiddb {
namespace {

uint64_t WholeLines(uint64_t bytes) { return (bytes + kCacheLine - 1) & ~(kCacheLine - 1); }

// Slot size of a new MANIFEST. It is small in crash tests, so that these exercise growth.
uint64_t SlotBytes(uint32_t regions) {
  constexpr uint64_t kTables = kCrashTest ? 3 : 18;
  return WholeLines(sizeof(ManifestRecord) + kTables * ManifestTableBytes(regions));
}

// Bounds the size of one object; readers of live databases refuse larger ones.
constexpr uint64_t kMaxSlotBytes = (32ull << 20) - kCacheLine;

// The slot of a generation.
uint64_t SlotOf(uint64_t generation) { return BRAIDDB_MUTANT("manifest-one-slot") ? 0 : generation % 2; }

}  // namespace

Status Manifest::Create(RegionSet* regions, const ManifestState& state) {
  void* object = nullptr;
  const uint64_t slot_bytes = SlotBytes(regions->count());
  const uint64_t bytes = sizeof(ManifestHeader) + 2 * slot_bytes;
  Status status = regions->AllocateMetadata(0, MetadataSlot::kManifest, bytes, &object);
  if (!status.ok()) return status;
  Manifest manifest;
  manifest.regions_ = regions;
  manifest.Use(0, object, slot_bytes, 0);
  status = manifest.Commit(state);
  if (!status.ok()) return status;
  auto* header = static_cast<ManifestHeader*>(object);
  header->slot_bytes = slot_bytes;
  // ORDER: a valid slot and selector before the magic, without which there is no MANIFEST. [CC-2]
  if (!regions->persistence()->Persist(header, sizeof(*header))) return regions->persistence()->error();
  StoreRelease(&header->magic, ManifestHeader::kMagic);
  if (!regions->persistence()->Persist(header, sizeof(*header))) return regions->persistence()->error();
  return Status::OK();
}

void Manifest::Use(size_t place, void* object, uint64_t slot_bytes, uint64_t generation) {
  place_ = place;
  object_ = static_cast<uint8_t*>(object);
  slot_bytes_ = slot_bytes;
  generation_ = generation;
}

// Checks the magic and the sizes, so that both slots lie within the object, before it decodes a slot.
Status Manifest::Read(const void* object, uint64_t bytes, uint32_t regions, ManifestState* state, uint64_t* generation) {
  const auto* header = static_cast<const ManifestHeader*>(object);
  if (object == nullptr || bytes < sizeof(*header)) return DamagedManifest("it is missing");
  if (header->magic != ManifestHeader::kMagic) return DamagedManifest("it has no signature");
  const bool known_size = header->slot_bytes >= sizeof(ManifestRecord) && header->slot_bytes <= bytes &&
                          bytes == sizeof(*header) + 2 * header->slot_bytes;
  if (!known_size) return DamagedManifest("wrong size");
  const auto slot = [&](uint64_t number) {
    return static_cast<const uint8_t*>(object) + sizeof(*header) + SlotOf(number) * header->slot_bytes;
  };
  *generation = header->selector;
  Status status = DecodeManifest(slot(*generation), header->slot_bytes, *generation, regions, state);
  if (!status.ok()) return status;
  // A slot that passed P1 counts even if the selector does not name it. A selector that went back after P2 therefore cannot
  // restore an old state.
  ManifestState next;
  if (!DecodeManifest(slot(*generation + 1), header->slot_bytes, *generation + 1, regions, &next).ok()) return Status::OK();
  *state = std::move(next);
  ++*generation;
  return Status::OK();
}

// Two valid objects have the same contents (GROWTH), so one valid object is enough.
Status Manifest::ReadNewest(const ManifestObject (&objects)[2], uint32_t regions, ManifestState* state, uint64_t* generation,
                            size_t* which) {
  Status found = DamagedManifest("it is missing");
  bool is_there = false;
  bool is_sound = false;
  for (size_t i = 0; i < 2; ++i) {
    if (objects[i].data == nullptr) continue;
    ManifestState one;
    uint64_t number = 0;
    Status status = Read(objects[i].data, objects[i].bytes, regions, &one, &number);
    if (status.ok() && (!is_sound || number > *generation)) {
      *state = std::move(one);
      *generation = number;
      *which = i;
      is_sound = true;
    }
    if (!std::exchange(is_there, true)) found = std::move(status);
  }
  return is_sound ? Status::OK() : found;
}

// STEPS  1. Read both objects and choose the newest valid state.  2. Persist its slot.  3. Persist the selector (P2).  4. Clear
//        the checksum of a torn commit (P0).  5. Free the other object (G4).
// CRASH  After each step the same state is chosen again, because each step keeps the chosen slot valid.
Status Manifest::Open(RegionSet* regions, Manifest* manifest, ManifestState* state) {
  ManifestObject objects[2];
  for (size_t i = 0; i < 2; ++i) objects[i].data = regions->Metadata(0, kManifestPlaces[i], &objects[i].bytes);
  uint64_t generation = 0;
  size_t place = 0;
  Status status = ReadNewest(objects, regions->count(), state, &generation, &place);
  if (!status.ok()) return status;
  auto* header = static_cast<ManifestHeader*>(const_cast<void*>(objects[place].data));
  manifest->regions_ = regions;
  manifest->Use(place, header, header->slot_bytes, generation);
  manifest->is_clean_ = state->clean;
  // ORDER: the slot that counts before the selector that names it, and the selector before the next commit overwrites the slot
  // that it named before. After a killed process, a slot that can be read is not necessarily durable. If the selector names the
  // slot already, the slot was durable when the selector was stored, so one fence is enough. [CC-2, CC-46]
  const uint8_t* const slot = manifest->SlotAt(generation);
  Persistence* const persistence = regions->persistence();
  if (!BRAIDDB_MUTANT("found-manifest-not-persisted"))
    persistence->Flush(slot, reinterpret_cast<const ManifestRecord*>(slot)->bytes);
  if (header->selector != generation && !persistence->Drain()) return persistence->error();
  status = manifest->Select(generation);
  if (status.ok()) status = manifest->ForgetTornCommit();
  if (!status.ok() || objects[1 - place].data == nullptr) return status;
  // ORDER: the magic of the object that counts before the other object is freed. [CC-2, CC-46]
  if (!persistence->Persist(header, sizeof(*header))) return persistence->error();
  return regions->FreeMetadata(0, kManifestPlaces[1 - place]);
}

// The next commit has the generation of the torn one, goes to the same slot, and has nearly the same bytes. If it is torn as
// well, its lines could complete the lines of the first one to a valid record. Clearing the checksum durably prevents this.
Status Manifest::ForgetTornCommit() {
  auto* slot = reinterpret_cast<ManifestRecord*>(SlotAt(generation_ + 1));
  // If the other slot holds the previous generation completely, no commit was torn.
  ManifestState before;
  if (DecodeManifest(SlotAt(generation_ + 1), slot_bytes_, generation_ - 1, regions_->count(), &before).ok()) return Status::OK();
  StoreRelease(&slot->checksum, 0);
  // ORDER: the cleared checksum before the stores of the next commit. [CC-2]
  Persistence* persistence = regions_->persistence();
  return persistence->Persist(&slot->checksum, sizeof(slot->checksum)) ? Status::OK() : persistence->error();
}

uint8_t* Manifest::SlotAt(uint64_t generation) const {
  return object_ + sizeof(ManifestHeader) + SlotOf(generation) * slot_bytes_;
}

uint64_t Manifest::stamp() const {
  const auto* const record = reinterpret_cast<const ManifestRecord*>(SlotAt(generation_));
  return record->checksum ^ Mix64(LoadRelaxed(&reinterpret_cast<const ManifestHeader*>(object_)->stamp_seed));
}

bool Manifest::DrawStamp() {
  Persistence* const persistence = regions_->persistence();
  uint64_t* const seed = &reinterpret_cast<ManifestHeader*>(object_)->stamp_seed;
  StoreRelease(seed, RegionSet::NewDatabaseId());
  return persistence->mode() == PersistMode::kPage || persistence->Persist(seed, sizeof(*seed));
}

uint64_t Manifest::bytes() const { return sizeof(ManifestHeader) + 2 * slot_bytes_; }

// Size of a record for `state` with `room`. A family that already has a table of copies needs no room for another one.
uint64_t Manifest::BytesFor(const ManifestState& state, Room room) const {
  const uint64_t families = 1 + state.families.size();
  const auto copies = static_cast<uint64_t>(
      std::count_if(state.tables.begin(), state.tables.end(), [](const auto& table) { return table.id == kRelocationId; }));
  uint64_t tables = room == Room::kNone ? 0 : families - std::min(families, copies);
  if (room == Room::kCopiesAndFlush) tables += families;
  return ManifestRecordBytes(state, regions_->count()) + tables * ManifestTableBytes(regions_->count());
}

bool Manifest::Fits(const ManifestState& state, Room room) const { return BytesFor(state, room) <= slot_bytes_; }

Status Manifest::Reserve(const ManifestState& state, Room room) {
  const uint64_t bytes = BytesFor(state, room);
  return bytes <= slot_bytes_ ? Status::OK() : Grow(bytes);
}

// Doubles the slot size, so that the total cost of growth is proportional to the final size.
Status Manifest::Grow(uint64_t least_slot_bytes) {
  const uint64_t least = WholeLines(least_slot_bytes);
  if (least > kMaxSlotBytes) return Status::NoSpace("the MANIFEST has reached its largest size; drop column families");
  Status status = MoveTo(1 - place_, std::min(kMaxSlotBytes, std::max(least, 2 * slot_bytes_)));
  if (status.IsNoSpace() && least < 2 * slot_bytes_) status = MoveTo(1 - place_, least);
  return status;
}

// STEPS G1 to G4 of GROWTH (manifest.h). The copy has its own generation, which tells it from the original.
Status Manifest::MoveTo(size_t place, uint64_t slot_bytes) {
  Persistence* const persistence = regions_->persistence();
  if (persistence->failed()) return persistence->error();
  void* object = nullptr;
  Status status = regions_->AllocateMetadata(0, kManifestPlaces[place], sizeof(ManifestHeader) + 2 * slot_bytes, &object);  // G1
  if (!status.ok()) return status;
  const size_t old_place = place_;
  const uint64_t generation = generation_ + 1;
  const uint8_t* const from = SlotAt(generation_);
  ManifestRecord record;
  memcpy(&record, from, sizeof(record));
  std::vector<uint8_t> image(from, from + record.bytes);
  memcpy(image.data() + offsetof(ManifestRecord, generation), &generation, sizeof(generation));
  const uint64_t checksum = ManifestChecksum(image.data(), image.size());
  memcpy(image.data(), &checksum, sizeof(checksum));
  auto* const header = static_cast<ManifestHeader*>(object);
  uint8_t* const slot = static_cast<uint8_t*>(object) + sizeof(*header) + SlotOf(generation) * slot_bytes;
  memcpy(slot, image.data(), image.size());
  header->selector = generation;
  header->slot_bytes = slot_bytes;
  // ORDER: G2 before G3: the contents are durable before the magic that validates them. No mutant removes this fence, since a
  // test cannot detect its absence: an incomplete copy has a wrong checksum, and the old object exists until G4. [CC-2]
  if (!BRAIDDB_MUTANT("manifest-growth-not-flushed")) persistence->Flush(slot, image.size());
  if (!persistence->Persist(header, sizeof(*header))) return persistence->error();
  if (BRAIDDB_MUTANT("manifest-growth-frees-first")) status = regions_->FreeMetadata(0, kManifestPlaces[old_place]);
  StoreRelease(&header->magic, ManifestHeader::kMagic);
  // ORDER: G3 before G4: the old object exists until the new one counts. [CC-2]
  if (!persistence->Persist(header, sizeof(*header))) return persistence->error();
  Use(place, object, slot_bytes, generation);
  if (BRAIDDB_MUTANT("manifest-growth-frees-first")) return status;
  return regions_->FreeMetadata(0, kManifestPlaces[old_place]);
}

// STEPS  P1, P2 of PERSIST ORDER.  CRASH before P1: the old state. Between P1 and P2: the new state, which open selects.
// COST   Two fences.
Status Manifest::Commit(const ManifestState& state) {
  Status status = CommitSlot(state);
  if (status.ok()) status = Select(generation_ + 1);
  if (!status.ok()) return status;
  ++generation_;
  is_clean_ = state.clean;
  return status;
}

Status Manifest::CommitLast(const ManifestState& state) {
  if (regions_->persistence()->mode() != PersistMode::kPage) return Commit(state);
  Status status = CommitSlot(state);
  if (!status.ok()) return status;
  StoreSelector(++generation_);
  is_clean_ = state.clean;
  return status;
}

// P1.
Status Manifest::CommitSlot(const ManifestState& state) {
  BRAIDDB_CHECK(state.comparator.size() <= kMaxComparatorName);
  if (!Fits(state)) {
    if (Status status = Grow(BytesFor(state, Room::kNone)); !status.ok()) return status;
  }
  Persistence* persistence = regions_->persistence();
  // After a failed persist, the media may already name the slot that this commit would overwrite.
  if (persistence->failed()) return persistence->error();
  const uint64_t generation = generation_ + 1;
  const std::vector<uint8_t> image = EncodeManifest(state, generation, regions_->count());
  uint8_t* slot = SlotAt(generation);
  memcpy(slot, image.data(), image.size());
  if (BRAIDDB_MUTANT("manifest-selector-first")) StoreRelease(&reinterpret_cast<ManifestHeader*>(object_)->selector, generation);
  // ORDER: the slot before the selector that names it. [CC-2]
  if (!BRAIDDB_MUTANT("manifest-slot-not-flushed"))
    persistence->Flush(slot, BRAIDDB_MUTANT("manifest-flush-too-short") ? sizeof(ManifestRecord) : image.size());
  if (!BRAIDDB_MUTANT("manifest-slot-not-fenced") && !persistence->Drain()) return persistence->error();
  return Status::OK();
}

void Manifest::StoreSelector(uint64_t generation) {
  StoreRelease(&reinterpret_cast<ManifestHeader*>(object_)->selector, generation);
}

// P2: one atomic store of eight bytes, then flush and fence.
Status Manifest::Select(uint64_t generation) {
  Persistence* persistence = regions_->persistence();
  const auto* header = reinterpret_cast<const ManifestHeader*>(object_);
  StoreSelector(generation);
  if (!BRAIDDB_MUTANT("manifest-selector-not-flushed")) persistence->Flush(&header->selector, sizeof(header->selector));
  if (!BRAIDDB_MUTANT("manifest-selector-not-fenced") && !persistence->Drain()) return persistence->error();
  return Status::OK();
}

}  // namespace braiddb
