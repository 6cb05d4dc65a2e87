// Test support: the files of a database with several column families, made without a database, so that a test can have them say
// what no database would.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compaction/last_level.h"
#include "compaction/list_builder.h"
#include "log/log_writer.h"
#include "lsm/manifest.h"
#include "nvtree/nv_level.h"
#include "skiplist/braided_skiplist.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"

namespace braiddb::test {

// Each write is durable and has the next sequence number; it goes to the regions in turn. The default family is there.
class FamilyMedia {
 public:
  FamilyMedia(const std::string& path, uint32_t regions, L1Kind l1 = L1Kind::kBraidedSkipList) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    RegionSetOptions options;
    options.database_path = path;
    options.regions = regions;
    options.max_region_size = 256ull << 20;
    options.persist_mode = PersistMode::kEmulated;
    EXPECT_OK(Store::Open(options, 256ull << 10, &store_));
    for (uint32_t region = 0; region < regions; ++region) writers_.push_back(std::make_unique<LogWriter>());
    Create(0, 0, l1, BytewiseComparator());
    state.comparator = BytewiseComparator()->Name();
    state.l1_kind = static_cast<uint8_t>(l1);
  }

  uint32_t AddFamily(const std::string& name, L1Kind l1, const Comparator* comparator = BytewiseComparator()) {
    const auto id = static_cast<uint32_t>(families_.size());
    const uint64_t number = state.next_id++;
    Create(id, number, l1, comparator);
    state.families.push_back({id, name, comparator->Name(), static_cast<uint8_t>(l1), false, number, 0});
    return id;
  }

  PmPtr Write(uint32_t family, const std::string& key, EntryType type = EntryType::kPut) {
    return WriteUnlisted(family, key, type, &families_.at(family).since_rotation);
  }
  // In no table and no last level, whatever comes.
  PmPtr WriteUnlisted(uint32_t family, const std::string& key, EntryType type = EntryType::kPut,
                      std::vector<PmPtr>* list = nullptr) {
    const auto region = static_cast<uint32_t>(sequence_ % regions()->count());
    const std::string value = type == EntryType::kPut ? PatternedValue(sequence_, 30) : "";
    const uint32_t height = RandomHeight(random_.Next());
    const uint64_t bytes = LogEntrySize(height, key.size(), value.size());
    LogSlot slot;
    EXPECT_OK(writers_[region]->Reserve(store_.allocator.get(), region, bytes, &slot));
    LogWriter::WriteEntry(slot, slot.offset, sequence_, 0, {type, key, value, height, family});
    EXPECT_OK(writers_[region]->Commit(store_.allocator.get(), slot, 1, sequence_++));
    if (list != nullptr) list->push_back(slot.segment->ptr(slot.offset));
    return slot.segment->ptr(slot.offset);
  }
  // Several keys "<prefix>0" … of a family.
  void WriteMany(uint32_t family, const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) Write(family, prefix + std::to_string(i));
  }

  // What each family was written to since the last of these calls becomes a table of its own; all of them have one id and one
  // boundary, as those of a flush do.
  void Rotate() {
    const uint64_t id = state.next_id++;
    for (auto& [family, parts] : families_) {
      if (!parts.since_rotation.empty()) AddTable(id, family, parts.since_rotation);
      parts.since_rotation.clear();
    }
    state.log_boundary = sequence_;
  }
  // … goes to the last level, which it must not have been called for before.
  void RotateToLastLevels() {
    for (auto& [family, parts] : families_) {
      FillLastLevel(family, parts.since_rotation);
      parts.since_rotation.clear();
    }
    state.log_boundary = sequence_;
  }
  // … is in a table of copies: the oldest.
  void RotateToCopies() {
    for (auto& [family, parts] : families_) {
      if (parts.since_rotation.empty()) continue;
      AddTable(kRelocationId, family, parts.since_rotation);
      std::rotate(state.tables.begin(), state.tables.end() - 1, state.tables.end());
      parts.since_rotation.clear();
    }
    state.log_boundary = sequence_;
  }

  // ---- Pieces

  void AddTable(uint64_t id, uint32_t family, const std::vector<PmPtr>& entries) {
    state.tables.push_back({id, sequence_, entries.size(), Link(id, family, entries)->heads(), family});
  }
  void FillLastLevel(uint32_t family, const std::vector<PmPtr>& entries) {
    const Parts& parts = families_.at(family);
    if (parts.l1 == L1Kind::kNvTree) return FillTree(family, entries);
    const std::shared_ptr<PmTable> list = Link(1, family, entries);
    for (uint32_t region = 0; region < regions()->count(); ++region) {
      SkipListHead* const head = HeadOf(family, region);
      std::copy_n(list->list.head(region), kMaxHeight, head->next);
      head->checksum = SkipListHead::ComputeChecksum(head->next);
    }
  }
  SkipListHead* HeadOf(uint32_t family, uint32_t region) const {
    return static_cast<SkipListHead*>(families_.at(family).place.Find(*regions(), region, sizeof(SkipListHead)));
  }
  LeafTreeRoot* RootOf(uint32_t family) const {
    return static_cast<LeafTreeRoot*>(families_.at(family).place.Find(*regions(), 0, sizeof(LeafTreeRoot)));
  }
  LogEntry* EntryAt(PmPtr place) const { return regions()->Resolve<LogEntry>(place); }
  uint64_t EntrySeedAt(PmPtr place) const { return store_.allocator->Find(place)->entry_seed(); }
  void MarkDead(PmPtr place) { EntryAt(place)->next[0] |= LogEntry::kDeadBit; }
  ManifestState::Family* Listed(uint32_t family) { return state.FindFamily(family); }
  uint64_t next_sequence() const { return sequence_; }
  RegionSet* regions() const { return store_.regions.get(); }

  // The MANIFEST says what `state` does, or nothing; then the database is as if its process had been killed. The last call.
  void Close(bool damage_manifest = false) {
    EXPECT_OK(Manifest::Create(regions(), state));
    if (damage_manifest) *static_cast<uint64_t*>(regions()->Metadata(0, MetadataSlot::kManifest)) ^= 1;
    writers_.clear();
    store_ = Store();
  }

  ManifestState state;

 private:
  struct Parts {
    L1Kind l1;
    LevelPlace place;
    std::unique_ptr<KeyOrder> order;
    std::vector<PmPtr> since_rotation;
  };

  void Create(uint32_t family, uint64_t number, L1Kind l1, const Comparator* comparator) {
    Options options;
    options.l1 = l1;
    options.nv_leaf_size = kMinLeafBytes;
    const LevelPlace place{family, number};
    EXPECT_OK(LastLevel::Create(options, regions(), store_.allocator.get(), place));
    families_[family] = {l1, place, std::make_unique<KeyOrder>(comparator), {}};
  }

  std::vector<PmPtr> Sorted(const KeyOrder& order, std::vector<PmPtr> entries) const {
    std::sort(entries.begin(), entries.end(),
              [&](PmPtr a, PmPtr b) { return CompareEntries(order, *EntryAt(a), *EntryAt(b)) < 0; });
    return entries;
  }

  std::shared_ptr<PmTable> Link(uint64_t id, uint32_t family, const std::vector<PmPtr>& entries) const {
    const KeyOrder& order = *families_.at(family).order;
    auto table = std::make_shared<PmTable>(id, sequence_, regions(), &order);
    ListBuilder builder(regions(), table.get());
    for (const PmPtr place : Sorted(order, entries)) builder.Append(EntryAt(place), place);
    builder.Finish();
    return table;
  }

  void FillTree(uint32_t family, const std::vector<PmPtr>& entries) {
    const Parts& parts = families_.at(family);
    EpochManager epochs;
    const EntryKeys keys(regions(), parts.order.get());
    std::unique_ptr<NvTree> tree;
    ASSERT_OK(NvTree::Open({regions(), store_.allocator.get(), &epochs, parts.order.get(), &keys, parts.place, false}, 1, false,
                           &tree));
    std::vector<LeafChange> changes;
    for (const PmPtr place : Sorted(*parts.order, entries))
      changes.push_back({{parts.order->Prefix(EntryAt(place)->key()), place.raw()}});
    EXPECT_OK(tree->Apply(changes));
    EXPECT_OK(tree->Close());
  }

  Store store_;
  std::vector<std::unique_ptr<LogWriter>> writers_;  // by region
  std::map<uint32_t, Parts> families_;
  uint64_t sequence_ = 1;
  Random random_{11};
};

}  // namespace braiddb::test
