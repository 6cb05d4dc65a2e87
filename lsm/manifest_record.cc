#include "lsm/manifest_record.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/level_kind.h"
#include "log/range_record.h"

namespace braiddb {
namespace {

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
constexpr uint64_t kShortRecord = offsetof(ManifestRecord, family_count);
constexpr uint64_t kShortTable = offsetof(ManifestTableRecord, family);

uint64_t HeadWords(uint32_t regions) { return uint64_t{regions} * kMaxHeight; }

uint64_t TableBytesOf(uint64_t record, uint32_t regions) { return record + 8 * HeadWords(regions); }

uint64_t NameBytes(uint64_t size) { return (size + 7) & ~uint64_t{7}; }

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

// `in`: the first family record; `end`: the end of the whole record.
Status DecodeFamilies(const uint8_t* in, const uint8_t* end, uint32_t count, ManifestState* state) {
  for (uint32_t i = 0; i < count; ++i) {
    FamilyRecord fixed;
    if (static_cast<size_t>(end - in) < sizeof(fixed)) return DamagedManifest("impossible number of column families");
    memcpy(&fixed, in, sizeof(fixed));
    in += sizeof(fixed);
    if (static_cast<size_t>(end - in) < NameBytes(fixed.name_bytes) || fixed.name_bytes > kMaxFamilyName)
      return DamagedManifest("impossible name of a column family");
    const uint32_t before = state->families.empty() ? 0 : state->families.back().id;
    if (fixed.id <= before || fixed.id >= kMaxFamilies) return DamagedManifest("impossible column family");
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
  return in == end ? Status::OK() : DamagedManifest("impossible number of column families");
}

// Checks numbers that later steps add to or use as an index.
Status CheckNumbers(const ManifestRecord& record, const ManifestState& state) {
  if (record.log_boundary == 0 || record.log_boundary > kMaxSequence || record.last_sequence > kMaxSequence)
    return DamagedManifest("impossible sequence number");
  if (record.merge_id != 0 && record.merging_family != 0 && state.FindFamily(record.merging_family) == nullptr)
    return DamagedManifest("a merge of a column family that is not there");
  return Status::OK();
}

}  // namespace

uint64_t ManifestRecordBytes(const ManifestState& state, uint32_t regions) {
  uint64_t bytes = sizeof(ManifestRecord) + state.tables.size() * ManifestTableBytes(regions);
  for (const auto& family : state.families) bytes += sizeof(FamilyRecord) + NameBytes(family.name.size());
  return bytes;
}

uint64_t ManifestTableBytes(uint32_t regions) { return TableBytesOf(sizeof(ManifestTableRecord), regions); }

uint64_t ManifestChecksum(const uint8_t* record, uint64_t bytes) {
  return std::max<uint64_t>(1, XXH3_64bits(record + 8, bytes - 8));
}

std::vector<uint8_t> EncodeManifest(const ManifestState& state, uint64_t generation, uint32_t regions) {
  const uint64_t bytes = ManifestRecordBytes(state, regions);
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
    const ManifestTableRecord fixed{table.id, table.boundary, table.entries, table.family};
    memcpy(out, &fixed, sizeof(fixed));
    memcpy(out + sizeof(fixed), table.heads.data(), 8 * HeadWords(regions));
    out += ManifestTableBytes(regions);
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
  const uint64_t checksum = ManifestChecksum(image.data(), bytes);
  memcpy(image.data(), &checksum, sizeof(checksum));
  return image;
}

Status DamagedManifest(const std::string& what) {
  return Status::Corruption("the MANIFEST is damaged (" + what + "); restore the database from a copy");
}

Status DecodeManifest(const uint8_t* slot, uint64_t slot_bytes, uint64_t generation, uint32_t regions, ManifestState* state) {
  ManifestRecord record;
  memcpy(&record, slot, sizeof(record));
  // Before the checksum: the slot must be the selected one, and `bytes` must lie within the slot.
  if (record.generation != generation) return DamagedManifest("selector and slot disagree");
  if (record.bytes < kShortRecord || record.bytes > slot_bytes) return DamagedManifest("impossible size");
  if (record.checksum != ManifestChecksum(slot, record.bytes)) return DamagedManifest("checksum mismatch");
  // A newer version's record: its checksum is valid, so its format number can be trusted.
  if (record.format < kManifestFormatWithoutFamilies || record.format > kManifestFormatWithFeatures) {
    return Status::NotSupported("the database has format " + std::to_string(record.format) +
                                ", this version reads formats 2 to " + std::to_string(kManifestFormatWithFeatures) +
                                "; use the version that wrote it");
  }
  if (record.format == kManifestFormatWithFeatures && (record.flags & ~KnownFlags()) != 0)
    return Status::NotSupported("the database has a feature that this version does not know; use the version that wrote it");
  // Format 2 has shorter records. The missing fields become 0, the default family.
  const bool has_families = record.format != kManifestFormatWithoutFamilies;
  const uint64_t record_bytes = has_families ? sizeof(record) : kShortRecord;
  const uint64_t table_record = has_families ? sizeof(ManifestTableRecord) : kShortTable;
  const uint64_t table_bytes = TableBytesOf(table_record, regions);
  if (!has_families) record.family_count = record.merging_family = 0;
  if (record.regions != regions || record.max_height != kMaxHeight) return DamagedManifest("written for another geometry");
  if (record.bytes < record_bytes || (record.bytes - record_bytes) / table_bytes < record.table_count)
    return DamagedManifest("impossible table count");
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
    ManifestTableRecord fixed{};
    memcpy(&fixed, in, table_record);
    if (fixed.family >= kMaxFamilies || (fixed.family != 0 && state->FindFamily(static_cast<uint32_t>(fixed.family)) == nullptr))
      return DamagedManifest("a table of a column family that is not there");
    could_be_merging += fixed.family == record.merging_family;
    ManifestState::Table table{fixed.id, fixed.boundary, fixed.entries, std::vector<uint64_t>(HeadWords(regions)),
                               static_cast<uint32_t>(fixed.family)};
    memcpy(table.heads.data(), in + table_record, 8 * HeadWords(regions));
    state->tables.push_back(std::move(table));
  }
  if (record.merging_tables > could_be_merging) return DamagedManifest("merge of more tables than there are");
  return Status::OK();
}

}  // namespace braiddb
