#include "compaction/last_level.h"

namespace braiddb {
namespace {

Status NoSuchKind() { return Status::NotSupported("this version has no such Options::l1"); }

}  // namespace

Status LastLevel::Create(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place) {
  const LevelKind* const kind = FindLevelKind(options.l1);
  return kind == nullptr ? NoSuchKind() : kind->create(options, regions, segments, place);
}

Status LastLevel::Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result) {
  const LevelKind* const kind = FindLevelKind(options.l1);
  return kind == nullptr ? NoSuchKind() : kind->open(options, parts, job, result);
}

}  // namespace braiddb
