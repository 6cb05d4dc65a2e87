// Test support: log entries and tables of L0 made of them, without a database.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compaction/list_builder.h"
#include "log/log_writer.h"
#include "lsm/pm_table.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"

namespace braiddb::test {

// One entry. Sequence numbers are unique in a store, so they name entries.
struct Version {
  std::string key;
  uint64_t sequence = 0;
  bool tombstone = false;
  uint32_t region = 0;
  uint32_t height = 1;

  friend bool operator==(const Version&, const Version&) = default;
};

inline void PrintTo(const Version& version, std::ostream* out) {
  *out << Printable(version.key) << "@" << version.sequence << (version.tombstone ? " deleted" : "") << " r" << version.region
       << " h" << version.height;
}

// Regions and segments. Every entry is durable when Write returns.
class EntryStore {
 public:
  static constexpr uint64_t kSegmentSize = 256ull << 10;

  explicit EntryStore(uint32_t regions, PersistMode mode = PersistMode::kEmulated, ListKind lists = ListKind::kBraided)
      : lists_(lists) {
    options_.database_path = directory_.File("db");
    options_.database_id = kFixedDatabaseId;
    options_.regions = regions;
    options_.max_region_size = 256ull << 20;
    options_.persist_mode = mode;
    std::filesystem::create_directories(options_.database_path);
    OpenRegions();
  }

  // As after a crash: everything in DRAM is lost. PmPtrs stay what they are.
  void OpenRegions() {
    Check(Store::Open(options_, kSegmentSize, &store_));
    regions()->SetListKind(lists_);
    writers_.clear();
    for (uint32_t region = 0; region < regions()->count(); ++region) writers_.push_back(std::make_unique<LogWriter>());
  }

  // For a child process, which may open them.
  void CloseRegions() {
    writers_.clear();
    store_ = Store();
  }

  // As an open does that finds what is on media now; regions stay mapped.
  void ReopenSegments() {
    store_.allocator.reset();
    Check(SegmentAllocator::Open(regions(), kSegmentSize, &store_.allocator));
    for (auto& writer : writers_) writer = std::make_unique<LogWriter>();
  }

  RegionSet* regions() const { return store_.regions.get(); }
  SegmentAllocator* segments() const { return store_.allocator.get(); }
  const KeyOrder& order() const { return order_; }
  LogEntry* Resolve(PmPtr pointer) const { return regions()->Resolve<LogEntry>(pointer); }

  // ---- Writing

  // Writes the versions one after the other into one segment of the first one's region, as a batch if there are several. Returns
  // where they are.
  std::vector<PmPtr> WriteBatch(const std::vector<Version>& versions) {
    uint64_t bytes = 0;
    for (const Version& version : versions) bytes = NextEntryOffset(bytes) + EntryBytes(version);
    LogWriter& writer = *writers_[versions.front().region];
    LogSlot slot;
    Check(writer.Reserve(segments(), versions.front().region, bytes, &slot));
    std::vector<PmPtr> pointers;
    uint64_t end = slot.offset;
    for (const Version& version : versions) {
      end = NextEntryOffset(end);
      const uint64_t flags = versions.size() == 1           ? 0
                             : &version == &versions.back() ? LogEntry::kBatchMember
                                                            : LogEntry::kBatchMember | LogEntry::kMoreFollows;
      const std::string value = ValueOf(version);
      pointers.push_back(slot.segment->ptr(end));
      end = LogWriter::WriteEntry(slot, end, version.sequence, flags,
                                  {version.tombstone ? EntryType::kDelete : EntryType::kPut, version.key, value, version.height});
    }
    EXPECT_TRUE(regions()->persistence()->Persist(slot.segment->data() + slot.offset, bytes));
    Check(writer.Commit(segments(), slot, static_cast<uint32_t>(versions.size()), versions.back().sequence));
    for (const PmPtr pointer : pointers) pointers_[Resolve(pointer)->sequence()] = pointer;
    return pointers;
  }
  PmPtr Write(const Version& version) { return WriteBatch({version})[0]; }
  void SealSegment(uint32_t region) { Check(writers_[region]->Seal(segments())); }
  LogWriter* writer(uint32_t region) { return writers_[region].get(); }

  // Where the entry with this sequence number is.
  PmPtr Find(uint64_t sequence) const { return pointers_.at(sequence); }
  bool IsDead(uint64_t sequence) const { return Resolve(Find(sequence))->is_dead(); }
  bool IsObsolete(uint64_t sequence) const { return Resolve(Find(sequence))->is_obsolete(); }

  // Writes the versions in the order given, and links them in entry order into a table.
  std::shared_ptr<PmTable> MakeTable(const std::vector<Version>& versions) {
    std::vector<PmPtr> pointers;
    for (const Version& version : versions) pointers.push_back(Write(version));
    std::sort(pointers.begin(), pointers.end(),
              [this](PmPtr a, PmPtr b) { return CompareEntries(order_, *Resolve(a), *Resolve(b)) < 0; });
    auto table = std::make_shared<PmTable>(next_table_id_++, UINT64_MAX, regions(), &order_);
    ListBuilder builder(regions(), table.get());
    for (const PmPtr pointer : pointers) builder.Append(Resolve(pointer), pointer);
    builder.Finish();
    return table;
  }

  // ---- Looking

  Version VersionAt(PmPtr pointer) const {
    const LogEntry* entry = Resolve(pointer);
    return {std::string(entry->key()), entry->sequence(), entry->type() == EntryType::kDelete, pointer.region(), entry->height()};
  }

  // What a list holds, in its order.
  std::vector<Version> Dump(const BraidedList& list) const {
    std::vector<Version> versions;
    for (const PmPtr pointer : Layer(list, 0, 0)) versions.push_back(VersionAt(pointer));
    return versions;
  }

  // Whether the bottom list is in strict order with no dead entry in it, and each upper list of each region has exactly the
  // entries of that region (oblivious lists: region 0's those of all regions, the others' none) that are tall enough, in the same
  // order.
  testing::AssertionResult IsWhole(const BraidedList& list) const {
    const std::vector<PmPtr> bottom = Layer(list, 0, 0);
    for (size_t i = 0; i < bottom.size(); ++i) {
      if (Resolve(bottom[i])->is_dead()) return testing::AssertionFailure() << "dead in the list: " << Text(bottom[i]);
      if (i > 0 && CompareEntries(order_, *Resolve(bottom[i - 1]), *Resolve(bottom[i])) >= 0) {
        return testing::AssertionFailure() << "out of order: " << Text(bottom[i - 1]) << ", " << Text(bottom[i]);
      }
    }
    for (uint32_t region = 0; region < regions()->count(); ++region) {
      for (uint32_t layer = 1; layer < kMaxHeight; ++layer) {
        std::vector<PmPtr> expected;
        for (const PmPtr pointer : bottom) {
          if (regions()->ListRegion(pointer.region()) == region && Resolve(pointer)->height() > layer)
            expected.push_back(pointer);
        }
        const std::vector<PmPtr> found = Layer(list, region, layer);
        if (found == expected) continue;
        return testing::AssertionFailure() << "layer " << layer << " of region " << region << " has " << found.size()
                                           << " entries, the bottom list " << expected.size() << " for it, or others";
      }
    }
    return testing::AssertionSuccess();
  }

  static std::vector<uint64_t> Sequences(const std::vector<Version>& versions) {
    std::vector<uint64_t> sequences;
    for (const Version& version : versions) sequences.push_back(version.sequence);
    return sequences;
  }

  // `count` versions with sequence numbers from *sequence on, of keys NumberedKey(0 … keys-1), one in `tombstones` of them a
  // tombstone, with heights as they are drawn in the log, in all regions.
  std::vector<Version> DrawVersions(Random* random, size_t count, uint64_t keys, uint64_t tombstones, uint64_t* sequence) const {
    std::vector<Version> versions;
    for (size_t i = 0; i < count; ++i) {
      versions.push_back({NumberedKey(random->Uniform(keys)), (*sequence)++, random->OneIn(tombstones),
                          static_cast<uint32_t>(random->Uniform(regions()->count())), RandomHeight(random->Next())});
    }
    return versions;
  }

  static std::string ValueOf(const Version& version) {
    return version.tombstone ? "" : PatternedValue(version.sequence, version.sequence % 23);
  }
  static uint64_t EntryBytes(const Version& version) {
    return LogEntrySize(version.height, version.key.size(), ValueOf(version).size());
  }

 protected:
  static void Check(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "level store: %s\n", status.ToString().c_str());
    std::abort();
  }

 private:
  std::vector<PmPtr> Layer(const BraidedList& list, uint32_t region, uint32_t layer) const {
    std::vector<PmPtr> pointers;
    const uint64_t* tower = list.head(region);
    // More entries than were ever written: it goes in a circle.
    while (pointers.size() <= pointers_.size()) {
      const PmPtr pointer(LoadAcquire(&tower[layer]) & ~LogEntry::kTagBits);
      if (!pointer) break;
      if (!regions()->Contains(pointer, sizeof(LogEntry)) || (layer > 0 && regions()->ListRegion(pointer.region()) != region)) {
        ADD_FAILURE() << "layer " << layer << " of region " << region << " leads to " << pointer.raw();
        break;
      }
      pointers.push_back(pointer);
      tower = Resolve(pointer)->next;
    }
    return pointers;
  }
  std::string Text(PmPtr pointer) const { return testing::PrintToString(VersionAt(pointer)); }

  const ListKind lists_;
  TestDirectory directory_;
  RegionSetOptions options_;
  Store store_;
  const KeyOrder order_{BytewiseComparator()};
  std::vector<std::unique_ptr<LogWriter>> writers_;  // by region
  std::map<uint64_t, PmPtr> pointers_;               // by sequence number
  uint64_t next_table_id_ = 1;
};

// The versions of a table sorted as a list has them.
inline std::vector<Version> InEntryOrder(std::vector<Version> versions) {
  std::sort(versions.begin(), versions.end(),
            [](const Version& a, const Version& b) { return a.key != b.key ? a.key < b.key : a.sequence > b.sequence; });
  return versions;
}

inline std::vector<uint64_t> Ascending(std::vector<uint64_t> snapshots) {
  std::sort(snapshots.begin(), snapshots.end());
  return snapshots;
}

// Of the versions of one key, newest first: those that a reader at one of the snapshots or from now on sees. In the last level
// (`last`) a tombstone that hides nothing is not needed. `snapshots`: ascending.
inline std::vector<Version> SeenOf(const std::vector<Version>& versions, const std::vector<uint64_t>& snapshots, bool last) {
  std::vector<Version> result;
  uint64_t newer = 0;  // number of the version before; 0: none
  for (const Version& version : versions) {
    const auto reader = std::lower_bound(snapshots.begin(), snapshots.end(), version.sequence);
    if (newer == 0 || (reader != snapshots.end() && *reader < newer)) result.push_back(version);
    newer = version.sequence;
  }
  while (last && !result.empty() && result.back().tombstone) result.pop_back();
  return result;
}

}  // namespace braiddb::test
