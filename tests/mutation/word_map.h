// What each 8-byte word of a database's part files is.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/media.h"
#include "index/level_place.h"
#include "log/log_reader.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

enum class WordKind : uint8_t {
  kPool,  // PMDK's: headers, lanes, heap
  kRoot,
  kDirectory,
  kManifest,
  kL1Head,
  kJournal,
  kSegmentHeader,
  kLog,      // entries behind the log boundary
  kEntry,    // entries in lists or dead: checksum, header, key, value
  kPointer,  // … their next words
  kIndex,    // leaves and inner nodes of an NV-Tree, and what was one
  kFree,     // zero, or in space that nothing uses
  kCount,
};

inline const char* NameOf(WordKind kind) {
  static constexpr const char* kNames[] = {"pool",   "root",          "directory", "manifest", "L1 head", "journal",
                                           "header", "log to replay", "entry",     "pointer",  "index",   "free"};
  return kNames[static_cast<int>(kind)];
}

// What readers that verify nothing follow and return as it is.
inline bool IsInLists(WordKind kind) {
  return kind == WordKind::kEntry || kind == WordKind::kPointer || kind == WordKind::kIndex;
}

struct Word {
  uint32_t file;
  uint32_t offset;
  WordKind kind;
};

// The part files of a database, in their order, with the content of each word classified.
class WordMap {
 public:
  explicit WordMap(const std::string& path) {
    CheckReport report;
    Findings findings(&report);
    const Status status = Media::Load(path, {}, &findings, &media_);
    if (!status.ok()) {
      std::fprintf(stderr, "cannot read %s: %s\n", path.c_str(), status.ToString().c_str());
      std::abort();
    }
    for (uint32_t region = 0; region < media_->regions(); ++region) AddRegion(region);
    media_.reset();
  }

  const std::vector<std::string>& files() const { return files_; }  // relative to the database
  const std::vector<Word>& words(WordKind kind) const { return words_[static_cast<size_t>(kind)]; }
  uint64_t data_words() const {
    uint64_t sum = 0;
    for (size_t kind = 0; kind < static_cast<size_t>(WordKind::kFree); ++kind) sum += words_[kind].size();
    return sum;
  }
  WordKind KindAt(const std::string& file, uint64_t offset) const { return kinds_.at(file).at(offset / 8); }

 private:
  using Kinds = std::vector<WordKind>;
  static constexpr uint64_t kLanesBegin = 8192;
  static constexpr uint64_t kLaneBytes = 3072;

  static void Mark(Kinds* kinds, uint64_t begin, uint64_t bytes, WordKind kind) {
    std::fill(kinds->begin() + static_cast<std::ptrdiff_t>(begin / 8),
              kinds->begin() + static_cast<std::ptrdiff_t>((begin + bytes + 7) / 8), kind);
  }

  void AddRegion(uint32_t region) {
    const RegionImage& image = *media_->image(region);
    const PoolView pool(image.base(), image.bytes());
    Kinds kinds(image.bytes() / 8, WordKind::kFree);
    Mark(&kinds, 0, pool.heap_begin() + kHeapHeaderBytes + kZoneHeaderBytes, WordKind::kPool);
    // Lanes are alike; the first few stand for all.
    const uint64_t lanes = std::min<uint64_t>(pool.lanes(), 4) * kLaneBytes;
    Mark(&kinds, kLanesBegin + lanes, pool.heap_begin() - kLanesBegin - lanes, WordKind::kFree);
    Mark(&kinds, pool.root_offset(), sizeof(RegionRoot), WordKind::kRoot);
    for (const ObjectId* link = &media_->root(region)->directory; link->offset != 0;) {
      const uint64_t block = AlignToLine(link->offset);
      Mark(&kinds, block, sizeof(DirectoryBlock), WordKind::kDirectory);
      link = &reinterpret_cast<const DirectoryBlock*>(image.base() + block)->next;
    }
    AddMetadata(region, MetadataSlot::kManifest, WordKind::kManifest, &kinds);
    AddMetadata(region, MetadataSlot::kL1, WordKind::kL1Head, &kinds);
    AddMetadata(region, MetadataSlot::kMergeJournal, WordKind::kJournal, &kinds);
    for (uint32_t object = 0; object < LevelPlace::kObjects; ++object) {
      const LevelPlace place{std::max(1u, object * LevelPlace::kPerObject)};
      AddMetadata(region, place.slot(), WordKind::kL1Head, &kinds);
    }
    for (const MediaSegment& segment : media_->segments()) {
      if (segment.region == region && segment.used()) AddSegment(segment, &kinds);
    }
    Collect(region, kinds);
  }

  void AddMetadata(uint32_t region, MetadataSlot slot, WordKind kind, Kinds* kinds) const {
    uint64_t bytes = 0;
    const uint8_t* const object = media_->Metadata(region, slot, &bytes);
    if (object != nullptr) Mark(kinds, static_cast<uint64_t>(object - media_->image(region)->base()), bytes, kind);
  }

  void AddSegment(const MediaSegment& segment, Kinds* kinds) {
    Mark(kinds, segment.data - sizeof(SegmentHeader), sizeof(SegmentHeader), WordKind::kSegmentHeader);
    if (!segment.holds_log()) return Mark(kinds, segment.data, segment.capacity, WordKind::kIndex);
    LogReader reader(media_->Resolve(segment.start()), segment.entry_seed, segment.limit());
    while (const LogEntry* entry = reader.NextValid()) {
      const uint64_t at = segment.data + reader.entry_offset();
      const bool replayed = entry->sequence() >= media_->manifest().log_boundary;
      Mark(kinds, at, LogEntrySize(*entry), replayed ? WordKind::kLog : WordKind::kEntry);
      if (!replayed) Mark(kinds, at + offsetof(LogEntry, next), 8ull * entry->height(), WordKind::kPointer);
    }
  }

  void Collect(uint32_t region, const Kinds& kinds) {
    const RegionImage& image = *media_->image(region);
    const auto* content = reinterpret_cast<const uint64_t*>(image.base());
    uint64_t at = 0;
    for (size_t part = 0; part < image.list().parts.size(); ++part) {
      const auto file = static_cast<uint32_t>(files_.size());
      files_.push_back("region-" + std::to_string(region) + "/" + PartName(part));
      for (uint64_t offset = 0; offset < image.list().parts[part]; offset += 8, at += 8) {
        WordKind kind = kinds[at / 8];
        // Most of what is kept is zero and stands for nothing; pointers and descriptors are of use all the same.
        const bool always = kind == WordKind::kPointer || kind == WordKind::kEntry || kind == WordKind::kRoot;
        if (!always && content[at / 8] == 0) kind = WordKind::kFree;
        words_[static_cast<size_t>(kind)].push_back({file, static_cast<uint32_t>(offset), kind});
        kinds_[files_[file]].push_back(kinds[at / 8]);
      }
    }
  }

  std::unique_ptr<Media> media_;
  std::vector<std::string> files_;
  std::vector<Word> words_[static_cast<size_t>(WordKind::kCount)];
  std::map<std::string, Kinds> kinds_;  // of all words of each file, zero or not
};

}  // namespace braiddb::test
