#include "check/media.h"

#include <algorithm>
#include <cinttypes>

#include "braiddb/column_family.h"
#include "compaction/merge_journal.h"
#include "index/level_place.h"
#include "log/log_reader.h"
#include "pmem/database_file.h"
#include "pmem/layout_check.h"
#include "pmem/posix.h"
#include "util/check.h"
#include "util/format.h"

namespace braiddb {
namespace {

constexpr char kPutBack[] = "put the file back, or restore the database from a copy; `braiddb repair` saves what is intact";

bool UsesJournal(const MediaFamily& family) { return family.kind != nullptr && family.kind->relinks_entries; }

template <size_t n>
bool AllZero(const uint64_t (&words)[n]) {
  return std::all_of(std::begin(words), std::end(words), [](uint64_t word) { return word == 0; });
}

}  // namespace

Status Media::Load(const std::string& path, const std::vector<std::string>& region_paths, Findings* findings,
                   std::unique_ptr<Media>* result) {
  std::unique_ptr<Media> media(new Media());
  if (Status status = media->MapRegions(path, region_paths, findings); !status.ok()) return status;
  for (uint32_t region = 0; region < media->regions(); ++region) {
    if (media->image(region) == nullptr) continue;
    if (Status status = media->LoadRoot(region, findings); !status.ok()) return status;
    media->LoadDirectory(region, findings);
    media->CheckHeap(region, findings);
  }
  media->CheckOverlap(findings);
  if (Status status = media->LoadManifest(findings); !status.ok()) return status;
  if (media->manifest_is_sound_) {
    media->ListFamilies();
    media->LoadLevels(findings);
  }
  *result = std::move(media);
  return Status::OK();
}

// ---- Files

// Maps the regions that exist. Their number is that of a sound part list, or else of the directories with parts.
Status Media::MapRegions(const std::string& path, const std::vector<std::string>& region_paths, Findings* findings) {
  RegionSetOptions where;
  where.database_path = path;
  where.region_paths = region_paths;
  const std::vector<std::string> directories = RegionDirectories(where, kMaxRegions);
  if (directories.size() > kMaxRegions) return Status::InvalidArgument("more than 16 region_paths");
  if (posix::Exists(DatabaseFile::FilePath(path, DatabaseFile::State::kDestroying))) {
    return Status::NotFound("the removal of the database in " + path + " is not complete; finish it with DB::Destroy");
  }
  if (posix::Exists(posix::JoinPath(path, "CREATING")) || posix::Exists(posix::JoinPath(directories[0], "CREATING"))) {
    return Status::NotFound("the creation of the database in " + path + " was interrupted; it holds no data yet");
  }
  const auto report = [&](const std::string& file, const std::string& what) { findings->Add(what, file, kPutBack); };
  uint32_t count = 0;
  for (uint32_t i = 0; i < directories.size(); ++i) {
    std::unique_ptr<RegionImage> image;
    Status status = RegionImage::Map(directories[i], report, &image);
    if (!status.ok() && !status.IsNotFound() && !status.IsCorruption()) return status;
    if (status.IsCorruption()) findings->Add(std::string(status.message()), directories[i], kPutBack);
    if (image != nullptr) {
      count = std::max(count, i + 1);
      if (image->list_is_sound()) count = std::max(count, std::min(image->list().region_count, kMaxRegions));
    }
    images_.push_back(std::move(image));
  }
  if (count == 0) return Status::NotFound("there is no database in " + path + "; check the path, and region_paths");
  images_.resize(count);
  roots_.resize(count);
  const PartList* first = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    if (images_[i] == nullptr) {
      findings->Add("region " + std::to_string(i) + " is missing", i < directories.size() ? directories[i] : path, kPutBack);
      continue;
    }
    if (!images_[i]->list_is_sound()) continue;
    const PartList& list = images_[i]->list();
    if (first == nullptr) first = &list;
    if (list.database_id != first->database_id || list.region_count != count || list.region != i) {
      findings->Add("it holds region " + std::to_string(list.region) + " of " + std::to_string(list.region_count) +
                        Format(" of the database %016" PRIx64, list.database_id) + ", expected is region " + std::to_string(i) +
                        " of " + std::to_string(count) + Format(" of %016" PRIx64, first->database_id),
                    images_[i]->directory(), "put each region's files back in their place");
    }
  }
  DatabaseFile::State state = DatabaseFile::State::kNone;
  DatabaseFile place;
  const std::string file = DatabaseFile::FilePath(path, DatabaseFile::State::kWhole);
  const Status read = DatabaseFile::Read(path, &state, &place);
  if (!read.ok() && !read.IsCorruption()) return read;
  if (!read.ok()) findings->Add("it is truncated or damaged, or not a file of BraidDB", file, kPutBack);
  if (read.ok() && state == DatabaseFile::State::kWhole && first != nullptr && place.database_id != first->database_id) {
    findings->Add(Format("it names the database %016" PRIx64, place.database_id) +
                      Format(", and the regions are of %016" PRIx64, first->database_id),
                  file, "put the file, or each region's files, back in their place");
  }
  return Status::OK();
}

// ---- Root and metadata

// Returns true if the id can name an object of `bytes` bytes in the region's image.
bool Media::IsObject(uint32_t region, const ObjectId& id, uint64_t bytes) const {
  BRAIDDB_DCHECK(region < images_.size() && images_[region] != nullptr);
  const RegionImage& image = *images_[region];
  const PoolView pool(image.base(), image.bytes());
  return Complete(region, id).pool == pool.identity() && id.offset % kObjectHeaderBytes == 0 &&
         id.offset >= pool.heap_begin() + kObjectHeaderBytes && image.Contains(id.offset, bytes);
}

Status Media::LoadRoot(uint32_t region, Findings* findings) {
  const RegionImage& image = *images_[region];
  const PoolView pool(image.base(), image.bytes());
  if (const char* damage = pool.FindDamage()) {
    findings->Add(damage, image.Place(0) + ", header of the pool");
    directories_are_sound_ = false;
    return Status::OK();
  }
  if (pool.RunIdIsOdd()) {
    findings->Add("PMDK's run id is odd", image.Place(kPoolRunIdOffset),
                  "open the database once to write: that repairs the number, which BraidDB does not use");
  }
  const uint64_t offset = pool.root_offset();
  const std::string where = image.Place(offset) + ", root of region " + std::to_string(region);
  const auto damaged = [&](const char* what) {
    findings->Add(what, where);
    directories_are_sound_ = false;
    return Status::OK();
  };
  if (pool.root_size() < sizeof(RegionRoot) || !IsObject(region, {pool.identity(), offset}, sizeof(RegionRoot)))
    return damaged("the pointer to the root is damaged");
  const auto* root = reinterpret_cast<const RegionRoot*>(image.base() + offset);
  if (root->magic != RegionRoot::kMagic) return damaged("the root has no signature");
  if (!IsKnownRootVersion(root->format_version) && root->checksum == RootChecksum(*root)) {
    return Status::NotSupported(where + " has format version " + std::to_string(root->format_version) +
                                ", this program knows version " + std::to_string(kRootFormatVersion) +
                                "; use the BraidDB that wrote it");
  }
  if (!IsKnownRootVersion(root->format_version) || !IsRootSound(*root)) return damaged("the checksum of the root is wrong");
  if (root->region != region || root->region_count != regions() ||
      (image.list_is_sound() && root->database_id != image.list().database_id)) {
    return damaged("the root is of another region or database");
  }
  if (root->generation_word != EncodeGenerationLimit(root->generation_word >> 16))
    return damaged("the generation limit is damaged");
  if (root->unused != 0 || !AllZero(root->unused2)) findings->Add("unused words are not zero", where);
  roots_[region] = root;
  CheckMetadata(region, findings);
  return Status::OK();
}

void Media::CheckMetadata(uint32_t region, Findings* findings) const {
  const RegionRoot& root = *roots_[region];
  for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
    const bool committed = root.metadata_check[slot] != 0;
    const bool allocated = root.metadata[slot].offset != 0;
    if ((committed && root.metadata_check[slot] != MetadataCheck(root, slot)) ||
        (allocated && !IsObject(region, root.metadata[slot], root.metadata_bytes[slot] + kCacheLine))) {
      findings->Add("the pointer to metadata object " + std::to_string(slot) + " is damaged",
                    "root of region " + std::to_string(region) + " (" + images_[region]->directory() + ")");
    }
  }
}

uint8_t* Media::Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes) const {
  const RegionRoot* root = images_[region] == nullptr ? nullptr : roots_[region];
  const auto index = static_cast<uint32_t>(slot);
  *bytes = 0;
  if (root == nullptr || root->metadata[index].offset == 0) return nullptr;
  if (root->metadata_check[index] != 0 && root->metadata_check[index] != MetadataCheck(*root, index)) return nullptr;
  if (!IsObject(region, root->metadata[index], root->metadata_bytes[index] + kCacheLine)) return nullptr;
  *bytes = root->metadata_bytes[index];
  return images_[region]->base() + AlignToLine(root->metadata[index].offset);
}

// ---- Structures of other folders

Status Media::LoadManifest(Findings* findings) {
  if (images_[0] == nullptr || roots_[0] == nullptr) return Status::OK();
  ManifestObject objects[2];
  for (size_t i = 0; i < 2; ++i) objects[i].data = Metadata(0, kManifestPlaces[i], &objects[i].bytes);
  size_t which = objects[0].data != nullptr ? 0 : 1;
  const Status status = Manifest::ReadNewest(objects, regions(), &manifest_, &manifest_generation_, &which);
  if (status.IsNotSupported()) return status;
  manifest_is_sound_ = status.ok();
  if (!status.ok()) {
    const auto place = static_cast<uint32_t>(kManifestPlaces[which]);
    const std::string where =
        objects[which].data == nullptr ? images_[0]->directory() : Place(PmPtr(0, root(0)->metadata[place].offset));
    findings->Add(std::string(status.message()), where + ", MANIFEST");
  }
  return Status::OK();
}

void Media::ListFamilies() {
  listed_.assign(kMaxFamilies, Listed::kNo);
  listed_[0] = Listed::kYes;
  AddFamily({.name = kDefaultColumnFamilyName, .comparator = manifest_.comparator, .l1 = static_cast<L1Kind>(manifest_.l1_kind)});
  for (const ManifestState::Family& listed : manifest_.families) {
    listed_[listed.id] = listed.dropped ? Listed::kDropped : Listed::kYes;
    if (listed.dropped) continue;
    AddFamily({.id = listed.id,
               .number = listed.number,
               .name = listed.name,
               .comparator = listed.comparator,
               .l1 = static_cast<L1Kind>(listed.l1_kind)});
  }
  if (manifest_.merge_id == 0) return;
  const auto merging = std::find_if(families_.begin(), families_.end(),
                                    [this](const MediaFamily& family) { return family.id == manifest_.merging_family; });
  if (merging != families_.end()) merging_family_ = &*merging;
}

void Media::AddFamily(MediaFamily family) {
  family.kind = FindLevelKind(family.l1);
  if (family.kind != nullptr) family.level = family.kind->new_media();
  families_.push_back(std::move(family));
}

// The journal exists as soon as the database has had a level that needs it.
void Media::LoadLevels(Findings* findings) {
  uint64_t bytes = 0;
  const bool needs_journal =
      std::any_of(families_.begin(), families_.end(), [](const MediaFamily& family) { return UsesJournal(family); });
  const bool has_journal = needs_journal || Metadata(0, MetadataSlot::kMergeJournal, &bytes) != nullptr;
  const bool journal_is_sound = !has_journal || RedoJournal(findings);
  for (MediaFamily& family : families_)
    family.level_is_there = LoadLevel(&family, journal_is_sound, findings) && directories_are_sound_;
}

bool Media::LoadLevel(MediaFamily* family, bool journal_is_sound, Findings* findings) {
  if (family->kind == nullptr) {
    findings->Add("a last level of a kind that this version does not have", "MANIFEST" + family->suffix(),
                  "use the BraidDB that wrote it");
    return false;
  }
  return family->level->Load(this, *family, findings) && (journal_is_sound || !family->kind->relinks_entries);
}

bool Media::lists_are_there() const {
  return manifest_is_sound_ && directories_are_sound_ &&
         std::all_of(families_.begin(), families_.end(), [](const MediaFamily& family) { return family.level_is_there; });
}

const uint8_t* Media::FindPlace(const MediaFamily& family, uint32_t region, uint64_t bytes) const {
  const LevelPlace place{family.id, family.number};
  uint64_t all = 0;
  const uint8_t* const object = Metadata(region, place.slot(), &all);
  return object == nullptr || all < place.offset() + bytes ? nullptr : object + place.offset();
}

const MediaSegment* Media::FindIndexSegment(PmPtr p) const {
  auto it = std::upper_bound(segments_.begin(), segments_.end(), p.raw(),
                             [](uint64_t raw, const MediaSegment& segment) { return raw < segment.start().raw(); });
  if (it == segments_.begin()) return nullptr;
  --it;
  const bool inside = it->region == p.region() && p.offset() - it->data < it->capacity;
  return inside && it->state == SegmentState::kIndex ? &*it : nullptr;
}

bool Media::TakeSegment(PmPtr start, uint64_t generation, uint64_t bytes) {
  const MediaSegment* const found = FindIndexSegment(start);
  if (found == nullptr || found->start().raw() != start.raw() || found->generation != generation || found->level_bytes != 0 ||
      bytes > found->capacity) {
    return false;
  }
  segments_[static_cast<size_t>(found - segments_.data())].level_bytes = bytes;
  return true;
}

// Does the newest batch of an interrupted merge again, in the private mapping. Merges that do not relink entries write no
// batches, so the journal may have old ones only.
bool Media::RedoJournal(Findings* findings) {
  uint64_t bytes = 0;
  const uint8_t* object = Metadata(0, MetadataSlot::kMergeJournal, &bytes);
  const bool has_batches = merging_family_ != nullptr && UsesJournal(*merging_family_);
  JournalBatch batch;
  uint64_t last_number = 0;
  const Status status = MergeJournal::FindNewest(object, bytes, has_batches ? manifest_.merge_id : 0, &batch, &last_number);
  if (!status.ok()) {
    findings->Add(std::string(status.message()), "merge journal in region 0");
    return false;
  }
  for (uint64_t i = 0; i < batch.count; ++i) {
    const PmPtr address(batch.stores[i].address);
    if (!Contains(address, sizeof(uint64_t))) {
      findings->Add("the merge journal points outside the database", "merge journal in region 0, store " + std::to_string(i));
      return false;
    }
  }
  for (uint64_t i = 0; i < batch.count; ++i) *Resolve<uint64_t>(PmPtr(batch.stores[i].address)) = batch.stores[i].value;
  progress_ = batch.progress;
  return true;
}

// ---- Looking things up

bool Media::Contains(PmPtr p, uint64_t bytes) const {
  return !p.is_null() && p.raw() % 8 == 0 && p.region() < regions() && images_[p.region()] != nullptr &&
         images_[p.region()]->Contains(p.offset(), bytes);
}

size_t Media::FindSegment(PmPtr p) const {
  auto it = std::upper_bound(segments_.begin(), segments_.end(), p.raw(),
                             [](uint64_t raw, const MediaSegment& segment) { return raw < segment.start().raw(); });
  if (it == segments_.begin()) return SIZE_MAX;
  --it;
  const bool inside = it->holds_log() && it->region == p.region() && p.offset() - it->data < it->limit();
  return inside ? static_cast<size_t>(it - segments_.begin()) : SIZE_MAX;
}

LogEntry* Media::EntryAt(PmPtr p, size_t* segment) const {
  if (p.raw() % 8 != 0) return nullptr;
  *segment = FindSegment(p);
  if (*segment == SIZE_MAX) return nullptr;
  const MediaSegment& home = segments_[*segment];
  LogReader reader(Resolve(home.start()), home.entry_seed, home.limit(), p.offset() - home.data);
  return reader.entry_at_start();
}

std::string Media::Place(PmPtr p) const {
  if (p.region() >= regions() || images_[p.region()] == nullptr || !images_[p.region()]->Contains(p.offset(), 0))
    return Format("region %u, offset %" PRIu64, p.region(), p.offset());
  return images_[p.region()]->Place(p.offset());
}

}  // namespace braiddb
