// PersistSimulator: watches every flush and fence of one open database and keeps, beside its pools, what a power cut would leave
// of them.
//
// MODEL  A line is staged, with its content, when a thread flushes it, and is guaranteed to be on media when the same thread's
//        next fence has passed. What was stored but is not guaranteed may be on media or not, line by line (word by word in the
//        strict model). What PMDK writes into the pools, and the files beside them, count as durable at once: PMDK is not what is
//        tested here.
// INSTANT  A crash point is copied while this object's mutex is held: every thread that flushes or fences waits. Plain stores of
//        other threads go on; they are not flushed, so that an image has them or not is legal. Order of the copy: the tracked
//        bytes first, then
//        PMDK's, twice, until they and the list of files are found unchanged: what the tracked bytes lack then was not fenced.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/region_set.h"
#include "tests/crash/crash_image.h"
#include "tests/crash/tracked_ranges.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// A bug to pretend: of the flushes (or fences) that match, every n-th does not happen.
struct DropRule {
  enum class What : uint8_t { kNothing, kFlush, kFence };
  What what = What::kNothing;
  RangeKind kind = RangeKind::kSegment;  // flushes of these bytes
  bool foreground = true;                // … by a thread that called MarkForegroundThread, or by any other
  uint32_t every = 1;
};

class PersistSimulator final : public PersistObserver {
 public:
  struct Options {
    uint64_t seed = 1;
    // A crash point is taken at one in so many fences of writers, at one in so many others (in the background, or of metadata), …
    uint32_t one_in_log_fences = 50;
    uint32_t one_in_other_fences = 8;
    // … and at one in so many flushes of writers, and of others: there a batch of a merge is done in part.
    uint32_t one_in_log_flushes = 400;
    uint32_t one_in_other_flushes = 60;
    // No more are taken while so many wait to be fetched.
    size_t max_waiting = 1;
    DropRule drop;
  };

  // `on_capture` is called for each crash point, under the mutex, before and after the copy (first false, then true), to note
  // what the database may hold.
  PersistSimulator(std::string database, const Options& options, std::function<void(CrashPoint* point, bool copied)> on_capture)
      : database_(std::move(database)), options_(options), random_(options.seed), on_capture_(std::move(on_capture)) {}

  static void MarkForegroundThread(bool foreground) { is_foreground_ = foreground; }

  // To be called from the pools-mapped hook: what is in the pools now counts as durable.
  void Attach(RegionSet* regions) {
    std::lock_guard lock(mutex_);
    regions_ = regions;
    durable_.resize(regions->count());
    for (uint32_t region = 0; region < regions->count(); ++region) FollowGrowth(region, true);
    known_ranges_ = kind_ranges_ = FindTrackedRanges(*regions);
    regions->persistence()->SetObserver(this);
  }

  void OnFlush(const void* address, size_t bytes) override {
    std::lock_guard lock(mutex_);
    ++flushes_;
    if (Dropped(DropRule::What::kFlush, address)) return;
    auto& stage = stages_[std::this_thread::get_id()];
    const auto* first = static_cast<const uint8_t*>(address);
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      const uint8_t* base = regions_->base(region);
      if (first < base || first >= base + regions_->ReservedBytes(region)) continue;
      const auto begin = static_cast<uint64_t>(first - base);
      for (uint64_t line = begin & ~(kLine - 1); line < begin + bytes; line += kLine) {
        stage.lines.push_back({region, line, ++clock_, {}});
        CopyWords(stage.lines.back().content, base + line, kLine);
      }
      stage.other = stage.other || !is_foreground_ || KindAt(region, begin) != RangeKind::kSegment;
    }
    if (random_.OneIn(stage.other ? options_.one_in_other_flushes : options_.one_in_log_flushes)) Capture("after a flush");
  }

  void OnDrain() override {
    std::lock_guard lock(mutex_);
    ++fences_;
    auto& stage = stages_[std::this_thread::get_id()];
    if (Dropped(DropRule::What::kFence, nullptr)) {
      stage = {};
      return;
    }
    const bool capture = random_.OneIn(stage.other ? options_.one_in_other_fences : options_.one_in_log_fences);
    const bool before = random_.OneIn(2);
    const std::string what = !stage.other ? " a log fence" : is_foreground_ ? " a metadata fence" : " a background fence";
    if (capture && before) Capture("before" + what);
    for (const auto& line : stage.lines) {
      FollowGrowth(line.region, false);
      uint64_t& newest = durable_[line.region].line_clock[line.offset / kLine];
      if (newest > line.clock) continue;  // another thread flushed it later and its fence has passed
      newest = line.clock;
      std::memcpy(&durable_[line.region].bytes[line.offset], line.content, kLine);
    }
    stage = {};
    if (capture && !before) Capture("after" + what);
  }

  // The crash points taken since the last call.
  std::vector<CrashPoint> TakePoints() {
    std::lock_guard lock(mutex_);
    return std::exchange(points_, {});
  }
  bool HasPoints() {
    std::lock_guard lock(mutex_);
    return !points_.empty();
  }
  // Takes one now, whatever the odds; for the end of a run.
  void CaptureNow(const std::string& where) {
    std::lock_guard lock(mutex_);
    Capture(where);
  }

  uint64_t fences() const { return fences_; }
  uint64_t flushes() const { return flushes_; }
  uint64_t dropped() const { return dropped_; }

 private:
  struct Durable {
    std::vector<uint8_t> bytes;
    std::vector<uint64_t> line_clock;  // of the flush that put each line there
  };
  struct StagedLine {
    uint32_t region;
    uint64_t offset;
    uint64_t clock;
    uint8_t content[kLine];
  };
  struct Stage {
    std::vector<StagedLine> lines;
    bool other = false;  // not just entries of a writer
  };

  // Word by word: other threads may be storing.
  static void CopyWords(void* to, const uint8_t* from, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8) {
      const uint64_t word = LoadRelaxed(reinterpret_cast<const uint64_t*>(from + i));
      std::memcpy(static_cast<uint8_t*>(to) + i, &word, 8);
    }
  }

  // New parts come zeroed; at Attach, everything is as it is mapped.
  void FollowGrowth(uint32_t region, bool copy) {
    Durable& durable = durable_[region];
    const uint64_t reserved = regions_->ReservedBytes(region);
    if (durable.bytes.size() >= reserved) return;
    durable.bytes.resize(reserved);
    durable.line_clock.resize(reserved / kLine);
    if (copy) std::memcpy(durable.bytes.data(), regions_->base(region), reserved);
  }

  RangeKind KindAt(uint32_t region, uint64_t offset) {
    const auto find = [&] {
      auto after = std::upper_bound(kind_ranges_.begin(), kind_ranges_.end(), std::make_pair(region, offset),
                                    [](const auto& at, const auto& range) {
                                      return at.first != range.region ? at.first < range.region : at.second < range.begin;
                                    });
      if (after == kind_ranges_.begin()) return RangeKind::kCount;
      const TrackedRange& range = *std::prev(after);
      return range.region == region && offset < range.end ? range.kind : RangeKind::kCount;
    };
    RangeKind kind = find();
    if (kind == RangeKind::kCount) {  // perhaps it is new
      kind_ranges_ = FindTrackedRanges(*regions_);
      kind = find();
    }
    return kind;
  }

  bool Dropped(DropRule::What what, const void* address) {
    if (options_.drop.what != what || options_.drop.foreground != is_foreground_) return false;
    if (what == DropRule::What::kFlush) {
      const auto* at = static_cast<const uint8_t*>(address);
      bool matches = false;
      for (uint32_t region = 0; region < regions_->count(); ++region) {
        const uint8_t* base = regions_->base(region);
        if (at < base || at >= base + regions_->ReservedBytes(region)) continue;
        matches = KindAt(region, static_cast<uint64_t>(at - base)) == options_.drop.kind;
      }
      if (!matches) return false;
    }
    if (++drop_candidates_ % options_.drop.every != 0) return false;
    ++dropped_;
    return true;
  }

  void Capture(const std::string& where) {
    if (regions_ == nullptr || points_.size() >= options_.max_waiting) return;
    CrashPoint point;
    point.where = where;
    on_capture_(&point, false);
    for (int attempt = 0; !TryCopy(&point); ++attempt) {
      if (attempt == 1000) return;  // PMDK is busy all the time; another crash point will come
    }
    on_capture_(&point, true);
    points_.push_back(std::move(point));
  }

  // False if PMDK or the file system changed something meanwhile.
  bool TryCopy(CrashPoint* point) {
    const std::vector<TrackedRange> ranges = FindTrackedRanges(*regions_);
    AdoptNewObjects(ranges);
    std::vector<std::vector<uint8_t>> current;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      FollowGrowth(region, false);
      current.emplace_back(durable_[region].bytes.size());
    }
    for (const auto& range : ranges) {
      CopyWords(&current[range.region][range.begin], regions_->base(range.region) + range.begin, range.end - range.begin);
    }
    if (!ListFilesOf(point)) return false;
    ForEachGap(ranges, [&](uint32_t region, uint64_t begin, uint64_t end) {
      std::memcpy(&current[region][begin], regions_->base(region) + begin, end - begin);
    });
    CrashPoint again;
    if (!ListFilesOf(&again) || again.small_files != point->small_files || again.parts != point->parts) return false;
    bool stable = true;
    ForEachGap(ranges, [&](uint32_t region, uint64_t begin, uint64_t end) {
      stable = stable && std::memcmp(&current[region][begin], regions_->base(region) + begin, end - begin) == 0;
    });
    if (!stable || FindTrackedRanges(*regions_) != ranges) return false;
    Compare(ranges, current, point);
    for (const auto& range : ranges) {
      std::memcpy(&current[range.region][range.begin], &durable_[range.region].bytes[range.begin], range.end - range.begin);
    }
    point->durable = std::move(current);
    return true;
  }

  // PMDK zeroes what it allocates for the directory, and BraidDB's first stores to it are not told apart from that: they count as
  // durable.
  void AdoptNewObjects(const std::vector<TrackedRange>& ranges) {
    for (const auto& range : ranges) {
      if (range.kind == RangeKind::kSegment || std::binary_search(known_ranges_.begin(), known_ranges_.end(), range, Before))
        continue;
      CopyWords(&durable_[range.region].bytes[range.begin], regions_->base(range.region) + range.begin, range.end - range.begin);
    }
    known_ranges_ = ranges;
  }
  static bool Before(const TrackedRange& a, const TrackedRange& b) {
    return a.region != b.region ? a.region < b.region : a.begin < b.begin;
  }

  template <class Visit>
  void ForEachGap(const std::vector<TrackedRange>& ranges, const Visit& visit) const {
    auto range = ranges.begin();
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      uint64_t from = 0;
      for (; range != ranges.end() && range->region == region; ++range) {
        if (from < range->begin) visit(region, from, range->begin);
        from = range->end;
      }
      if (from < durable_[region].bytes.size()) visit(region, from, durable_[region].bytes.size());
    }
  }

  void Compare(const std::vector<TrackedRange>& ranges, const std::vector<std::vector<uint8_t>>& current,
               CrashPoint* point) const {
    std::map<std::pair<uint32_t, uint64_t>, DirtyLine> dirty;
    for (const auto& range : ranges) {
      const uint8_t* now = current[range.region].data();
      const uint8_t* durable = durable_[range.region].bytes.data();
      for (uint64_t at = range.begin; at < range.end;) {
        const uint64_t stop = std::min(range.end, (at & ~(kLine - 1)) + kLine);
        if (std::memcmp(now + at, durable + at, stop - at) != 0) {
          DirtyLine& line = dirty[{range.region, at & ~(kLine - 1)}];
          line.region = range.region;
          line.offset = at & ~(kLine - 1);
          line.kind = range.kind;
          for (uint64_t word = at; word < stop; word += 8) {
            if (std::memcmp(now + word, durable + word, 8) == 0) continue;
            line.words |= static_cast<uint8_t>(1u << (word % kLine / 8));
            std::memcpy(&line.current[word % kLine / 8], now + word, 8);
          }
        }
        at = stop;
      }
    }
    point->dirty.clear();
    for (const auto& [where, line] : dirty) point->dirty.push_back(line);
  }

  // False if the files changed while they were listed.
  bool ListFilesOf(CrashPoint* point) const {
    namespace fs = std::filesystem;
    point->small_files.clear();
    point->parts.assign(regions_->count(), {});
    std::vector<uint64_t> mapped(regions_->count(), 0);
    try {
      for (const auto& file : ListFiles(database_)) {
        const std::string path = database_ + "/" + file;
        if (!file.ends_with(".pmem")) {
          point->small_files.emplace_back(file, "");
          if (!ReadWhole(path, &point->small_files.back().second)) return false;
          continue;
        }
        const auto region = static_cast<uint32_t>(std::stoul(file.substr(file.find('-') + 1)));
        point->parts.at(region).push_back({file, fs::file_size(path), ""});
        auto& part = point->parts[region].back();
        mapped[region] += part.bytes;
        if (mapped[region] > durable_[region].bytes.size() && !ReadWhole(path, &part.content)) return false;
      }
    } catch (const fs::filesystem_error&) {
      return false;
    }
    for (size_t region = 0; region < mapped.size(); ++region) {
      if (mapped[region] < durable_[region].bytes.size()) return false;
    }
    return true;
  }
  static bool ReadWhole(const std::string& path, std::string* content) {
    std::ifstream in(path, std::ios::binary);
    content->assign(std::istreambuf_iterator<char>(in), {});
    return in.is_open();
  }

  static inline thread_local bool is_foreground_ = false;

  const std::string database_;
  const Options options_;

  std::mutex mutex_;  // guards everything below
  RegionSet* regions_ = nullptr;
  Random random_;
  std::function<void(CrashPoint*, bool)> on_capture_;
  std::vector<Durable> durable_;
  std::vector<TrackedRange> known_ranges_;  // at the last crash point
  std::vector<TrackedRange> kind_ranges_;   // for KindAt; may be older than what it is asked for
  std::unordered_map<std::thread::id, Stage> stages_;
  std::vector<CrashPoint> points_;
  uint64_t clock_ = 0;
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> fences_{0};
  std::atomic<uint64_t> dropped_{0};
  uint64_t drop_candidates_ = 0;
};

}  // namespace braiddb::test
