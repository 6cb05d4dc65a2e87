// Test support: the power fails at a chosen fence, in place: what was not guaranteed to be on media is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/region_set.h"
#include "tests/support/db_test_util.h"
#include "tests/support/tracked_ranges.h"

namespace braiddb::test {

// The bytes of all regions that are BraidDB's own, as they were at one instant. Nothing is allocated from PMDK later.
class RegionImage {
 public:
  explicit RegionImage(RegionSet* regions) : regions_(regions) {
    for (const TrackedRange& range : FindTrackedRanges(*regions)) {
      const uint64_t begin = range.begin & ~(kCacheLine - 1);
      const uint64_t end = (range.end + kCacheLine - 1) & ~(kCacheLine - 1);
      if (!stretches_.empty() && stretches_.back().region == range.region && stretches_.back().end >= begin) {
        stretches_.back().end = std::max(stretches_.back().end, end);
      } else {
        stretches_.push_back({range.region, begin, end, {}});
      }
    }
    for (Stretch& stretch : stretches_) {
      const uint8_t* base = regions->base(stretch.region);
      if (!Spares().empty()) {
        stretch.bytes = std::move(Spares().back());
        Spares().pop_back();
      }
      // Not assign: AddressSanitizer's memmove goes byte by byte.
      stretch.bytes.resize(stretch.end - stretch.begin);
      memcpy(stretch.bytes.data(), base + stretch.begin, stretch.bytes.size());
    }
  }
  ~RegionImage() {
    for (Stretch& stretch : stretches_) Spares().push_back(std::move(stretch.bytes));
  }
  RegionImage(const RegionImage&) = delete;
  RegionImage& operator=(const RegionImage&) = delete;

  // `regions`: the same, perhaps opened again.
  void Restore(RegionSet* regions) const {
    for (const Stretch& stretch : stretches_) {
      memcpy(regions->base(stretch.region) + stretch.begin, stretch.bytes.data(), stretch.bytes.size());
    }
  }

  // The image's copy of the line at `address`; null if it has none.
  uint8_t* Line(const uint8_t* address) {
    for (Stretch& stretch : stretches_) {
      const uint8_t* base = regions_->base(stretch.region);
      if (address >= base + stretch.begin && address < base + stretch.end) return &stretch.bytes[address - base - stretch.begin];
    }
    return nullptr;
  }

  // `visit(now, then)` for every line that has changed since.
  template <class Visit>
  void ForEachChangedLine(const Visit& visit) const {
    constexpr uint64_t kPage = 64 * kCacheLine;  // few pages have changed
    for (const Stretch& stretch : stretches_) {
      uint8_t* const now = regions_->base(stretch.region) + stretch.begin;
      const uint8_t* const then = stretch.bytes.data();
      for (uint64_t page = 0; page < stretch.bytes.size(); page += kPage) {
        const uint64_t end = std::min<uint64_t>(page + kPage, stretch.bytes.size());
        if (memcmp(now + page, then + page, end - page) == 0) continue;
        for (uint64_t at = page; at < end; at += kCacheLine) {
          if (memcmp(now + at, then + at, kCacheLine) != 0) visit(now + at, then + at);
        }
      }
    }
  }

 private:
  struct Stretch {
    uint32_t region;
    uint64_t begin;  // whole lines
    uint64_t end;
    std::vector<uint8_t> bytes;
  };
  // Memory of earlier images. A test of all fences makes thousands of them, and fresh memory takes longer than the copies.
  static std::vector<std::vector<uint8_t>>& Spares() {
    static thread_local std::vector<std::vector<uint8_t>> spares;
    return spares;
  }

  RegionSet* const regions_;
  std::vector<Stretch> stretches_;
};

// Watches regions on which one thread flushes and fences. What is there when it is made counts as durable.
class PowerCut final : public PersistObserver {
 public:
  // Thrown from the fence at which the power fails.
  struct Failed {};
  static constexpr uint64_t kNever = UINT64_MAX;

  // Fails at fence number `at`, counted from 0, before that has passed.
  PowerCut(RegionSet* regions, uint64_t at) : persistence_(regions->persistence()), left_(at), durable_(regions) {
    persistence_->SetObserver(this);
  }
  ~PowerCut() override { End(); }

  void OnFlush(const void* address, size_t bytes) override {
    if (address == not_flushed_) return;
    const auto first = reinterpret_cast<uintptr_t>(address) & ~(kCacheLine - 1);
    for (uintptr_t line = first; line < reinterpret_cast<uintptr_t>(address) + bytes; line += kCacheLine) {
      staged_.push_back({reinterpret_cast<const uint8_t*>(line), {}});
      memcpy(staged_.back().content, staged_.back().address, kCacheLine);
    }
  }
  void OnDrain() override {
    if (left_-- == 0) throw Failed();
    if (!is_there_(fences_++)) return;
    for (const StagedLine& line : staged_) {
      if (uint8_t* durable = durable_.Line(line.address)) memcpy(durable, line.content, kCacheLine);
    }
    staged_.clear();
  }

  // What survives of that which was not guaranteed.
  enum class Luck { kNothing, kSomeLines, kSomeWords, kEverything };
  static constexpr Luck kEveryLuck[] = {Luck::kNothing, Luck::kSomeLines, Luck::kSomeWords, Luck::kEverything};
  // The lucks that a test of all fences tries at the fence of this number: all of them in the release build. A sanitizer, which
  // looks for wild accesses, gets one of them in turn.
  static std::span<const Luck> LucksAt(uint64_t fence) {
    if (kSlowdown == 1) return kEveryLuck;
    return std::span(kEveryLuck).subspan(fence % std::size(kEveryLuck), 1);
  }

  // Makes the regions what the cut leaves of them, and stops watching.
  void Lose(Luck luck, Random* random) {
    End();
    durable_.ForEachChangedLine([&](uint8_t* now, const uint8_t* before) {
      const bool line_survives = luck == Luck::kEverything || (luck == Luck::kSomeLines && random->OneIn(2));
      for (uint64_t word = 0; word < kCacheLine; word += 8) {
        if (!line_survives && !(luck == Luck::kSomeWords && random->OneIn(2))) memcpy(now + word, before + word, 8);
      }
    });
  }

  // The process is killed, at the fence that threw Failed if one did, and the power goes on: what it has stored is there, and
  // what was not guaranteed is not durable. Watches on, and fails no more.
  void Kill() {
    staged_.clear();
    left_ = kNever;
  }

  uint64_t fences() const { return fences_; }

  // For canaries: as if flushes that begin there were not in the code.
  void TakeOutFlushesOf(const void* address) { not_flushed_ = address; }
  // … as if those fences were not in the code for which `is_there`, asked with their numbers, says no.
  void TakeOut(std::function<bool(uint64_t fence)> is_there) { is_there_ = std::move(is_there); }

 private:
  struct StagedLine {
    const uint8_t* address;
    uint8_t content[kCacheLine];
  };

  void End() {
    if (persistence_ != nullptr) persistence_->SetObserver(nullptr);
    persistence_ = nullptr;
  }

  Persistence* persistence_;
  uint64_t left_;
  uint64_t fences_ = 0;
  RegionImage durable_;
  std::vector<StagedLine> staged_;
  const void* not_flushed_ = nullptr;
  std::function<bool(uint64_t)> is_there_ = [](uint64_t) { return true; };
};

}  // namespace braiddb::test
