// SegmentCheck: reads the log of all segments, entry by entry.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "check/entry_set.h"
#include "check/findings.h"
#include "check/media.h"
#include "check/reached_entries.h"

namespace braiddb {

// The contents of one segment.
struct SegmentContents {
  EntrySet live;           // entries below the log boundary that are not marked: each must be in a list
  uint64_t dead = 0;       // entries below the log boundary that are marked, and all entries of dropped families
  uint64_t to_replay = 0;  // entries behind the log boundary
};

// GOAL   Finds every violation of these rules. All entries up to a segment's end are valid. A sealed segment has the bytes and
//        the largest sequence number that its descriptor says. An open segment ends where a crash may have cut a write, and not
//        at damage. Entries of unlisted column families are marked dead.
// COST   One read of each segment, which is a pass of CheckOptions::progress. The result has an element for each of
//        media.segments().
std::vector<SegmentContents> CheckSegments(const Media& media, const std::function<void(uint64_t, uint64_t)>& progress,
                                           Findings* findings);

// Begins another pass of `progress`: a walk to all live entries. Its bytes are those of the log, in proportion to the entries
// that were reached.
ReachedEntries MakeReachedEntries(const Media& media, const std::vector<SegmentContents>& contents,
                                  const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace braiddb
