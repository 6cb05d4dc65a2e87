// Test support: the power fails at a chosen fence, in place: what was not guaranteed to be on media is lost.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/region_set.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// Watches regions on which one thread flushes and fences, and in which PMDK changes nothing meanwhile. What is there when it is
// made counts as durable.
class PowerCut final : public PersistObserver {
 public:
  // Thrown from the fence at which the power fails.
  struct Failed {};
  static constexpr uint64_t kNever = UINT64_MAX;

  // Fails at fence number `at`, counted from 0, before that has passed.
  PowerCut(RegionSet* regions, uint64_t at) : regions_(regions), left_(at) {
    for (uint32_t region = 0; region < regions->count(); ++region) {
      durable_.emplace_back(regions->base(region), regions->base(region) + regions->ReservedBytes(region));
    }
    regions->persistence()->SetObserver(this);
  }
  ~PowerCut() override { regions_->persistence()->SetObserver(nullptr); }

  void OnFlush(const void* address, size_t bytes) override {
    for (uint32_t region = 0; region < durable_.size(); ++region) {
      const uint8_t* base = regions_->base(region);
      const auto* at = static_cast<const uint8_t*>(address);
      if (at < base || at >= base + durable_[region].size()) continue;
      const uint64_t end = static_cast<uint64_t>(at - base) + bytes;
      for (uint64_t line = static_cast<uint64_t>(at - base) & ~(kCacheLine - 1); line < end; line += kCacheLine) {
        staged_.push_back({region, line, {}});
        memcpy(staged_.back().content, base + line, kCacheLine);
      }
    }
  }
  void OnDrain() override {
    if (left_-- == 0) throw Failed();
    ++fences_;
    for (const StagedLine& line : staged_) memcpy(&durable_[line.region][line.offset], line.content, kCacheLine);
    staged_.clear();
  }

  // What survives of that which was not guaranteed.
  enum class Luck { kNothing, kSomeLines, kSomeWords, kEverything };
  static constexpr Luck kEveryLuck[] = {Luck::kNothing, Luck::kSomeLines, Luck::kSomeWords, Luck::kEverything};

  // Makes the regions what the cut leaves of them.
  void Lose(Luck luck, Random* random) {
    for (uint32_t region = 0; region < durable_.size(); ++region) {
      uint8_t* now = regions_->base(region);
      const std::vector<uint8_t>& before = durable_[region];
      for (uint64_t line = 0; line < before.size(); line += kCacheLine) {
        if (memcmp(now + line, &before[line], kCacheLine) == 0 || luck == Luck::kEverything) continue;
        const bool whole_line_survives = luck == Luck::kSomeLines && random->OneIn(2);
        for (uint64_t word = line; word < line + kCacheLine; word += 8) {
          const bool survives = luck == Luck::kSomeWords ? random->OneIn(2) : whole_line_survives;
          if (!survives) memcpy(now + word, &before[word], 8);
        }
      }
    }
  }

  uint64_t fences() const { return fences_; }

 private:
  struct StagedLine {
    uint32_t region;
    uint64_t offset;
    uint8_t content[kCacheLine];
  };

  RegionSet* const regions_;
  uint64_t left_;
  uint64_t fences_ = 0;
  std::vector<std::vector<uint8_t>> durable_;
  std::vector<StagedLine> staged_;
};

// The bytes of all regions, to go back to. PMDK must change nothing in between.
class SavedRegions {
 public:
  explicit SavedRegions(RegionSet* regions) : regions_(regions) {
    for (uint32_t region = 0; region < regions->count(); ++region) {
      bytes_.emplace_back(regions->base(region), regions->base(region) + regions->ReservedBytes(region));
    }
  }
  void Restore() const {
    for (uint32_t region = 0; region < bytes_.size(); ++region) {
      memcpy(regions_->base(region), bytes_[region].data(), bytes_[region].size());
    }
  }

 private:
  RegionSet* const regions_;
  std::vector<std::vector<uint8_t>> bytes_;
};

}  // namespace braiddb::test
