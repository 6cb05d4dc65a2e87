#include "txn/log_tail.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

#include "db/hidden_family.h"
#include "db/read_manifest.h"
#include "log/log_reader.h"
#include "log/range_record.h"
#include "pmem/region_set.h"

namespace braiddb {
namespace {

bool HoldsLog(const ListedSegment& segment) {
  return segment.state == SegmentState::kOpen || segment.state == SegmentState::kSealed;
}

}  // namespace

Status LogTail::ReadFamilies(uint64_t* log_boundary) {
  ManifestState manifest;
  if (Status status = ReadManifest(options_, path_, &manifest); !status.ok()) return status;
  *log_boundary = manifest.log_boundary;
  range_family_ = 0;
  prepared_family_ = 0;
  for (const ManifestState::Family& family : manifest.families) {
    if (family.name == kRangeTombstonesFamilyName) range_family_ = family.id;
    if (family.name == kPreparedFamilyName) prepared_family_ = family.id;
  }
  return Status::OK();
}

Status LogTail::OpenRegions() {
  RegionSetOptions region_options;
  region_options.database_path = path_;
  region_options.region_paths = options_.region_paths;
  const std::vector<std::string> directories = RegionDirectories(region_options, kMaxRegions);
  for (uint32_t i = 0, count = 1; i < count; ++i) {
    if (i >= directories.size()) return Status::InvalidArgument("region_paths names too few directories");
    PoolFiles files(directories[i]);
    if (Status status = files.Open(); !status.ok()) return status;
    count = files.root().region_count;
    if (i == 0) database_id_ = files.root().database_id;
    if (files.root().region != i || files.root().database_id != database_id_)
      return files.Damaged("it is another region, or of another database");
    Region region;
    region.directory = directories[i];
    std::vector<ListedSegment> listed;
    if (Status status = files.ListSegments(&listed); !status.ok()) return status;
    for (const ListedSegment& segment : listed) {
      Progress& progress = region.progress[segment.generation];
      progress.is_whole = !HoldsLog(segment);
      progress.last = segment.sealed_last_sequence;
    }
    regions_.push_back(std::move(region));
  }
  return Status::OK();
}

Status LogTail::Start(uint64_t since) {
  uint64_t boundary = 0;
  if (Status status = ReadFamilies(&boundary); !status.ok()) return status;
  if (Status status = OpenRegions(); !status.ok()) return status;
  // ORDER: the boundary after the list of segments. See the head of this class.
  if (Status status = ReadFamilies(&boundary); !status.ok()) return status;
  if (since != 0 && since < boundary) {
    return Status::NotFound("the log is complete from sequence number " + std::to_string(boundary) +
                            " on only; writes with smaller numbers may have been reclaimed");
  }
  since_ = since == 0 ? boundary : since;
  return Status::OK();
}

Status LogTail::Poll(std::vector<Update>* updates) {
  horizon_ = last_;
  last_ = largest_;
  const size_t known = found_.size();
  for (Region& region : regions_) {
    if (Status status = PollRegion(&region); !status.ok()) return status;
  }
  // ORDER: the families after the entries. A hidden family exists before it has an entry, and stays.
  uint64_t boundary = 0;
  if (Status status = ReadFamilies(&boundary); !status.ok()) return status;
  const auto is_hidden = [this](Update& update) { return !Show(&update); };
  found_.erase(std::remove_if(found_.begin() + static_cast<ptrdiff_t>(known), found_.end(), is_hidden), found_.end());
  recent_.erase(recent_.begin(), recent_.upper_bound(horizon_));
  for (size_t i = known; i < found_.size(); ++i) recent_.insert(found_[i].sequence);
  TakeUpTo(last_, updates);
  return Status::OK();
}

Status LogTail::PollRegion(Region* region) {
  PoolFiles files(region->directory);  // anew: the region may have grown
  if (Status status = files.Open(); !status.ok()) return status;
  if (files.root().database_id != database_id_) return Status::NotFound("another database is in " + region->directory);
  std::vector<ListedSegment> listed;
  if (Status status = files.ListSegments(&listed); !status.ok()) return status;
  for (auto& [generation, progress] : region->progress) progress.is_listed = false;
  for (const ListedSegment& segment : listed) {
    const auto [place, is_new] = region->progress.try_emplace(segment.generation);
    Progress& progress = place->second;
    progress.is_listed = true;
    progress.last = segment.sealed_last_sequence;
    if (!HoldsLog(segment) || progress.last < since_) {
      progress.is_whole = true;
    } else if (!progress.is_whole) {
      if (Status status = ReadSegment(files, segment, is_new, &progress); !status.ok()) return status;
    }
  }
  FindMissed(region);
  return Status::OK();
}

// COST  An open segment without a new entry costs one short read: the bytes at its end are the same as before.
Status LogTail::ReadSegment(const PoolFiles& files, const ListedSegment& segment, bool is_new, Progress* progress) {
  const bool is_sealed = segment.state == SegmentState::kSealed;
  const uint64_t limit = is_sealed ? segment.sealed_bytes : segment.capacity;
  const uint64_t next = std::min(NextEntryOffset(progress->end), limit);
  if (!is_sealed) {
    uint8_t bytes[sizeof(progress->next)] = {};
    const uint64_t count = std::min<uint64_t>(sizeof(bytes), limit - next);
    if (Status status = files.Read(segment.data + next, count, bytes); !status.ok()) return status;
    const bool is_same = progress->has_next && memcmp(bytes, progress->next, sizeof(bytes)) == 0;
    memcpy(progress->next, bytes, sizeof(bytes));
    progress->has_next = true;
    if (is_same) return Status::OK();
  }
  if (progress->end < limit) {
    const uint64_t from_end = progress->end;
    const uint64_t from = from_end / 8 * 8;
    if (Status status = files.Read(segment.data + from, limit - from, &buffer_, from); !status.ok()) return status;
    LogReader reader(reinterpret_cast<uint8_t*>(buffer_.data()), segment.entry_seed, limit, progress->end);
    while (const LogEntry* const entry = reader.NextValid()) {
      if (is_new && progress->end == 0 && entry->sequence() <= horizon_) {
        progress->is_whole = true;  // copies
        return Status::OK();
      }
      progress->end = reader.end();
      Add(*entry);
    }
    if (progress->end != from_end) progress->has_next = false;
  }
  progress->is_whole = is_sealed && progress->end >= limit;
  if (!is_sealed || progress->is_whole) return Status::OK();
  if (progress->is_short) return files.Damaged("a sealed segment has entries that are not valid");
  progress->is_short = true;  // the next list says whether it was released
  return Status::OK();
}

void LogTail::Add(const LogEntry& entry) {
  largest_ = std::max(largest_, entry.sequence());
  if (entry.sequence() < since_ || entry.is_copy() || recent_.contains(entry.sequence())) return;
  const Kind kind = entry.type() == EntryType::kDelete  ? Kind::kDelete
                    : entry.type() == EntryType::kMerge ? Kind::kMerge
                                                        : Kind::kPut;
  found_.push_back({entry.sequence(), entry.family(), kind, std::string(entry.key()), std::string(entry.value())});
}

bool LogTail::Show(Update* update) const {
  if (prepared_family_ != 0 && update->family == prepared_family_) return false;
  if (range_family_ == 0 || update->family != range_family_) return true;
  RangeTombstone range;
  uint32_t family = 0;
  if (update->kind != Kind::kPut || !RangeRecord::Parse(update->key, update->value, update->sequence, &family, &range))
    return false;
  *update = {update->sequence, family, Kind::kDeleteRange, std::move(range.begin), std::move(range.end)};
  return true;
}

void LogTail::FindMissed(Region* region) {
  std::erase_if(region->progress, [this](const auto& segment) {
    const Progress& progress = segment.second;
    if (progress.is_listed) return false;
    missed_segments_ += !progress.is_whole && progress.last >= since_;
    return true;
  });
}

void LogTail::TakeUpTo(uint64_t last, std::vector<Update>* updates) {
  const auto is_before = [](const Update& a, const Update& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.kind == Kind::kMerge && b.kind != Kind::kMerge;
  };
  const auto is_copy = [](const Update& a, const Update& b) { return a.sequence == b.sequence; };
  std::sort(found_.begin(), found_.end(), is_before);
  found_.erase(std::unique(found_.begin(), found_.end(), is_copy), found_.end());
  const auto end = std::partition_point(found_.begin(), found_.end(), [last](const Update& it) { return it.sequence <= last; });
  updates->insert(updates->end(), std::make_move_iterator(found_.begin()), std::make_move_iterator(end));
  found_.erase(found_.begin(), end);
}

}  // namespace braiddb
