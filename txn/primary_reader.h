// PrimaryReader: what a database holds that somebody else writes, read from the segments of its log, without his help.
//
// GOAL   One state that the database had, or could have been seen to have, during the call: whole batches, nothing that was
// deleted.
// STEPS  1 list the segments, and read all of their entries but for those that are obsolete; tombstones also then
//        2 read what was written meanwhile, be it obsolete or not: to the ends of these segments, and all of new ones
//        3 M is the largest number that was seen. Read what was written meanwhile up to M
//        4 list the segments again: if one is gone that was not read to its end, begin anew.
//        Of each key the newest version counts, or what its operands make of the newest that is none.
// WHY WHAT WAS DELETED DOES NOT COME BACK  An obsolete put is left out by 1 because something newer hides it, or a tombstone
//   did, which is gone with its segment since. What is not obsolete is hidden by something that is there, or was written after
//   it was read, which 2 finds; or that, too, was hidden, and so on: the last of them lives, or is a tombstone. Copies of
//   relocations stand for what is marked moved; their segments are sealed before that.
//   Where flushes copy, an entry of the log that is below the boundary of after the first list is garbage, whatever its marks:
//   its copy, or what hides it, is in a segment that was sealed before.
//   Records of ranges that were deleted count also when they are obsolete: what they say of smaller numbers stays true. One that
//   is gone with its segment was forgotten when all that it hid was obsolete.
// WHY NO SEGMENT IS MISSED  Generations ascend in each region, and come to the media in order. One that is there neither at the
//   end, nor was read whole, was taken and released meanwhile. The newest generation counts even if its segment was released: its
//   slot of the directory keeps it. Only the slot with the newest generation may be about to be used. If it is unused at the
//   start, its fields must be the same at the end.
// WHY NO FAMILY IS MIXED UP  The MANIFEST is read before and after: the id of one that was dropped meanwhile may be another's.
//   Such a family counts as one that was dropped before.
// WHY IT ENDS  Read begins anew when a segment was freed between 1 and 4; and, once each in the life of a database, when the
//   families of deleted ranges and of prepared transactions have come. While the caller has a ReaderHold (db/reader_hold.h) the
//   primary frees no segment but these: one of which the release was under way when the hold began; an open one that nothing
//   was written to, or of which the write was refused; and copies of a relocation or a flush that failed. A crash would make what
//   is in the last two count, so they cannot wait. All else is not in the way: merges relink entries, which are read one by one;
//   relocations write copies before they free; the MANIFEST is read as it is at one moment, wherever it moved to.
// WHY IT IS ONE STATE  A write of which another one could know was acknowledged before that began. If the other one has a
//   number up to M, it was seen by 2 at the latest, so the first was on media when 3 began. Batches are whole: numbers of one
//   are drawn at once, and entries of which the last is not there do not count.
// WHY WHAT IS READ IS RIGHT  Entries, descriptors and the MANIFEST have checksums, those of entries seeded with a number of their
//   segment's use.
// What is not acknowledged yet may be seen.
//
// ReadUpdates: what was written since the last read, without reading the rest again.
// GOAL   The cost of following a database is that of the new writes.
// STEPS  2, 3 and 4 from where the last read ended. M0 is the M of the last read; M is the largest number seen now. The result is
//        a change for each key that was written; the caller keeps the rest.
// WHY OLD NUMBERS ARE LEFT OUT  An entry with a number up to M0 that was not read before is a copy: what it says is in the last
//   state. A write cannot be late in a segment that step 3 of the last read did not list: a writer takes its segment first and
//   draws the number then, so the number is larger than M0. In a segment that was seen open, which has no copies, an entry with
//   such a number is a late write: it may be older than what the last state has of its key, so all must be read again.
// WHY COPIES DO NO HARM  A copy with a number above M0 has the effect of its original and of the older versions. Copies in kIndex
//   segments are not read: their originals were, or a segment of the log is missing.
// WHY NOTHING IS MISSED  As above, with the segments and generations that the last read's step 4 has seen in place of the first
//   list.
// WHY OTHER FILES SHOW  A database that was restored takes generations again. A segment in use with a generation that the last
//   read has accounted for must be in its last list, with the same seed, and must have what was read of it.
// WHAT IS NOT SEEN  A compaction filter removes entries without a write. With a filter all is read each time.
// WHEN ALL IS READ AGAIN  After Aborted. The reasons: no last state; a late write; a missed segment; another set of families;
//   other files, for example of a database that was restored; a compaction filter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/options.h"
#include "braiddb/status.h"
#include "index/range_tombstones.h"
#include "log/log_entry.h"
#include "pmem/pool_files.h"

namespace braiddb {

class PrimaryReader {
 public:
  struct Family {
    ColumnFamilyOptions options;
    std::string name;
    bool is_listed = false;  // at the last Read
    uint32_t id = 0;         // then
    uint64_t number = 0;     // tells it from others that have had the id
    struct Less {
      const Comparator* comparator;
      bool operator()(const std::string& a, const std::string& b) const { return comparator->Compare(a, b) < 0; }
    };
    // Of Read.
    std::map<std::string, std::string, Less> content{Less{options.comparator}};
    // Of ReadUpdates: the new value of each changed key, or nothing if the key is gone.
    std::map<std::string, std::optional<std::string>, Less> changes{Less{options.comparator}};
    // Of ReadUpdates. All keys in these ranges are gone, except for those in `changes`.
    std::vector<RangeTombstones::Tombstone> deleted_ranges;
  };
  // Looks up what the last state has of a key of families()[family].
  using FindBase = std::function<Status(size_t family, Slice key, std::optional<std::string>* value)>;

  // `options`, `path`: of the primary. The families are those that are read; the default one comes first.
  PrimaryReader(const Options& options, std::string path, std::vector<ColumnFamilyDescriptor> families);

  // Reads all. Aborted: something was freed meanwhile; again, at last with a ReaderHold. NotFound: there is no database;
  // Corruption: what is there is damaged. InvalidArgument: another comparator, or operands and no merge operator.
  Status Read();
  // Reads the changes since the last call of either method. Aborted: all must be read, since Keep was not called after that call,
  // or for another reason. Other errors: as Read.
  Status ReadUpdates(const FindBase& find_base);
  // The caller has kept the state or the changes of the last call, which returned OK.
  void Keep() { has_state_ = true; }

  const std::string& path() const { return path_; }
  std::vector<Family>& families() { return families_; }
  // The largest number of a user's write that is in the state.
  uint64_t last_update() const { return last_update_; }

 private:
  struct Version {
    uint64_t sequence;
    EntryType type;
    std::string value;
  };
  // Newest first; nothing behind the first that is no operand.
  using Versions = std::vector<Version>;
  struct Progress {
    uint64_t seed = 0;      // of the entries
    uint64_t end = 0;       // read so far
    bool is_whole = false;  // the segment was sealed, and all of it was read
    bool is_short = false;  // … and not all of it is valid: it was released, or is damaged
    bool was_open = false;  // has entries of writers only
  };
  struct Region {
    explicit Region(std::string directory) : files(std::move(directory)) {}
    PoolFiles files;
    std::unordered_map<uint64_t, Progress> progress;  // by generation
    // The list of step 1. After a read: the last list.
    std::vector<ListedSegment> first;
    // Of the same time: all segments with generations up to this one that were in use are in `first`. This one itself, if it is
    // not used, may have been about to be used.
    NewestSlot newest;
    uint64_t file = 0;  // identity of the first part
  };
  enum class Step { kFirst, kMeanwhile, kUpToLast };

  // Tells sets of families apart: listed, id, number of each; then the hidden families.
  using FamilySet = std::vector<std::tuple<bool, uint32_t, uint64_t>>;

  Status ReadFamilies();
  Status CheckFamilies();
  FamilySet Families() const;
  Status OpenRegions();
  Status CheckRegion(Region* region, const PoolFiles& files) const;
  Status FindGarbage();
  Status ReadSegments(Step step);
  Status ReadSegment(Region* region, const ListedSegment& segment, Step step);
  Status CheckNothingMissed();
  static Status CheckSegment(const Region& region, uint64_t generation, bool is_there);
  static Status CheckNewest(const Region& region, const NewestSlot& now, bool is_there);
  static Status CheckKnown(const Region& region, const std::vector<ListedSegment>& listed);
  bool MustBeRead(SegmentState state) const;
  void Add(const LogEntry& entry);
  Status Settle();
  Status SettleUpdates(const FindBase& find_base);
  // Without what ranges that were deleted hide.
  static void LeaveOut(const RangeTombstones& ranges, Slice key, Versions* versions);
  Status Resolve(const Family& family, const std::string& key, const Versions& versions, bool* is_there,
                 std::string* value) const;

  const Options options_;
  const std::string path_;
  std::vector<Family> families_;
  std::vector<Region> regions_;
  std::unordered_map<uint32_t, size_t> family_of_;  // by id
  std::vector<std::map<std::string, Versions, Family::Less>> versions_;
  uint32_t range_family_ = 0;                                           // that of range tombstones; 0: there is none
  uint32_t prepared_family_ = 0;                                        // that of prepared transactions; 0: there is none
  std::map<uint32_t, std::vector<RangeTombstones::Tombstone>> ranges_;  // by family
  std::vector<uint64_t> buffer_;
  uint64_t garbage_below_ = 0;  // numbers of entries that are no copies
  uint64_t last_sequence_ = 0;  // M
  uint64_t last_update_ = 0;
  bool has_copies_ = false;  // a family's last level has copies of entries (LevelKind)
  bool has_filter_ = false;
  bool has_state_ = false;    // the caller has kept the result of the last call
  bool is_update_ = false;    // ReadUpdates is under way
  uint64_t known_up_to_ = 0;  // M0
};

}  // namespace braiddb
