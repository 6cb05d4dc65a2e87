#include "tests/support/map_level.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "check/level_media.h"
#include "check/media.h"
#include "compaction/last_level.h"
#include "index/level_kind.h"
#include "log/log_reader.h"

namespace braiddb::test {
namespace {

struct MapRoot {
  static constexpr uint64_t kMagic = 0x54535450414d4244;
  uint64_t magic;
  uint64_t number;  // of the family
  uint64_t boundary;

  bool IsOf(uint64_t family_number) const { return magic == kMagic && number == family_number; }
};

struct EntryLess {
  using is_transparent = void;
  const KeyOrder* order;
  bool operator()(const LogEntry* a, const LogEntry* b) const { return CompareEntries(*order, *a, *b) < 0; }
  bool operator()(const LogEntry* a, const SearchKey& b) const { return CompareEntry(*order, *a, b) < 0; }
};
using EntryMap = std::map<LogEntry*, PmPtr, EntryLess>;

// ---- Reading

class MapCursor final : public EntryCursor {
 public:
  explicit MapCursor(std::shared_ptr<const EntryMap> map) : map_(std::move(map)), at_(map_->end()) {}

  uint64_t entries() const override { return map_->size(); }
  void SeekToFirst() override { Set(map_->begin()); }
  void SeekToLast() override { SetBefore(map_->end()); }
  void Seek(const SearchKey& target) override { Set(map_->lower_bound(target)); }
  void SeekBefore(const SearchKey& target) override { SetBefore(map_->lower_bound(target)); }
  void Next() override { Set(std::next(at_)); }
  void Prev() override { SetBefore(at_); }

 private:
  void Set(EntryMap::const_iterator at) {
    at_ = at;
    entry_ = at == map_->end() ? nullptr : at->first;
  }
  void SetBefore(EntryMap::const_iterator at) { Set(at == map_->begin() ? map_->end() : std::prev(at)); }

  const std::shared_ptr<const EntryMap> map_;
  EntryMap::const_iterator at_;
};

class MapView final : public OrderedLevel {
 public:
  MapView(const KeyOrder* order, std::shared_ptr<const EntryMap> map) : order_(*order), map_(std::move(map)) {}

  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override {
    for (auto at = map_->lower_bound(target); at != map_->end(); ++at) {
      if (!order_.Same(at->first->key(), target.key)) return nullptr;
      if (!at->first->is_dead()) return at->first;
      trace->met_dead = true;
    }
    return nullptr;
  }
  std::unique_ptr<EntryCursor> NewCursor() const override { return std::make_unique<MapCursor>(map_); }
  const std::shared_ptr<const EntryMap>& map() const { return map_; }

 private:
  const KeyOrder& order_;
  const std::shared_ptr<const EntryMap> map_;
};

// ---- Merging

// Decides key by key which versions stay in the map, and marks the others.
class MapMerger {
 public:
  MapMerger(const LastLevelParts& parts, const MergeJob& job, EntryMap* map, MergeStats* stats)
      : parts_(parts),
        job_(job),
        map_(*map),
        entry_filter_(job.entry_filters == nullptr ? nullptr : job.entry_filters->NewFilter()),
        keys_(job.key_filters[0], job.key_filters[1]),
        stats_(*stats) {}

  // `items`: the entries of the tables, all of them or those of some keys.
  Status MergeItems(const EntryMap& items) {
    for (auto first = items.begin(); first != items.end();) {
      auto last = std::next(first);
      while (last != items.end() && IsSameKey(last->first, first->first)) ++last;
      for (auto at = first; at != last; ++at) versions_.push_back({at->first, at->second, map_.contains(at->first), true});
      const SearchKey newest(*parts_.order, first->first->key(), kMaxSequence);
      for (auto at = map_.lower_bound(newest); at != map_.end() && IsSameKey(at->first, first->first); ++at) {
        if (!items.contains(at->first)) versions_.push_back({at->first, at->second, true, false});
      }
      DecideKey();
      if (job_.settled != nullptr) job_.settled->fetch_add(static_cast<uint64_t>(std::distance(first, last)));
      first = last;
    }
    return MarkLast();
  }

  Status SweepRange(const KeyRange& range) {
    auto at = range.begin == nullptr ? map_.begin() : map_.lower_bound(SearchKey(*parts_.order, *range.begin, kMaxSequence));
    while (at != map_.end() && (range.end == nullptr || parts_.order->Compare(at->first->key(), *range.end) < 0)) {
      LogEntry* const first = at->first;
      for (; at != map_.end() && IsSameKey(at->first, first); ++at) versions_.push_back({at->first, at->second, true, false});
      DecideKey();
    }
    return MarkLast();
  }

 private:
  struct Version {
    LogEntry* entry;
    PmPtr pointer;
    bool in_level;
    bool in_table;
    bool keep = true;
    bool moved = false;
  };

  bool IsSameKey(const LogEntry* a, const LogEntry* b) const { return parts_.order->Same(a->key(), b->key()); }

  void DecideKey() {
    std::sort(versions_.begin(), versions_.end(),
              [](const Version& a, const Version& b) { return a.entry->sequence() > b.entry->sequence(); });
    job_.filter->Decide(&versions_);
    for (Version& version : versions_) version.keep = version.keep && !version.entry->is_dead();
    const Version* dropped_by_user = nullptr;
    if (entry_filter_ != nullptr) {
      dropped_by_user = FilterNewest(
          entry_filter_.get(), [](const Version& v) { return v.in_table; }, &versions_);
    }
    if (dropped_by_user != nullptr) filtered_.push_back(dropped_by_user->entry);
    if (versions_[0].keep && versions_[0].entry->is_operand()) stats_.AddOperandKey(versions_[0].entry->key());
    for (size_t i = versions_.size(); i-- > 0;) {
      const Version& version = versions_[i];
      if (version.keep) {
        map_.emplace(version.entry, version.pointer);
        if (version.in_table) keys_.Add(KeyHash(*version.entry));
        stats_.merged += version.in_table;
        continue;
      }
      map_.erase(version.entry);
      stats_.dropped += version.in_table && !version.in_level;
      stats_.unlinked += version.in_level;
      // Without the mark of a put, or of an operand that a newer version hides, a deleted key would return.
      const bool is_last = version.entry->type() == EntryType::kDelete || &version == dropped_by_user || i == 0;
      if (is_last) {
        last_.push_back(version);
      } else {
        Mark(version);
      }
    }
    versions_.clear();
  }

  // P2, and its fence. ORDER: all marks of P1 before those of P2. [CC-45]
  Status MarkLast() {
    Persistence* const persistence = parts_.regions->persistence();
    if (!persistence->Drain()) return persistence->error();
    for (const Version& version : last_) Mark(version);
    last_.clear();
    if (!persistence->Drain()) return persistence->error();
    for (const LogEntry* entry : filtered_) entry_filter_->Forget(*entry);
    filtered_.clear();
    return Status::OK();
  }

  void Mark(const Version& version) {
    const uint64_t word = LoadRelaxed(&version.entry->next[0]);
    if ((word & LogEntry::kDeadBit) == 0) {
      StoreRelease(&version.entry->next[0], word | LogEntry::kDeadBit);
      Segment* const segment = parts_.segments->Find(version.pointer);
      if (segment != nullptr) CountObsolete(segment, version.pointer, *version.entry);
    }
    parts_.regions->persistence()->Flush(&version.entry->next[0], sizeof(uint64_t));
    ++stats_.flushed_lines;
  }

  const LastLevelParts& parts_;
  const MergeJob& job_;
  EntryMap& map_;
  const std::unique_ptr<EntryFilter> entry_filter_;
  KeyFilterWriter keys_;
  MergeStats& stats_;
  std::vector<Version> versions_;          // of one key
  std::vector<Version> last_;              // marked in P2
  std::vector<const LogEntry*> filtered_;  // of last_, those that the user's filter has dropped
};

class MapLevel final : public LastLevel {
 public:
  static Status Create(const Options&, RegionSet* regions, SegmentAllocator*, const LevelPlace& place) {
    void* object = nullptr;
    if (Status status = place.Take(regions, 0, sizeof(MapRoot), &object); !status.ok()) return status;
    *static_cast<MapRoot*>(object) = {MapRoot::kMagic, place.number, 0};
    Persistence* const persistence = regions->persistence();
    return persistence->Persist(object, sizeof(MapRoot)) ? Status::OK() : persistence->error();
  }

  static Status Open(const Options&, const LastLevelParts& parts, uint64_t /*job*/, std::unique_ptr<LastLevel>* result) {
    auto* const root = static_cast<MapRoot*>(parts.place.Find(*parts.regions, 0, sizeof(MapRoot)));
    if (root == nullptr || !root->IsOf(parts.place.number)) return Status::Corruption("the root of the map is damaged");
    std::unique_ptr<MapLevel> level(new MapLevel(parts, root));
    auto map = std::make_shared<EntryMap>(EntryLess{parts.order});
    parts.segments->ForEachLog([&](Segment* segment) {
      const bool is_sealed = segment->state() == SegmentState::kSealed;
      LogReader reader(*segment, is_sealed ? segment->sealed_bytes() : segment->capacity());
      while (reader.NextValid() != nullptr) {
        const PmPtr pointer = segment->ptr(reader.entry_offset());
        auto* const entry = parts.regions->Resolve<LogEntry>(pointer);
        const bool is_ours = entry->family() == parts.place.family && entry->sequence() < root->boundary;
        if (is_ours && !entry->is_obsolete()) map->emplace(entry, pointer);
      }
    });
    level->Install(std::move(map));
    *result = std::move(level);
    return Status::OK();
  }

  std::shared_ptr<const OrderedLevel> View() const override { return Current(); }
  void Refresh(uint64_t) override {}

  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override {
    if (tables.empty()) return Sweep(job, {KeyRange()}, stats);
    if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
    EntryMap items(EntryLess{parts_.order});
    uint64_t boundary = root_->boundary;
    for (const PmTable* table : tables) {
      for (LogEntry* entry = table->list.First(); entry != nullptr; entry = table->list.Next(entry)) {
        items.emplace(entry, parts_.regions->Find(entry));
        boundary = std::max(boundary, entry->sequence() + 1);
      }
    }
    if (parts_.regions->damage_seen()) return RegionSet::DamagedList();
    auto map = std::make_shared<EntryMap>(*Current()->map());
    if (Status status = MapMerger(parts_, job, map.get(), stats).MergeItems(items); !status.ok()) return status;
    // ORDER: all marks before the boundary. [CC-45]
    StoreRelease(&root_->boundary, boundary);
    Persistence* const persistence = parts_.regions->persistence();
    if (!persistence->Persist(&root_->boundary, sizeof(root_->boundary))) return persistence->error();
    Install(std::move(map));
    return Status::OK();
  }

  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override {
    auto map = std::make_shared<EntryMap>(*Current()->map());
    MapMerger merger(parts_, job, map.get(), stats);
    for (const KeyRange& range : ranges) {
      if (Status status = merger.SweepRange(range); !status.ok()) return status;
    }
    Install(std::move(map));
    return Status::OK();
  }

  Status Discard() override { return Status::OK(); }
  bool Owns(const Segment*) const override { return false; }
  Status Close() override { return Status::OK(); }
  uint64_t DramBytes() const override { return Current()->map()->size() * sizeof(EntryMap::value_type) * 4; }
  std::string Describe() const override { return "map: " + std::to_string(Current()->map()->size()) + " entries\n"; }

 private:
  MapLevel(const LastLevelParts& parts, MapRoot* root) : parts_(parts), root_(root) {}

  std::shared_ptr<const MapView> Current() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  void Install(std::shared_ptr<const EntryMap> map) {
    auto view = std::make_shared<const MapView>(parts_.order, std::move(map));
    const std::lock_guard lock(mutex_);
    view_.swap(view);
  }

  const LastLevelParts parts_;
  MapRoot* const root_;
  mutable std::mutex mutex_;
  std::shared_ptr<const MapView> view_;
};

// ---- Checking

class MapMedia final : public LevelMedia {
 public:
  bool Load(Media* media, const MediaFamily& family, Findings* findings) override {
    root_ = reinterpret_cast<const MapRoot*>(media->FindPlace(family, 0, sizeof(MapRoot)));
    if (root_ != nullptr && root_->IsOf(family.number)) return true;
    findings->Add("the root of the map is missing or damaged", "region 0" + family.suffix());
    return false;
  }

  // Any set of entries is a map, so the check finds damage only by the comparison with the segments: entries that are in tables,
  // too, or that are behind the log boundary.
  LevelCounts Check(const LevelCheck& check) const override {
    LevelCounts counts;
    const std::set<const LogEntry*> merging(check.merging.begin(), check.merging.end());
    std::map<const LogEntry*, size_t, EntryLess> found(EntryLess{&check.order});
    for (size_t i = 0; i < check.media.segments().size(); ++i) {
      const MediaSegment& segment = check.media.segments()[i];
      if (!segment.holds_log()) continue;
      LogReader reader(check.media.Resolve(segment.start()), segment.entry_seed, segment.limit());
      while (const LogEntry* entry = reader.NextValid()) {
        if (entry->family() != check.family.id || entry->sequence() >= root_->boundary || entry->is_obsolete()) continue;
        if (merging.contains(entry)) continue;
        found.emplace(entry, i);
        check.reached->Add(i, segment.start() + reader.entry_offset());
      }
    }
    const LogEntry* before = nullptr;
    for (const auto& [entry, segment] : found) {
      ++counts.entries;
      counts.obsolete_entries += before != nullptr && check.order.Same(before->key(), entry->key());
      before = entry;
    }
    return counts;
  }

 private:
  const MapRoot* root_ = nullptr;
};

constinit const LevelKind kMapKind = {
    .id = kMapLevel,
    .name = "map_of_tests",
    .constant = "kMapOfTests",
    .dram = LevelDram::kGrows,
    .create = MapLevel::Create,
    .open = MapLevel::Open,
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<MapMedia>(); },
};

}  // namespace

L1Kind RegisterMapLevel() {
  static const bool is_registered = (RegisterLevelKind(&kMapKind), true);
  return is_registered ? kMapKind.id : L1Kind();
}

}  // namespace braiddb::test
