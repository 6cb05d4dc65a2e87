#include "check/salvage.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "braiddb/column_family.h"
#include "check/check_files.h"
#include "log/log_reader.h"
#include "log/range_record.h"
#include "pmem/free_ranges.h"
#include "pmem/layout_check.h"
#include "util/check.h"

namespace braiddb {
namespace {

constexpr uint64_t kStepsPerReport = 16384;

}  // namespace

Status Salvage::Scan(const CheckOptions& options, const std::string& path, RepairReport* report,
                     std::unique_ptr<Salvage>* result) {
  CheckReport check;
  Findings findings(&check);
  std::unique_ptr<Media> media;
  if (Status status = Media::Load(path, options.region_paths, &findings, &media); !status.ok()) return status;
  report->damage = std::move(check.findings);
  std::vector<KeyOrder> orders;  // before the scan, which would be in vain with an unknown comparator
  if (Status status = ChooseOrders(options, *media, &orders); !status.ok()) return status;
  for (uint32_t region = 0; region < media->regions(); ++region) {
    const RegionImage* const image = media->image(region);
    if (image == nullptr) {
      report->lost.push_back("all of region " + std::to_string(region) + ": it is missing");
      continue;
    }
    for (const auto& [file, bytes] : image->absent())
      report->lost.push_back("what was in " + std::to_string(bytes) + " bytes of " + file + ": they are missing");
  }
  std::unique_ptr<Salvage> salvage(new Salvage(std::move(media), report));
  const std::vector<Stretch> stretches = salvage->FindStretches();
  uint64_t total = 0;
  uint64_t done = 0;
  for (const Stretch& stretch : stretches) total += stretch.limit;
  if (options.progress) options.progress(0, total);
  for (const Stretch& stretch : stretches) {
    salvage->ScanStretch(stretch);
    done += stretch.limit;
    if (options.progress) options.progress(done, total);
  }
  salvage->bytes_ = total;
  salvage->ChooseFamilies(options, orders);
  *result = std::move(salvage);
  return Status::OK();
}

// ---- Segments

std::vector<Salvage::Stretch> Salvage::FindStretches() const {
  std::vector<Stretch> stretches;
  for (const MediaSegment& segment : media_->segments()) {
    // The originals of copies in an unsealed segment still exist.
    if (!segment.holds_log() || segment.state == SegmentState::kCopies) continue;
    const bool is_whole = segment.state == SegmentState::kSealed || segment.level_bytes != 0;
    stretches.push_back({segment.start(), segment.entry_seed, segment.limit(), is_whole, false});
  }
  // If a level of copies was not found, every kIndex segment may belong to it. Segments that the level has replaced and not
  // released yet are read as well.
  const auto& families = media_->families();
  const bool copies_are_found =
      media_->manifest_is_sound() && std::all_of(families.begin(), families.end(), [](const MediaFamily& family) {
        return family.level_is_there || (family.kind != nullptr && !family.kind->copies_entries);
      });
  for (const MediaSegment& segment : media_->segments()) {
    if (copies_are_found || segment.state != SegmentState::kIndex || segment.level_bytes != 0) continue;
    stretches.push_back({segment.start(), segment.entry_seed, segment.capacity, false, false});
  }
  if (media_->directories_are_sound()) return stretches;
  for (uint32_t region = 0; region < media_->regions(); ++region) {
    if (media_->image(region) != nullptr) FindHeaders(region, &stretches);
  }
  return stretches;
}

// Finds segments without an intact descriptor by their headers. A segment that was released has only entries that are marked
// dead. Bytes inside a known segment that look like a header belong to a user's value, so known segments are skipped. The mark
// of a header, which is seeded with the database's secret, cannot be forged.
void Salvage::FindHeaders(uint32_t region, std::vector<Stretch>* stretches) const {
  std::map<uint64_t, uint64_t> known;  // from the first byte of data to the end of it
  for (const MediaSegment& segment : media_->segments()) {
    if (segment.region == region && segment.used()) known[segment.data] = segment.data + segment.capacity;
  }
  const RegionRoot* root = nullptr;  // of any region, since all have the same secret; without a root, marks cannot be verified
  for (uint32_t i = 0; i < media_->regions() && root == nullptr; ++i) {
    if (media_->image(i) != nullptr) root = media_->root(i);
  }
  const RegionImage& image = *media_->image(region);
  PoolRange hole = image.NextHole(0);
  for (uint64_t offset = 0; offset + sizeof(SegmentHeader) <= image.bytes(); offset += kCacheLine) {
    if (offset >= hole.end) hole = image.NextHole(offset);
    if (offset >= hole.begin && offset < hole.end) {
      offset = hole.end - kCacheLine;
      continue;
    }
    const auto& header = *reinterpret_cast<const SegmentHeader*>(image.base() + offset);
    const uint64_t data = offset + sizeof(SegmentHeader);
    if (const auto segment = known.find(data); segment != known.end()) {
      offset = (segment->second & ~uint64_t{kCacheLine - 1}) - kCacheLine;
      continue;
    }
    if (header.magic != SegmentHeader::kMagic || header.checksum != SegmentHeaderChecksum(header)) continue;
    if (header.region != region || (root != nullptr && header.mark != SegmentHeaderMark(header, root->secret))) continue;
    if (image.list_is_sound() && header.database_id != image.list().database_id) continue;
    stretches->push_back({PmPtr(region, data), EntrySeed(header), std::min(header.capacity, image.bytes() - data), false, true});
  }
}

// ---- Entries

// STEPS  1 keep the valid entries  2 behind them, search for the next valid entry, and count the bytes in between as lost, unless
//        they were given back  3 if that entry belongs to a batch of which a part is lost, skip the batch  4 continue with 1.
void Salvage::ScanStretch(const Stretch& stretch) {
  uint8_t* const data = media_->Resolve(stretch.start);
  uint64_t start = 0;
  for (;;) {
    LogReader reader(data, stretch.entry_seed, stretch.limit, start);
    while (const LogEntry* entry = reader.NextValid()) Keep(entry);
    const uint64_t end = NextEntryOffset(reader.end());
    const uint64_t next = reader.FindValid(end);
    if (next == UINT64_MAX) {
      // Only a sealed range is known to have had entries up to its limit.
      if (stretch.sealed && reader.end() != stretch.limit) Lose(stretch, reader.end(), stretch.limit);
      return;
    }
    const bool is_behind_hole = next != end && IsGivenBack(stretch, end, next);
    if (next != end && !is_behind_hole) Lose(stretch, end, next);
    // Behind damage, or at an incomplete batch, a batch member has lost the beginning of its batch.
    start = next;
    const auto* entry = reinterpret_cast<const LogEntry*>(data + next);
    if (!entry->is_batch_member()) continue;
    bool is_complete = false;
    start = SkipBrokenBatch(stretch, next, &is_complete);
    const uint64_t into_page = (stretch.start.offset() + start) % kBlockPageBytes;
    const uint64_t whole_page = start + (into_page == 0 ? 1 : 2) * kBlockPageBytes - into_page;  // the end of the next one
    const bool is_before_hole = !is_complete && IsGivenBack(stretch, start, std::min(stretch.limit, whole_page));
    if (is_behind_hole || is_before_hole) continue;
    ++report_->broken_batches;
    report_->lost.push_back("a batch of which a part is gone, at " + media_->Place(stretch.start + next));
  }
}

uint64_t Salvage::SkipBrokenBatch(const Stretch& stretch, uint64_t offset, bool* is_complete) const {
  const LogReader reader(media_->Resolve(stretch.start), stretch.entry_seed, stretch.limit);
  *is_complete = false;
  while (reader.ValidAt(offset)) {
    const auto& entry = *media_->Resolve<LogEntry>(stretch.start + offset);
    if (!entry.is_batch_member()) break;
    offset = NextEntryOffset(offset + LogEntrySize(entry));
    *is_complete = !entry.more_follows();
    if (*is_complete) break;
  }
  return offset;
}

// A page that was given back is zero, also if it has blocks again since. The first line of an entry has its sizes. If that line
// ends in such a page, the sizes are unknown.
bool Salvage::IsGivenBack(const Stretch& stretch, uint64_t begin, uint64_t end) const {
  if (!stretch.may_have_hole) return false;
  const uint64_t start = stretch.start.offset();
  const PoolRange pages = PagesInside(start + begin, start + end);
  if (pages.empty()) return false;
  const uint8_t* const bytes = media_->image(stretch.start.region())->base() + pages.begin;
  if (*bytes != 0 || std::memcmp(bytes, bytes + 1, pages.end - pages.begin - 1) != 0) return false;
  if (pages.begin < start + begin + sizeof(LogEntry)) return true;
  const LogReader reader(media_->Resolve(stretch.start), stretch.entry_seed, stretch.limit, begin);
  const LogEntry* const entry = reader.entry_at_start();
  return entry != nullptr && pages.begin < start + begin + LogEntrySize(*entry);
}

void Salvage::Lose(const Stretch& stretch, uint64_t begin, uint64_t end) {
  BRAIDDB_DCHECK(begin < end && end <= stretch.limit);
  ++report_->damaged_stretches;
  report_->damaged_bytes += end - begin;
  report_->lost.push_back(std::to_string(end - begin) + " bytes of log at " + media_->Place(stretch.start + begin));
}

// ---- Families

void Salvage::Keep(const LogEntry* entry) {
  ++report_->entries;
  const Listed listed = media_->IsListed(entry->family());
  if (media_->manifest_is_sound() && media_->IsGarbage(*entry)) return;
  if (listed == Listed::kYes) {
    found_[entry->family()].push_back({0, entry});
  } else if (listed == Listed::kNo && !entry->is_obsolete()) {
    ++strays_;
  }
}

void Salvage::FindRanges() {
  const auto is_record = [](const Found& found) { return RangeRecord::IsKey(found.entry->key()); };
  for (uint32_t id = 1; id < kMaxFamilies; ++id) {
    const auto listed = std::find_if(media_->families().begin(), media_->families().end(),
                                     [id](const MediaFamily& family) { return family.id == id; });
    const bool is_known = listed != media_->families().end();
    if (is_known ? listed->name != kRangeTombstonesFamilyName : !std::all_of(found_[id].begin(), found_[id].end(), is_record))
      continue;
    for (const Found& found : found_[id]) {
      const LogEntry& entry = *found.entry;
      auto tombstone = std::make_shared<RangeTombstone>();
      uint32_t family = 0;
      if (entry.type() == EntryType::kPut &&
          RangeRecord::Parse(entry.key(), entry.value(), entry.sequence(), &family, tombstone.get()))
        ranges_[family].push_back(std::move(tombstone));
    }
    found_[id] = {};
  }
}

void Salvage::ChooseFamilies(const CheckOptions& options, const std::vector<KeyOrder>& orders) {
  FindRanges();
  sorting_ = Sorting();
  sorting_.progress = options.progress;
  for (const auto& found : found_) sorting_.steps += 2 * found.size();
  if (options.progress) options.progress(0, bytes_);
  for (size_t i = 0; i < media_->families().size(); ++i) {
    const MediaFamily& family = media_->families()[i];
    if (family.name == kRangeTombstonesFamilyName) continue;
    families_.push_back({family.id, family.name, orders[i].comparator(), family.l1, {}, 0});
    ChooseNewest(&families_.back());
  }
  if (!media_->manifest_is_sound()) GuessFamilies(options);
  if (strays_ != 0)
    report_->lost.push_back(std::to_string(strays_) + " log entries of column families that the database does not have");
  if (report_->doubtful_keys != 0) {
    report_->lost.push_back(std::to_string(report_->doubtful_keys) +
                            " keys whose newest version is marked obsolete while an older one is not: taken as deleted");
  }
}

void Salvage::GuessFamilies(const CheckOptions& options) {
  const Comparator* const order = options.comparator != nullptr ? options.comparator : BytewiseComparator();
  families_.push_back({0, kDefaultColumnFamilyName, order, std::nullopt, {}, 0});
  ChooseNewest(&families_.back());
  for (uint32_t id = 1; id < kMaxFamilies; ++id) {
    if (found_[id].empty()) continue;
    Family family{id, "family-" + std::to_string(id), BytewiseComparator(), std::nullopt, {}, 0};
    ChooseNewest(&family);
    if (family.entries.empty()) continue;
    report_->lost.push_back("name and order of a column family: its " + std::to_string(family.keys) + " keys are in '" +
                            family.name + "', ordered bytewise; it may have been dropped");
    families_.push_back(std::move(family));
  }
}

void Salvage::ChooseNewest(Family* family) {
  const KeyOrder order(family->comparator);
  std::vector<Found>& found = found_[family->id];
  for (Found& one : found) {
    one.prefix = order.Prefix(one.entry->key());
    NoteSorted();
  }
  std::sort(found.begin(), found.end(), [&order](const Found& a, const Found& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return CompareEntries(order, *a.entry, *b.entry) < 0;
  });
  const LogEntry* last = nullptr;         // the last version that was taken
  std::vector<const LogEntry*> versions;  // versions of this key to save
  bool is_applied = false;                // `last` is an operand that is saved, so the next older version counts
  bool is_hidden = false;                 // the newest version is marked obsolete
  bool doubtful = false;
  bool is_deleted = false;  // a range tombstone hides `last`
  std::shared_ptr<const RangeTombstones> ranges;
  if (const auto known = ranges_.find(family->id); known != ranges_.end())
    ranges = RangeTombstones::With(nullptr, known->second, order);
  const auto take = [&](const LogEntry* entry) {
    last = entry;
    is_applied = false;
    is_deleted = ranges != nullptr && ranges->Hides(entry->key(), entry->sequence(), kMaxSequence);
    if (is_deleted) return;  // the tombstone hides older versions as well
    is_applied = !entry->is_obsolete() && entry->is_operand();
    if (!entry->is_obsolete() && entry->type() != EntryType::kDelete) versions.push_back(entry);
  };
  for (const auto& [prefix, entry] : found) {
    NoteSorted();
    if (last == nullptr || order.Compare(last->key(), entry->key()) != 0) {
      Save(&versions, family);
      take(entry);
      is_hidden = entry->is_obsolete() && !is_deleted;
      doubtful = false;
    } else if (last->sequence() == entry->sequence()) {  // one is a copy of the other, or the put that has replaced an operand
      const bool is_better = last->is_obsolete() || (last->is_operand() && !entry->is_operand());
      if (!is_better || entry->is_obsolete()) continue;
      if (!last->is_obsolete() && is_applied) versions.pop_back();
      take(entry);
      is_hidden = false;
    } else if (is_applied) {
      take(entry);
    } else if (is_hidden && !entry->is_obsolete() && !doubtful) {
      doubtful = true;
      ++report_->doubtful_keys;
    }
  }
  Save(&versions, family);
  found = {};
}

void Salvage::NoteSorted() {
  if (++sorting_.done % kStepsPerReport != 0 || !sorting_.progress) return;
  const double share = static_cast<double>(sorting_.done) / static_cast<double>(sorting_.steps);
  sorting_.progress(static_cast<uint64_t>(static_cast<double>(bytes_) * share), bytes_);
}

void Salvage::Save(std::vector<const LogEntry*>* versions, Family* family) {
  family->keys += !versions->empty();
  family->entries.insert(family->entries.end(), versions->rbegin(), versions->rend());
  versions->clear();
}

}  // namespace braiddb
