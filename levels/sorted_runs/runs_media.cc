#include "levels/sorted_runs/runs_media.h"

#include <string>

#include "check/list_walk.h"
#include "check/media.h"

namespace braiddb {
namespace {

// Takes the segments of the run. Returns false if a segment is missing or belongs to another run.
bool TakeSegments(Media* media, RunRecord* record) {
  for (uint32_t i = 0; i < record->segments; ++i) {
    const RunSegment& listed = SegmentsOf(record)[i];
    if (!media->TakeSegment(PmPtr(listed.start), listed.generation, listed.bytes)) return false;
  }
  return true;
}

}  // namespace

bool RunsMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  const auto damaged = [&](const char* what, PmPtr where) {
    findings->Add(what, (where ? media->Place(where) : "region 0") + ", last level" + family.suffix());
    return false;
  };
  const auto* root = reinterpret_cast<const RunsRoot*>(media->FindPlace(family, 0, sizeof(RunsRoot)));
  if (root == nullptr || !IsRunsRoot(*root, media->root(0)->database_id, family.number))
    return damaged("the root of the runs is missing or damaged", PmPtr());
  uint64_t link = root->first;
  uint64_t owner = root->checksum;
  PmPtr origin;
  for (;;) {
    if (!IsLink(owner, link)) return damaged("a damaged link to a run", origin);
    const PmPtr place = LinkTarget(link);
    if (!place) return true;
    const MediaSegment* const home = place.raw() % kCacheLine == 0 ? media->FindIndexSegment(place) : nullptr;
    if (home == nullptr) return damaged("a link that leads to no run", origin);
    auto* const record = media->Resolve<RunRecord>(place);
    const uint64_t room = home->data + home->capacity - place.offset();
    if (!IsRunRecord(*record, place, room, home->generation, family.number, media->regions()))
      return damaged("a damaged record of a run", place);
    if (!TakeSegments(media, record)) return damaged("a run with segments that are not its own", place);
    runs_.push_back(record);
    link = record->next;
    owner = place.raw();
    origin = place;
  }
}

LevelCounts RunsMedia::Check(const LevelCheck& check) const {
  LevelCounts counts;
  const LogEntry* last = nullptr;
  for (RunRecord* const run : runs_) {
    const std::string name = "last level" + check.family.suffix() + ", run at " + check.media.Place(PmPtr(run->place));
    ListWalk walk(check.media, check.family.id, check.order, name,
                  {HeadsOf(run), HeadsOf(run) + uint64_t{check.media.regions()} * kMaxHeight},
                  {.end_sequence = check.media.manifest().log_boundary, .after = last}, check.reached, check.findings);
    walk.Run();
    counts.entries += walk.entries();
    counts.obsolete_entries += walk.obsolete();
    if (walk.broken()) break;
    if (walk.entries() != run->entries) {
      check.findings->Add(
          "the list has " + std::to_string(walk.entries()) + " entries, its record says " + std::to_string(run->entries), name);
    }
    last = walk.last();
  }
  return counts;
}

}  // namespace braiddb
