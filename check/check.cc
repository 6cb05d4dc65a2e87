// CheckDatabase: the steps of a check, and the comparison of their results.
#include "braiddb/check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "check/check_files.h"
#include "check/list_check.h"
#include "check/media.h"
#include "check/segment_check.h"
#include "pmem/device_record.h"
#include "util/check.h"
#include "util/comparator_name.h"
#include "util/file.h"
#include "util/no_path.h"

namespace braiddb {
namespace {

// Compares the entries that count in each segment with the entries that the lists have reached: each entry that counts must be
// in exactly one list. [CC-3] [CC-4]
void CompareContents(const Media& media, const std::vector<SegmentContents>& contents, const ReachedEntries& reached,
                     Findings* findings) {
  BRAIDDB_DCHECK(contents.size() == media.segments().size() && reached.segments() == contents.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    if (contents[i].live == reached[i]) continue;
    findings->Add("the lists have " + std::to_string(reached[i].count) + " entries of a segment in which " +
                      std::to_string(contents[i].live.count) + " count" +
                      (contents[i].live.count == reached[i].count ? ", but not the same" : ""),
                  media.Place(media.segments()[i].start()) + ", segment");
  }
}

// Fills the counts of the report.
void CountSegments(const Media& media, const std::vector<SegmentContents>& contents, CheckReport* report) {
  report->regions = media.regions();
  report->families = media.families().size();
  report->merge_running = media.manifest().merge_id != 0;
  for (const MediaSegment& segment : media.segments()) {
    report->segments += segment.used();
    report->free_segments += segment.state == SegmentState::kFree;
  }
  for (const SegmentContents& segment : contents) {
    report->dead_entries += segment.dead;
    report->log_entries += segment.to_replay;
  }
  for (uint32_t region = 0; region < media.regions(); ++region) {
    const RegionImage* image = media.image(region);
    if (image != nullptr && media.root(region) != nullptr)
      report->allocation_pending |= PoolView(image->base(), image->bytes()).RedoPending();
  }
}

// Calls `visit` for each region whose files exist. Ends at the first error.
Status ForEachRegion(const Media& media, const std::function<Status(RegionDevices*, const std::string& directory)>& visit) {
  for (uint32_t region = 0; region < media.regions(); ++region) {
    if (media.image(region) == nullptr) continue;
    const std::string& directory = media.image(region)->directory();
    RegionDevices devices(directory, nullptr);
    if (Status status = visit(&devices, directory); !status.ok()) return status;
  }
  return Status::OK();
}

// Adds a finding for each region whose last session may have lost flushed stores (device_record.h).
Status FindUnsafeShutdowns(const Media& media, Findings* findings) {
  return ForEachRegion(media, [&](RegionDevices* devices, const std::string& directory) {
    std::string what;
    Status status = devices->Examine(&what);
    if (!what.empty()) {
      findings->Add(what, directory + "/" + kDeviceRecordName,
                    "if this is all that is found, run `braiddb check --acknowledge-unsafe-shutdown`; acknowledged writes of the "
                    "last seconds may be missing all the same. Else restore a copy, or run `braiddb repair`");
    }
    return status;
  });
}

}  // namespace

Status LockForReading(const std::string& path, posix::Fd* lock) {
  const std::string name = path + "/LOCK";
  for (;;) {
    posix::Fd fd(OpenOwnFile(name, O_RDONLY, true), true);
    if (!fd.valid()) return Status::OK();  // without the file, the locks of the regions' directories exclude an open
    if (LockFile(fd.get(), LOCK_SH) != 0)
      return Status::Busy("the database in " + path + " is open; close it in the process that has it open");
    // A removal of the database may have removed the file before it was locked.
    if (!IsFileAt(fd.get(), name)) continue;
    *lock = std::move(fd);
    return Status::OK();
  }
}

Status ChooseComparator(const CheckOptions& options, const MediaFamily& family, const Comparator** result) {
  std::vector<const Comparator*> known = {options.comparator};
  known.insert(known.end(), BuiltInComparators().begin(), BuiltInComparators().end());
  known.insert(known.end(), options.comparators.begin(), options.comparators.end());
  for (const Comparator* comparator : known) {
    if (comparator != nullptr && family.comparator == StoredName(*comparator)) {
      *result = comparator;
      return Status::OK();
    }
  }
  return Status::NotSupported("the " + (family.id == 0 ? "database" : "column family '" + Escaped(family.name) + "'") +
                              " is ordered by the comparator '" + family.comparator + "', which is not known here");
}

Status ChooseOrders(const CheckOptions& options, const Media& media, std::vector<KeyOrder>* orders) {
  orders->clear();
  for (const MediaFamily& family : media.families()) {
    const Comparator* comparator = nullptr;
    if (Status status = ChooseComparator(options, family, &comparator); !status.ok()) return status;
    orders->push_back(KeyOrder(comparator));
  }
  return Status::OK();
}

// STEPS  1 load the media  2 choose the comparators  3 read the segments, entry by entry  4 if the MANIFEST is sound, follow
//        the lists 5 compare both  6 look for unsafe shutdowns, or acknowledge them. Damage is a finding; an error means that
//        the check could not be made.
Status CheckFiles(const CheckOptions& options, const std::string& path, CheckReport* report) {
  *report = CheckReport();
  Findings findings(report);
  std::unique_ptr<Media> media;
  if (Status status = Media::Load(path, options.region_paths, &findings, &media); !status.ok()) return status;
  std::vector<KeyOrder> orders;
  if (Status status = ChooseOrders(options, *media, &orders); !status.ok()) return status;
  const std::vector<SegmentContents> contents = CheckSegments(*media, options.progress, &findings);
  if (media->manifest_is_sound()) {
    std::vector<ListCounts> counts;
    ReachedEntries reached = MakeReachedEntries(*media, contents, options.progress);
    CheckLists(*media, orders, &findings, &reached, &counts);
    for (const ListCounts& of_family : counts) {
      report->tables += of_family.tables;
      report->l0_entries += of_family.l0_entries;
      report->l1_entries += of_family.l1_entries;
      report->obsolete_entries += of_family.obsolete_entries;
    }
    if (media->lists_are_there()) CompareContents(*media, contents, reached, &findings);
  }
  CountSegments(*media, contents, report);
  if (!options.acknowledge_unsafe_shutdown) return FindUnsafeShutdowns(*media, &findings);
  return ForEachRegion(*media, [](RegionDevices* devices, const std::string&) { return devices->Acknowledge(); });
}

Status CheckDatabase(const CheckOptions& options, const std::string& path, CheckReport* report) {
  if (path.empty()) return NoPath();
  posix::Fd lock;
  if (Status status = LockForReading(path, &lock); !status.ok()) return status;
  return CheckFiles(options, path, report);
}

}  // namespace braiddb
