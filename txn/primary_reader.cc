#include "txn/primary_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "db/hidden_family.h"
#include "db/read_manifest.h"
#include "index/level_kind.h"
#include "log/log_reader.h"
#include "log/operands.h"
#include "log/range_record.h"
#include "pmem/region_set.h"
#include "txn/open_segment.h"
#include "util/comparator_name.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

Status OtherComparator(const std::string& family, const std::string& stored, const Comparator& given) {
  return Status::InvalidArgument("column family '" + family + "' of the primary is ordered by comparator '" + stored +
                                 "', not by '" + given.Name() + "'");
}

// Copies of a last level are in kIndex segments, as far as they are written; so are other things, which are no entries.
bool HoldsEntries(const ListedSegment& segment, bool has_copies) {
  return segment.state == SegmentState::kOpen || segment.state == SegmentState::kSealed ||
         (has_copies && segment.state == SegmentState::kIndex);
}

}  // namespace

PrimaryReader::PrimaryReader(const Options& options, std::string path, std::vector<ColumnFamilyDescriptor> families)
    : options_(options), path_(std::move(path)) {
  const auto add = [this](const ColumnFamilyOptions& of, const std::string& name) {
    Family& family = families_.emplace_back();
    family.options = of;
    family.name = name;
    family.content = decltype(Family::content)(Family::Less{of.comparator});
    family.changes = decltype(Family::changes)(Family::Less{of.comparator});
    versions_.emplace_back(Family::Less{family.options.comparator});
  };
  const auto has_filter = [](const ColumnFamilyOptions& of) {
    return of.compaction_filter != nullptr || of.compaction_filter_factory != nullptr;
  };
  add(ColumnFamilyOptions(options), kDefaultColumnFamilyName);
  has_filter_ = has_filter(ColumnFamilyOptions(options));
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.name != kDefaultColumnFamilyName) add(family.options, family.name);
    has_filter_ = has_filter_ || has_filter(family.options);
  }
}

Status PrimaryReader::ReadFamilies() {
  ManifestState manifest;
  if (Status status = ReadManifest(options_, path_, &manifest); !status.ok()) return status;
  const auto copies = [](uint8_t kind) {
    const LevelKind* const known = FindLevelKind(kind);
    return known != nullptr && known->copies_entries;
  };
  has_copies_ = copies(manifest.l1_kind) || std::any_of(manifest.families.begin(), manifest.families.end(),
                                                        [&](const auto& family) { return copies(family.l1_kind); });
  range_family_ = 0;
  prepared_family_ = 0;
  for (const ManifestState::Family& listed : manifest.families) {
    if (listed.name == kRangeTombstonesFamilyName) range_family_ = listed.id;
    if (listed.name == kPreparedFamilyName) prepared_family_ = listed.id;
  }
  family_of_.clear();
  family_of_[0] = 0;
  families_[0].is_listed = true;
  if (manifest.comparator != StoredName(*families_[0].options.comparator))
    return OtherComparator(families_[0].name, manifest.comparator, *families_[0].options.comparator);
  for (size_t i = 1; i < families_.size(); ++i) {
    const auto listed = std::find_if(manifest.families.begin(), manifest.families.end(),
                                     [&](const auto& family) { return !family.dropped && family.name == families_[i].name; });
    families_[i].is_listed = listed != manifest.families.end();
    if (!families_[i].is_listed) continue;
    if (listed->comparator != StoredName(*families_[i].options.comparator))
      return OtherComparator(listed->name, listed->comparator, *families_[i].options.comparator);
    families_[i].id = listed->id;
    families_[i].number = listed->number;
    family_of_[listed->id] = i;
  }
  return Status::OK();
}

Status PrimaryReader::CheckFamilies() {
  ManifestState manifest;
  if (Status status = ReadManifest(options_, path_, &manifest); !status.ok()) return status;
  for (size_t i = 1; i < families_.size(); ++i) {
    if (!families_[i].is_listed) continue;
    const ManifestState::Family* const listed = manifest.FindFamily(families_[i].id);
    // What was read under its id may be another one's.
    if (listed == nullptr || listed->dropped || listed->number != families_[i].number) families_[i].is_listed = false;
  }
  for (const ManifestState::Family& listed : manifest.families) {
    if (listed.name == kRangeTombstonesFamilyName && listed.id != range_family_)
      return Status::Aborted("the first range was deleted meanwhile");
    if (listed.name == kPreparedFamilyName && listed.id != prepared_family_)
      return Status::Aborted("the first transaction was prepared meanwhile");
  }
  return Status::OK();
}

Status PrimaryReader::FindGarbage() {
  ManifestState manifest;
  Status status = ReadManifest(options_, path_, &manifest);
  garbage_below_ = manifest.copying_flush ? manifest.log_boundary : 0;
  return status;
}

PrimaryReader::FamilySet PrimaryReader::Families() const {
  FamilySet set;
  for (const Family& family : families_) set.emplace_back(family.is_listed, family.id, family.number);
  set.emplace_back(false, range_family_, 0);
  set.emplace_back(false, prepared_family_, 0);
  return set;
}

Status PrimaryReader::OpenRegions() {
  RegionSetOptions region_options;
  region_options.database_path = path_;
  region_options.region_paths = options_.region_paths;
  const std::vector<std::string> directories = RegionDirectories(region_options, kMaxRegions);
  regions_.clear();
  for (uint32_t i = 0, count = 1; i < count; ++i) {
    if (i >= directories.size()) return Status::InvalidArgument("region_paths names too few directories");
    Region& region = regions_.emplace_back(directories[i]);
    if (Status status = region.files.Open(); !status.ok()) return status;
    count = region.files.root().region_count;
    if (region.files.root().region != i || region.files.root().database_id != regions_[0].files.root().database_id)
      return region.files.Damaged("it is another region, or of another database");
    if (Status status = CheckRegion(&region, region.files); !status.ok()) return status;
  }
  return Status::OK();
}

// Also notes the identity of the files at the first call.
Status PrimaryReader::CheckRegion(Region* region, const PoolFiles& files) const {
  struct stat part;
  const std::string path = region->files.directory() + "/" + PartName(0);
  if (stat(path.c_str(), &part) != 0) return Status::NotFound("there is no file " + path);
  if (region->file == 0) region->file = part.st_ino;
  if (region->file != part.st_ino || files.root().database_id != region->files.root().database_id ||
      files.identity() != region->files.identity()) {
    return Status::Aborted("other files are in " + region->files.directory());
  }
  return Status::OK();
}

Status PrimaryReader::Read() {
  has_state_ = is_update_ = false;
  known_up_to_ = last_sequence_ = last_update_ = 0;
  for (auto& versions : versions_) versions.clear();
  ranges_.clear();
  if (Status status = ReadFamilies(); !status.ok()) return status;
  if (Status status = OpenRegions(); !status.ok()) return status;
  for (Region& region : regions_) {
    // Generations up to the newest of one list were all on media when the next begins.
    if (Status status = region.files.ListSegments(&region.first, &region.newest); !status.ok()) return status;
    if (Status status = region.files.ListSegments(&region.first); !status.ok()) return status;
  }
  if (Status status = FindGarbage(); !status.ok()) return status;
  for (const Step step : {Step::kFirst, Step::kMeanwhile, Step::kUpToLast}) {
    if (Status status = ReadSegments(step); !status.ok()) return status;
    BRAIDDB_SYNC_POINT("PrimaryReader::Read:Step");
  }
  if (Status status = CheckNothingMissed(); !status.ok()) return status;
  if (Status status = CheckFamilies(); !status.ok()) return status;
  return Settle();
}

Status PrimaryReader::ReadUpdates(const FindBase& find_base) {
  if (!has_state_ || has_filter_) return Status::Aborted("there is no state to follow");
  has_state_ = false;
  is_update_ = true;
  known_up_to_ = last_sequence_;
  for (auto& versions : versions_) versions.clear();
  ranges_.clear();
  const FamilySet known = Families();
  if (Status status = ReadFamilies(); !status.ok()) return status;
  if (Families() != known) return Status::Aborted("the families are others");
  for (const Step step : {Step::kMeanwhile, Step::kUpToLast}) {
    if (Status status = ReadSegments(step); !status.ok()) return status;
    BRAIDDB_SYNC_POINT("PrimaryReader::ReadUpdates:Step");
  }
  if (Status status = CheckNothingMissed(); !status.ok()) return status;
  if (Status status = CheckFamilies(); !status.ok()) return status;
  if (Families() != known) return Status::Aborted("the families are others");
  return SettleUpdates(find_base);
}

Status PrimaryReader::ReadSegments(Step step) {
  for (Region& region : regions_) {
    std::vector<ListedSegment> listed;
    if (step != Step::kFirst) {
      // The region may have grown.
      PoolFiles files(region.files.directory());
      if (Status status = files.Open(); !status.ok()) return status;
      if (Status status = CheckRegion(&region, files); !status.ok()) return status;
      if (Status status = files.ListSegments(&listed); !status.ok()) return status;
      region.files = files;
    }
    for (const ListedSegment& segment : step == Step::kFirst ? region.first : listed) {
      if (!HoldsEntries(segment, has_copies_ && !is_update_)) continue;
      if (Status status = ReadSegment(&region, segment, step); !status.ok()) return status;
    }
  }
  return Status::OK();
}

// One that is released while it is read ends where the first entry is that does not match the generation.
Status PrimaryReader::ReadSegment(Region* region, const ListedSegment& segment, Step step) {
  Progress& progress = region->progress.try_emplace(segment.generation, Progress{.seed = segment.entry_seed}).first->second;
  if (progress.seed != segment.entry_seed) return Status::Aborted("other files are in " + region->files.directory());
  const bool is_sealed = segment.state == SegmentState::kSealed;
  const uint64_t limit = is_sealed ? segment.sealed_bytes : segment.capacity;
  if (progress.end > limit) return Status::Aborted("a segment has lost entries that were read");
  bool begins = true;
  if (segment.state == SegmentState::kOpen) {
    progress.was_open = true;
    Status status = FindOpenEntry(region->files, segment, NextEntryOffset(progress.end), &buffer_, &begins);
    if (!status.ok()) return status;
  }
  if (begins && progress.end < limit) {
    const uint64_t from = progress.end / 8 * 8;
    if (Status status = region->files.Read(segment.data + from, limit - from, &buffer_, from); !status.ok()) return status;
    auto* const data = reinterpret_cast<uint8_t*>(buffer_.data());
    LogReader reader(data, segment.entry_seed, limit, progress.end);
    for (;;) {
      const LogEntry* const entry = reader.NextValid();
      progress.is_short = is_sealed && entry == nullptr && progress.end < limit;
      if (entry == nullptr) break;
      if (step == Step::kUpToLast && entry->sequence() > last_sequence_) {
        if (segment.state == SegmentState::kIndex) continue;  // in the order of keys
        break;
      }
      progress.end = reader.end();
      if (is_update_ && entry->sequence() <= known_up_to_) {
        if (progress.was_open) return Status::Aborted("a write came later than writes with larger numbers");
        continue;
      }
      if (is_update_ && entry->is_copy()) continue;
      if (step != Step::kUpToLast) last_sequence_ = std::max(last_sequence_, entry->sequence());
      const bool is_obsolete = entry->is_obsolete() || (!entry->is_copy() && entry->sequence() < garbage_below_);
      const bool is_of_range = range_family_ != 0 && entry->family() == range_family_;
      const bool counts_always = entry->type() == EntryType::kDelete || is_of_range;
      // The primary itself deletes records of ranges, and writes all records of prepared transactions.
      const bool is_of_prepared = prepared_family_ != 0 && entry->family() == prepared_family_;
      const bool is_users = is_of_range ? entry->type() == EntryType::kPut : !is_of_prepared;
      if (is_users) last_update_ = std::max(last_update_, entry->sequence());
      if (step != Step::kFirst || counts_always || !is_obsolete) Add(*entry);
    }
  }
  progress.is_whole |= is_sealed && progress.end == segment.sealed_bytes;
  return Status::OK();
}

Status PrimaryReader::CheckSegment(const Region& region, uint64_t generation, bool is_there) {
  const auto read = region.progress.find(generation);
  if (read != region.progress.end() && read->second.is_whole) return Status::OK();
  if (!is_there) return Status::Aborted("a segment was released that was not read to its end");
  if (read == region.progress.end() || !read->second.is_short) return Status::OK();
  return region.files.Damaged("a sealed segment has entries that are not valid");
}

// If the newest slot was not used at first, its segment was released before, or was about to be used.
Status PrimaryReader::CheckNewest(const Region& region, const NewestSlot& now, bool is_there) {
  const NewestSlot& then = region.newest;
  if (then.is_used || is_there) return Status::OK();
  const auto read = region.progress.find(then.generation);
  if (read != region.progress.end() && read->second.is_whole) return Status::OK();
  const bool is_same = now.generation == then.generation && !now.is_used && now.sealed_last_sequence == then.sealed_last_sequence;
  return is_same ? Status::OK() : Status::Aborted("a segment may have been used and released");
}

Status PrimaryReader::CheckKnown(const Region& region, const std::vector<ListedSegment>& listed) {
  std::unordered_map<uint64_t, uint64_t> seeds;
  for (const ListedSegment& segment : region.first) seeds.emplace(segment.generation, segment.entry_seed);
  for (const ListedSegment& segment : listed) {
    if (segment.generation > region.newest.generation) continue;
    if (segment.generation == region.newest.generation && !region.newest.is_used) continue;
    const auto known = seeds.find(segment.generation);
    if (known == seeds.end() || known->second != segment.entry_seed)
      return Status::Aborted("other files are in " + region.files.directory());
  }
  return Status::OK();
}

// Copies are read only if all is.
bool PrimaryReader::MustBeRead(SegmentState state) const {
  return state != SegmentState::kIndex && !(is_update_ && HoldsCopies(state));
}

// Of what was in use when the first list was made, and of what came until now, each is still there or was read whole. The last
// list is the first one of the next ReadUpdates.
Status PrimaryReader::CheckNothingMissed() {
  for (Region& region : regions_) {
    PoolFiles files(region.files.directory());
    if (Status status = files.Open(); !status.ok()) return status;
    std::vector<ListedSegment> listed;
    NewestSlot newest;
    if (Status status = files.ListSegments(&listed, &newest); !status.ok()) return status;
    if (Status status = files.ListSegments(&listed); !status.ok()) return status;
    std::unordered_set<uint64_t> there;
    for (const ListedSegment& segment : listed) there.insert(segment.generation);
    for (const ListedSegment& segment : region.first) {
      if (!MustBeRead(segment.state)) continue;
      if (Status status = CheckSegment(region, segment.generation, there.contains(segment.generation)); !status.ok())
        return status;
    }
    for (uint64_t generation = region.newest.generation + 1; generation <= newest.generation; ++generation) {
      if (Status status = CheckSegment(region, generation, there.contains(generation)); !status.ok()) return status;
    }
    if (Status status = CheckNewest(region, newest, there.contains(region.newest.generation)); !status.ok()) return status;
    if (is_update_) {
      if (Status status = CheckKnown(region, listed); !status.ok()) return status;
    }
    const auto read = region.progress.find(newest.generation);
    newest.is_used = newest.is_used || (read != region.progress.end() && read->second.is_whole);
    std::erase_if(region.progress, [&there](const auto& of) { return !there.contains(of.first); });
    region.first = std::move(listed);
    region.newest = newest;
  }
  return Status::OK();
}

// ---- Versions

void PrimaryReader::Add(const LogEntry& entry) {
  if (range_family_ != 0 && entry.family() == range_family_) {
    auto tombstone = std::make_shared<RangeTombstone>();
    uint32_t of = 0;
    if (entry.type() == EntryType::kPut && RangeRecord::Parse(entry.key(), entry.value(), entry.sequence(), &of, tombstone.get()))
      ranges_[of].push_back(std::move(tombstone));
    return;
  }
  const auto family = family_of_.find(entry.family());
  if (family == family_of_.end()) return;
  auto& of_family = versions_[family->second];
  const auto place = of_family.try_emplace(std::string(entry.key())).first;
  Versions& versions = place->second;
  // A put stands before the operand of the same number: it is what operands were made into.
  const auto is_newer = [&entry](const Version& version) {
    return version.sequence > entry.sequence() || (version.sequence == entry.sequence() && version.type != EntryType::kMerge);
  };
  auto at = versions.begin();
  for (; at != versions.end() && is_newer(*at); ++at) {
    if (at->type != EntryType::kMerge) return;  // hides it
  }
  at = versions.insert(at, Version{entry.sequence(), entry.type(), std::string(entry.value())});
  const bool is_newest = at == versions.begin();
  if (at->type != EntryType::kMerge) versions.erase(at + 1, versions.end());
  if (!is_newest || place->first == entry.key()) return;
  // Equal keys may have other bytes: those of the newest version count.
  auto node = of_family.extract(place);
  node.key() = std::string(entry.key());
  of_family.insert(std::move(node));
}

Status PrimaryReader::Resolve(const Family& family, const std::string& key, const Versions& versions, bool* is_there,
                              std::string* value) const {
  const bool has_base = versions.back().type == EntryType::kPut;
  *is_there = true;
  if (versions.size() == 1 && versions[0].type != EntryType::kMerge) {
    *is_there = has_base;
    *value = versions[0].value;
    return Status::OK();
  }
  if (family.options.merge_operator == nullptr)
    return Status::InvalidArgument("the primary has merge operands, and there is no merge operator");
  std::vector<Slice> operands;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->type == EntryType::kMerge && (operands.empty() || std::prev(version)->sequence != version->sequence))
      operands.emplace_back(version->value);
  }
  const Slice base = has_base ? Slice(versions.back().value) : Slice();
  value->clear();
  return FullMerge(*family.options.merge_operator, key, has_base ? &base : nullptr, operands, value);
}

void PrimaryReader::LeaveOut(const RangeTombstones& ranges, Slice key, Versions* versions) {
  const uint64_t newest = ranges.Newest(key, kMaxSequence);
  std::erase_if(*versions, [newest](const Version& version) { return version.sequence < newest; });
}

Status PrimaryReader::Settle() {
  for (size_t i = 0; i < families_.size(); ++i) {
    Family& family = families_[i];
    family.content.clear();
    if (!family.is_listed) versions_[i].clear();
    const KeyOrder order(family.options.comparator);
    std::shared_ptr<const RangeTombstones> ranges;
    if (const auto known = ranges_.find(family.id); known != ranges_.end())
      ranges = RangeTombstones::With(nullptr, known->second, order);
    for (auto& [key, versions] : versions_[i]) {
      if (ranges != nullptr) LeaveOut(*ranges, key, &versions);
      if (versions.empty()) continue;
      bool is_there = false;
      std::string value;
      if (Status status = Resolve(family, key, versions, &is_there, &value); !status.ok()) return status;
      if (is_there) family.content.emplace_hint(family.content.end(), key, std::move(value));
    }
    versions_[i].clear();
  }
  return Status::OK();
}

Status PrimaryReader::SettleUpdates(const FindBase& find_base) {
  for (size_t i = 0; i < families_.size(); ++i) {
    Family& family = families_[i];
    family.changes.clear();
    family.deleted_ranges.clear();
    if (!family.is_listed) continue;
    const KeyOrder order(family.options.comparator);
    std::shared_ptr<const RangeTombstones> ranges;
    if (const auto known = ranges_.find(family.id); known != ranges_.end()) {
      ranges = RangeTombstones::With(nullptr, known->second, order);
      family.deleted_ranges = std::move(known->second);
    }
    for (auto& [key, versions] : versions_[i]) {
      const bool had_base = ranges == nullptr || ranges->Newest(key, kMaxSequence) == 0;
      if (ranges != nullptr) LeaveOut(*ranges, key, &versions);
      if (versions.empty()) versions.push_back({known_up_to_, EntryType::kDelete, ""});
      if (versions.back().type == EntryType::kMerge && had_base) {
        std::optional<std::string> base;
        if (Status status = find_base(i, key, &base); !status.ok()) return status;
        if (base.has_value()) versions.push_back({known_up_to_, EntryType::kPut, std::move(*base)});
      }
      bool is_there = false;
      std::string value;
      if (Status status = Resolve(family, key, versions, &is_there, &value); !status.ok()) return status;
      std::optional<std::string>& change = family.changes[key];
      if (is_there) change = std::move(value);
    }
    versions_[i].clear();
  }
  return Status::OK();
}

}  // namespace braiddb
