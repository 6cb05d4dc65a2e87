#include "lsm/manifest.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "index/level_kind.h"
#include "log/range_record.h"
#include "util/check.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// The header line. `magic` is stored last at creation; `selector` is the only field that changes later.
struct ManifestHeader {
  static constexpr uint64_t kMagic = 0x464e4d4449415242;  // "BRAIDMNF"
  uint64_t magic;
  uint64_t selector;
  uint64_t slot_bytes;
  uint64_t reserved[5];
};
static_assert(sizeof(ManifestHeader) == kCacheLine);

// Bits of ManifestRecord::flags.
constexpr uint8_t kClean = 1;
constexpr uint8_t kMayLoseWrites = 2;
constexpr uint8_t kMergeFilters = 4;
constexpr uint8_t kObliviousLists = 8;
constexpr uint8_t kCopyingFlush = 16;
constexpr uint8_t kDeletedRanges = 32;
// Bits for kinds of last level (LevelKind::manifest_flag). Sorted runs have 64.
constexpr uint8_t kOfLevelKinds = 64 | 128;
// Flags that require kManifestFormatWithFeatures: a version that does not know them would misread the database.
constexpr uint8_t kFeatures = kObliviousLists | kCopyingFlush | kDeletedRanges | kOfLevelKinds;
constexpr uint8_t kKnownFlags = kClean | kMayLoseWrites | kMergeFilters | (kFeatures & ~kOfLevelKinds);

// The fixed part of a slot. `checksum` covers all bytes behind it, up to `bytes`.
struct ManifestRecord {
  uint64_t checksum;  // XXH3 of [8, bytes)
  uint64_t generation;
  uint32_t format;
  uint32_t bytes;  // size of the record, with its tables and families
  uint64_t log_boundary;
  uint64_t last_sequence;
  uint64_t next_id;
  uint64_t l1_entries;
  uint64_t merge_id;
  uint32_t merging_tables;
  uint32_t table_count;
  uint32_t regions;
  uint16_t max_height;
  uint8_t l1_kind;
  uint8_t flags;
  char comparator[kMaxComparatorName + 1];
  // Since format 3; older records end here.
  uint32_t family_count;
  uint32_t merging_family;
};
static_assert(sizeof(ManifestRecord) == 152);

struct TableRecord {
  uint64_t id;
  uint64_t boundary;
  uint64_t entries;
  uint64_t family;  // since format 3
};

struct FamilyRecord {
  uint32_t id;
  uint8_t l1_kind;
  uint8_t dropped;
  uint16_t name_bytes;
  uint64_t number;
  uint64_t l1_entries;
  char comparator[kMaxComparatorName + 1];
};
static_assert(sizeof(FamilyRecord) == 88);

// Sizes of the records in format 2.
constexpr uint32_t kFormatWithoutFamilies = 2;
constexpr uint64_t kShortRecord = offsetof(ManifestRecord, family_count);
constexpr uint64_t kShortTable = offsetof(TableRecord, family);

uint64_t HeadWords(uint32_t regions) { return uint64_t{regions} * kMaxHeight; }

uint64_t TableBytes(uint32_t regions, uint64_t record = sizeof(TableRecord)) { return record + 8 * HeadWords(regions); }

uint64_t NameBytes(uint64_t size) { return (size + 7) & ~uint64_t{7}; }

uint64_t RecordBytes(const ManifestState& state, uint32_t regions) {
  uint64_t bytes = sizeof(ManifestRecord) + state.tables.size() * TableBytes(regions);
  for (const auto& family : state.families) bytes += sizeof(FamilyRecord) + NameBytes(family.name.size());
  return bytes;
}

uint64_t WholeLines(uint64_t bytes) { return (bytes + kCacheLine - 1) & ~(kCacheLine - 1); }

// Slot size of a new MANIFEST. It is small in crash tests, so that these exercise growth.
uint64_t SlotBytes(uint32_t regions) {
  constexpr uint64_t kTables = kCrashTest ? 3 : 18;
  return WholeLines(sizeof(ManifestRecord) + kTables * TableBytes(regions));
}

// Bounds the size of one object; readers of live databases refuse larger ones.
constexpr uint64_t kMaxSlotBytes = (32ull << 20) - kCacheLine;

// The slot of a generation.
uint64_t SlotOf(uint64_t generation) { return BRAIDDB_MUTANT("manifest-one-slot") ? 0 : generation % 2; }

// Never 0, which means an invalid record.
uint64_t Checksum(const uint8_t* record, uint64_t bytes) { return std::max<uint64_t>(1, XXH3_64bits(record + 8, bytes - 8)); }

// Returns the flag of a kind of last level; 0 if the kind has none, or if this version does not have the kind.
uint8_t FlagOf(uint8_t l1_kind) {
  const LevelKind* const kind = FindLevelKind(l1_kind);
  return kind == nullptr ? 0 : kind->manifest_flag;
}

// Returns the flags that this version can read.
uint8_t KnownFlags() {
  uint8_t flags = kKnownFlags;
  for (const LevelKind* const kind : LevelKinds()) flags |= kind->manifest_flag;
  return flags;
}

uint8_t FeaturesOf(const ManifestState& state) {
  uint8_t features = state.list_kind == ListKind::kOblivious ? kObliviousLists : 0;
  if (state.copying_flush) features |= kCopyingFlush;
  features |= FlagOf(state.l1_kind);
  for (const ManifestState::Family& family : state.families) {
    if (family.name == kRangeTombstonesFamilyName) features |= kDeletedRanges;
    features |= FlagOf(family.l1_kind);
  }
  return features;
}

// Builds the record in DRAM, so that the slot is written once, front to back.
std::vector<uint8_t> Encode(const ManifestState& state, uint64_t generation, uint32_t regions) {
  const uint64_t bytes = RecordBytes(state, regions);
  std::vector<uint8_t> image(bytes);
  ManifestRecord record{};
  record.generation = generation;
  record.bytes = static_cast<uint32_t>(bytes);
  record.log_boundary = state.log_boundary;
  record.last_sequence = state.last_sequence;
  record.next_id = state.next_id;
  record.l1_entries = state.l1_entries;
  record.merge_id = state.merge_id;
  record.merging_tables = state.merging_tables;
  record.table_count = static_cast<uint32_t>(state.tables.size());
  record.regions = regions;
  record.max_height = kMaxHeight;
  record.l1_kind = state.l1_kind;
  record.flags = static_cast<uint8_t>((state.clean ? kClean : 0) | (state.may_lose_writes ? kMayLoseWrites : 0) |
                                      (state.merge_filters ? kMergeFilters : 0) | FeaturesOf(state));
  record.format = (record.flags & kFeatures) != 0 ? kManifestFormatWithFeatures : kManifestFormat;
  memcpy(record.comparator, state.comparator.data(), state.comparator.size());
  record.family_count = static_cast<uint32_t>(state.families.size());
  record.merging_family = state.merging_family;
  memcpy(image.data(), &record, sizeof(record));
  uint8_t* out = image.data() + sizeof(record);
  for (const auto& table : state.tables) {
    const TableRecord fixed{table.id, table.boundary, table.entries, table.family};
    memcpy(out, &fixed, sizeof(fixed));
    memcpy(out + sizeof(fixed), table.heads.data(), 8 * HeadWords(regions));
    out += TableBytes(regions);
  }
  for (const auto& family : state.families) {
    FamilyRecord fixed{};
    fixed.id = family.id;
    fixed.l1_kind = family.l1_kind;
    fixed.dropped = family.dropped ? 1 : 0;
    fixed.name_bytes = static_cast<uint16_t>(family.name.size());
    fixed.number = family.number;
    fixed.l1_entries = family.l1_entries;
    memcpy(fixed.comparator, family.comparator.data(), family.comparator.size());
    memcpy(out, &fixed, sizeof(fixed));
    memcpy(out + sizeof(fixed), family.name.data(), family.name.size());
    out += sizeof(fixed) + NameBytes(family.name.size());
  }
  const uint64_t checksum = Checksum(image.data(), bytes);
  memcpy(image.data(), &checksum, sizeof(checksum));
  return image;
}

Status Damaged(const std::string& what) {
  return Status::Corruption("the MANIFEST is damaged (" + what + "); restore the database from a copy");
}

// `in`: the first family record; `end`: the end of the whole record.
Status DecodeFamilies(const uint8_t* in, const uint8_t* end, uint32_t count, ManifestState* state) {
  for (uint32_t i = 0; i < count; ++i) {
    FamilyRecord fixed;
    if (static_cast<size_t>(end - in) < sizeof(fixed)) return Damaged("impossible number of column families");
    memcpy(&fixed, in, sizeof(fixed));
    in += sizeof(fixed);
    if (static_cast<size_t>(end - in) < NameBytes(fixed.name_bytes) || fixed.name_bytes > kMaxFamilyName)
      return Damaged("impossible name of a column family");
    const uint32_t before = state->families.empty() ? 0 : state->families.back().id;
    if (fixed.id <= before || fixed.id >= kMaxFamilies) return Damaged("impossible column family");
    ManifestState::Family family;
    family.id = fixed.id;
    family.name.assign(reinterpret_cast<const char*>(in), fixed.name_bytes);
    family.comparator.assign(fixed.comparator, strnlen(fixed.comparator, kMaxComparatorName));
    family.l1_kind = fixed.l1_kind;
    family.dropped = fixed.dropped != 0;
    family.number = fixed.number;
    family.l1_entries = fixed.l1_entries;
    state->families.push_back(std::move(family));
    in += NameBytes(fixed.name_bytes);
  }
  return in == end ? Status::OK() : Damaged("impossible number of column families");
}

// Checks numbers that later steps add to or use as an index.
Status CheckNumbers(const ManifestRecord& record, const ManifestState& state) {
  if (record.log_boundary == 0 || record.log_boundary > kMaxSequence || record.last_sequence > kMaxSequence)
    return Damaged("impossible sequence number");
  if (record.merge_id != 0 && record.merging_family != 0 && state.FindFamily(record.merging_family) == nullptr)
    return Damaged("a merge of a column family that is not there");
  return Status::OK();
}

// Decodes a slot. Trusts no field before the checksum matches, except `bytes`, which is checked against the slot size.
Status Decode(const uint8_t* slot, uint64_t slot_bytes, uint64_t generation, uint32_t regions, ManifestState* state) {
  ManifestRecord record;
  memcpy(&record, slot, sizeof(record));
  // Before the checksum: the slot must be the selected one, and `bytes` must lie within the slot.
  if (record.generation != generation) return Damaged("selector and slot disagree");
  if (record.bytes < kShortRecord || record.bytes > slot_bytes) return Damaged("impossible size");
  if (record.checksum != Checksum(slot, record.bytes)) return Damaged("checksum mismatch");
  // A newer version's record: its checksum is valid, so its format number can be trusted.
  if (record.format < kFormatWithoutFamilies || record.format > kManifestFormatWithFeatures) {
    return Status::NotSupported("the database has format " + std::to_string(record.format) +
                                ", this version reads formats 2 to " + std::to_string(kManifestFormatWithFeatures) +
                                "; use the version that wrote it");
  }
  if (record.format == kManifestFormatWithFeatures && (record.flags & ~KnownFlags()) != 0)
    return Status::NotSupported("the database has a feature that this version does not know; use the version that wrote it");
  // Format 2 has shorter records. The missing fields become 0, the default family.
  const bool has_families = record.format != kFormatWithoutFamilies;
  const uint64_t record_bytes = has_families ? sizeof(record) : kShortRecord;
  const uint64_t table_record = has_families ? sizeof(TableRecord) : kShortTable;
  const uint64_t table_bytes = TableBytes(regions, table_record);
  if (!has_families) record.family_count = record.merging_family = 0;
  if (record.regions != regions || record.max_height != kMaxHeight) return Damaged("written for another geometry");
  if (record.bytes < record_bytes || (record.bytes - record_bytes) / table_bytes < record.table_count)
    return Damaged("impossible table count");
  *state = ManifestState();
  const uint8_t* in = slot + record_bytes;
  const uint8_t* const families = in + record.table_count * table_bytes;
  if (Status status = DecodeFamilies(families, slot + record.bytes, record.family_count, state); !status.ok()) return status;
  state->comparator.assign(record.comparator, strnlen(record.comparator, kMaxComparatorName));
  state->l1_kind = record.l1_kind;
  state->log_boundary = record.log_boundary;
  state->last_sequence = record.last_sequence;
  state->next_id = record.next_id;
  state->l1_entries = record.l1_entries;
  state->merge_id = record.merge_id;
  state->merging_tables = record.merging_tables;
  state->merging_family = record.merging_family;
  state->clean = (record.flags & kClean) != 0;
  state->may_lose_writes = (record.flags & kMayLoseWrites) != 0;
  state->list_kind = (record.flags & kObliviousLists) != 0 ? ListKind::kOblivious : ListKind::kBraided;
  state->copying_flush = (record.flags & kCopyingFlush) != 0;
  state->merge_filters = (record.flags & kMergeFilters) != 0;
  if (Status status = CheckNumbers(record, *state); !status.ok()) return status;
  // The number of tables was checked against the record's size above, so the loop stays within the record.
  uint32_t could_be_merging = 0;
  for (uint32_t i = 0; i < record.table_count; ++i, in += table_bytes) {
    TableRecord fixed{};
    memcpy(&fixed, in, table_record);
    if (fixed.family >= kMaxFamilies || (fixed.family != 0 && state->FindFamily(static_cast<uint32_t>(fixed.family)) == nullptr))
      return Damaged("a table of a column family that is not there");
    could_be_merging += fixed.family == record.merging_family;
    ManifestState::Table table{fixed.id, fixed.boundary, fixed.entries, std::vector<uint64_t>(HeadWords(regions)),
                               static_cast<uint32_t>(fixed.family)};
    memcpy(table.heads.data(), in + table_record, 8 * HeadWords(regions));
    state->tables.push_back(std::move(table));
  }
  if (record.merging_tables > could_be_merging) return Damaged("merge of more tables than there are");
  return Status::OK();
}

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
  if (object == nullptr || bytes < sizeof(*header)) return Damaged("it is missing");
  if (header->magic != ManifestHeader::kMagic) return Damaged("it has no signature");
  const bool known_size = header->slot_bytes >= sizeof(ManifestRecord) && header->slot_bytes <= bytes &&
                          bytes == sizeof(*header) + 2 * header->slot_bytes;
  if (!known_size) return Damaged("wrong size");
  const auto slot = [&](uint64_t number) {
    return static_cast<const uint8_t*>(object) + sizeof(*header) + SlotOf(number) * header->slot_bytes;
  };
  *generation = header->selector;
  Status status = Decode(slot(*generation), header->slot_bytes, *generation, regions, state);
  if (!status.ok()) return status;
  // A slot that passed P1 counts even if the selector does not name it. A selector that went back after P2 therefore cannot
  // restore an old state.
  ManifestState next;
  if (!Decode(slot(*generation + 1), header->slot_bytes, *generation + 1, regions, &next).ok()) return Status::OK();
  *state = std::move(next);
  ++*generation;
  return Status::OK();
}

// Two valid objects have the same contents (GROWTH), so one valid object is enough.
Status Manifest::ReadNewest(const ManifestObject (&objects)[2], uint32_t regions, ManifestState* state, uint64_t* generation,
                            size_t* which) {
  Status found = Damaged("it is missing");
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
  if (Decode(SlotAt(generation_ + 1), slot_bytes_, generation_ - 1, regions_->count(), &before).ok()) return Status::OK();
  StoreRelease(&slot->checksum, 0);
  // ORDER: the cleared checksum before the stores of the next commit. [CC-2]
  Persistence* persistence = regions_->persistence();
  return persistence->Persist(&slot->checksum, sizeof(slot->checksum)) ? Status::OK() : persistence->error();
}

uint8_t* Manifest::SlotAt(uint64_t generation) const {
  return object_ + sizeof(ManifestHeader) + SlotOf(generation) * slot_bytes_;
}

uint64_t Manifest::bytes() const { return sizeof(ManifestHeader) + 2 * slot_bytes_; }

// Size of a record for `state` with `room`. A family that already has a table of copies needs no room for another one.
uint64_t Manifest::BytesFor(const ManifestState& state, Room room) const {
  const uint64_t families = 1 + state.families.size();
  const auto copies = static_cast<uint64_t>(
      std::count_if(state.tables.begin(), state.tables.end(), [](const auto& table) { return table.id == kRelocationId; }));
  uint64_t tables = room == Room::kNone ? 0 : families - std::min(families, copies);
  if (room == Room::kCopiesAndFlush) tables += families;
  return RecordBytes(state, regions_->count()) + tables * TableBytes(regions_->count());
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
  const uint64_t checksum = Checksum(image.data(), image.size());
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
  const std::vector<uint8_t> image = Encode(state, generation, regions_->count());
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
