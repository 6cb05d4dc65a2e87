#include "txn/log_tail.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

#include "db/hidden_family.h"
#include "db/read_manifest.h"
#include "log/range_record.h"
#include "pmem/region_set.h"
#include "txn/open_segment.h"

namespace braiddb {
namespace {

// Beyond this number of ranges, numbers between the two oldest ranges count as returned.
constexpr size_t kMaxReturnedRanges = 1 << 16;

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
      progress.is_writers = segment.state == SegmentState::kOpen;
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
  const auto is_hidden = [this](Update& update) {
    const uint64_t sequence = update.sequence;
    if (Show(&update)) return false;
    SetReturned(sequence);
    return true;
  };
  found_.erase(std::remove_if(found_.begin() + static_cast<ptrdiff_t>(known), found_.end(), is_hidden), found_.end());
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

// COST  An open segment without a new entry costs one short read, and a read of one entry if older bytes look like one.
Status LogTail::ReadSegment(const PoolFiles& files, const ListedSegment& segment, bool is_new, Progress* progress) {
  const bool is_sealed = segment.state == SegmentState::kSealed;
  const uint64_t limit = is_sealed ? segment.sealed_bytes : segment.capacity;
  if (!is_sealed) {
    progress->is_writers = true;
    bool begins = false;
    if (Status status = FindOpenEntry(files, segment, NextEntryOffset(progress->end), &buffer_, &begins); !status.ok())
      return status;
    if (!begins) return Status::OK();
  }
  if (progress->end < limit) {
    const uint64_t from = progress->end / 8 * 8;
    if (Status status = files.Read(segment.data + from, limit - from, &buffer_, from); !status.ok()) return status;
    LogReader reader(reinterpret_cast<uint8_t*>(buffer_.data()), segment.entry_seed, limit, progress->end);
    if (!progress->is_writers && HasCopies(reader, is_new)) {
      progress->is_whole = true;
      return Status::OK();
    }
    progress->is_writers = true;
    while (const LogEntry* const entry = reader.NextValid()) {
      progress->end = reader.end();
      Add(*entry);
    }
  }
  progress->is_whole = is_sealed && progress->end >= limit;
  if (!is_sealed || progress->is_whole) return Status::OK();
  if (progress->is_short) return files.Damaged("a sealed segment has entries that are not valid");
  progress->is_short = true;  // the next list says whether it was released
  return Status::OK();
}

bool LogTail::HasCopies(LogReader reader, bool is_new) const {
  uint64_t before = 0;
  while (const LogEntry* const entry = reader.NextValid()) {
    const uint64_t sequence = entry->sequence();
    if (entry->is_copy() || sequence <= before || (is_new && sequence <= horizon_)) return true;
    before = sequence;
  }
  return false;
}

void LogTail::Add(const LogEntry& entry) {
  largest_ = std::max(largest_, entry.sequence());
  if (entry.sequence() < since_ || entry.is_copy() || WasReturned(entry.sequence())) return;
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

bool LogTail::WasReturned(uint64_t sequence) const {
  const auto after = returned_.upper_bound(sequence);
  return after != returned_.begin() && sequence <= std::prev(after)->second;
}

void LogTail::SetReturned(uint64_t sequence) {
  if (WasReturned(sequence)) return;
  const auto after = returned_.upper_bound(sequence);
  const bool joins_next = after != returned_.end() && after->first == sequence + 1;
  const uint64_t last = joins_next ? after->second : sequence;
  if (after != returned_.begin() && std::prev(after)->second + 1 == sequence) {
    std::prev(after)->second = last;
  } else {
    returned_.emplace_hint(after, sequence, last);
  }
  if (joins_next) returned_.erase(after);
  if (returned_.size() <= kMaxReturnedRanges) return;
  const auto second = std::next(returned_.begin());
  returned_.begin()->second = second->second;
  returned_.erase(second);
}

void LogTail::TakeUpTo(uint64_t last, std::vector<Update>* updates) {
  const auto is_before = [](const Update& a, const Update& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.kind == Kind::kMerge && b.kind != Kind::kMerge;
  };
  const auto is_copy = [](const Update& a, const Update& b) { return a.sequence == b.sequence; };
  std::sort(found_.begin(), found_.end(), is_before);
  found_.erase(std::unique(found_.begin(), found_.end(), is_copy), found_.end());
  const auto end = std::partition_point(found_.begin(), found_.end(), [last](const Update& it) { return it.sequence <= last; });
  for (auto it = found_.begin(); it != end; ++it) SetReturned(it->sequence);
  updates->insert(updates->end(), std::make_move_iterator(found_.begin()), std::make_move_iterator(end));
  found_.erase(found_.begin(), end);
}

}  // namespace braiddb
