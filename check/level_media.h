// LevelMedia: one last level of a database that is not open, read from its files without trust.
#pragma once

#include <cstdint>
#include <vector>

#include "check/findings.h"
#include "check/reached_entries.h"
#include "index/key_order.h"
#include "log/log_entry.h"

namespace braiddb {

class Media;
struct MediaFamily;

// Counts of one last level.
struct LevelCounts {
  uint64_t entries = 0;
  uint64_t obsolete_entries = 0;  // entries that are not the newest of their key
};

// One check of a last level.
struct LevelCheck {
  const Media& media;
  const MediaFamily& family;
  const KeyOrder& order;
  bool is_merging;  // a merge or sweep of the level was running
  bool has_tables;  // … with tables: a merge
  // The entries of the tables that are being merged, table by table; the level may have them too. Empty if the kind relinks
  // entries (LevelKind). All entries without a mark are in `reached`.
  std::vector<const LogEntry*> merging;
  // The entries that a structure has reached, by media.segments(). Check adds those of the level that have no mark.
  ReachedEntries* reached;
  Findings* findings;
};

// Each kind of last level implements this class, and names it in LevelKind::new_media. An object belongs to one family.
class LevelMedia {
 public:
  virtual ~LevelMedia() = default;
  // Finds the level's structures, and adds a finding for each damage. Returns true if Check can follow the level. Called once,
  // by Media::Load, after the segments and the MANIFEST were read. May call Media::TakeSegment.
  virtual bool Load(Media* media, const MediaFamily& family, Findings* findings) = 0;
  // Follows the level and adds a finding for each violation of its rules. REQUIRES: Load has returned true.
  virtual LevelCounts Check(const LevelCheck& check) const = 0;
};

}  // namespace braiddb
