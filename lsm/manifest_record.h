// The bytes of the MANIFEST: the header line, the record of a slot, and their coding. manifest.h has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "lsm/manifest.h"
#include "util/comparator_name.h"

namespace braiddb {

// The header line. `magic` is stored last at creation. Later `selector` changes, and `stamp_seed` at a close.
struct ManifestHeader {
  static constexpr uint64_t kMagic = 0x464e4d4449415242;  // "BRAIDMNF"
  uint64_t magic;
  uint64_t selector;
  uint64_t slot_bytes;
  uint64_t stamp_seed;  // random, part of Manifest::stamp; 0: none was drawn
  uint64_t reserved[4];
};
static_assert(sizeof(ManifestHeader) == kCacheLine);

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

// A table of the record. The heads of its list follow.
struct ManifestTableRecord {
  uint64_t id;
  uint64_t boundary;
  uint64_t entries;
  uint64_t family;  // since format 3
};

// The format without families. Its records are shorter.
inline constexpr uint32_t kManifestFormatWithoutFamilies = 2;

// Size of the record of a state.
uint64_t ManifestRecordBytes(const ManifestState& state, uint32_t regions);
// Size of a table in the record.
uint64_t ManifestTableBytes(uint32_t regions);

// Never 0, which means an invalid record. REQUIRES: at least 8 bytes; the first 8, which hold the checksum, do not count.
uint64_t ManifestChecksum(const uint8_t* record, uint64_t bytes);

// Builds the record in DRAM, so that the slot is written once, front to back.
std::vector<uint8_t> EncodeManifest(const ManifestState& state, uint64_t generation, uint32_t regions);
// Decodes the record in a slot. Trusts no field before the checksum matches, except `bytes`, which is checked against the slot
// size. Corruption if the record is damaged or of another generation; NotSupported if a newer version wrote it.
Status DecodeManifest(const uint8_t* slot, uint64_t slot_bytes, uint64_t generation, uint32_t regions, ManifestState* state);

Status DamagedManifest(const std::string& what);

}  // namespace braiddb
