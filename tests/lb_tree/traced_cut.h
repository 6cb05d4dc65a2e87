// TracedCut: a power cut at a chosen fence, which knows the order of the stores to each line.
//
// MODEL  As StoreTracer (tests/crash_test/store_tracer.h), for one thread and one tree: of the stores to a line that no fence
//        guarantees, any prefix may be on media. The stores come from media_store_hook.
// SELF-CHECK  Each line of the tree must hold what the stores explain. Lines that the allocator and LeafSpace write are known by
//        their flushes only, and survive as a whole or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "lb_tree/media_word.h"
#include "pmem/persistence.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {

class TracedCut final : public PersistObserver {
 public:
  struct Failed {};
  static constexpr uint64_t kNever = UINT64_MAX;

  // Fails at fence number `at`, counted from 0, before it has passed. What is there now counts as durable.
  TracedCut(RegionSet* regions, uint64_t at) : persistence_(regions->persistence()), left_(at), durable_(regions) {
    current_ = this;
    media_store_hook = [](uint64_t* word, uint64_t value) { current_->OnStore(word, value); };
    persistence_->SetObserver(this);
  }
  ~TracedCut() override { End(); }

  void OnFlush(const void* address, size_t bytes) override {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t line = begin & ~(kCacheLine - 1); line < begin + bytes; line += kCacheLine) {
      auto* const content = reinterpret_cast<uint8_t*>(line);
      const auto found = stores_.find(content);
      Staged staged{content, found == stores_.end() ? 0 : found->second.size(), {}};
      std::memcpy(staged.content, content, kCacheLine);
      staged_.push_back(staged);
    }
  }
  void OnDrain() override {
    if (left_-- == 0) throw Failed();
    ++fences_;
    // Of several flushes of a line the last one has all stores.
    std::map<uint8_t*, const Staged*> lines;
    for (const Staged& staged : staged_) lines[staged.line] = &staged;
    for (const auto& [line, staged] : lines) {
      if (uint8_t* durable = durable_.Line(line)) std::memcpy(durable, staged->content, kCacheLine);
      auto& stores = stores_[line];
      stores.erase(stores.begin(), stores.begin() + static_cast<std::ptrdiff_t>(staged->stores));
      if (stores.empty()) stores_.erase(line);
    }
    staged_.clear();
  }

  // What survives of the stores that no fence guarantees.
  enum class Luck { kNothing, kSomeLines, kPrefixes, kEverything };
  static constexpr Luck kEveryLuck[] = {Luck::kNothing, Luck::kSomeLines, Luck::kPrefixes, Luck::kEverything};

  // Makes the regions what the cut leaves of them, and stops watching. Returns the number of lines that the stores do not
  // explain.
  uint64_t Lose(Luck luck, Random* random) {
    End();
    uint64_t unexplained = 0;
    durable_.ForEachChangedLine([&](uint8_t* now, const uint8_t* before) {
      uint8_t line[kCacheLine];
      std::memcpy(line, before, kCacheLine);
      const auto found = stores_.find(now);
      const std::vector<Store> none;
      const std::vector<Store>& stores = found == stores_.end() ? none : found->second;
      Apply(stores, stores.size(), line);
      const bool is_traced = std::memcmp(line, now, kCacheLine) == 0;
      unexplained += !is_traced;
      const bool survives = luck == Luck::kEverything || (luck != Luck::kNothing && random->OneIn(2));
      if (luck == Luck::kPrefixes && is_traced) {
        std::memcpy(line, before, kCacheLine);
        Apply(stores, random->Uniform(stores.size() + 1), line);
        std::memcpy(now, line, kCacheLine);
      } else if (!survives) {
        std::memcpy(now, before, kCacheLine);
      }
    });
    return unexplained;
  }

  // The process is killed and the power stays on: all stores are there, and those without a fence are not durable. Watches
  // on, and fails no more.
  void Kill() {
    staged_.clear();
    left_ = kNever;
  }

  uint64_t fences() const { return fences_; }

 private:
  struct Store {
    uint64_t* word;
    uint64_t value;
  };
  struct Staged {
    uint8_t* line;
    size_t stores;  // number of stores to the line that the flush covers
    uint8_t content[kCacheLine];
  };

  void OnStore(uint64_t* word, uint64_t value) {
    auto* const line = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(word) & ~(kCacheLine - 1));
    stores_[line].push_back({word, value});
  }
  static void Apply(const std::vector<Store>& stores, size_t count, uint8_t* line) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(line + reinterpret_cast<uintptr_t>(stores[i].word) % kCacheLine, &stores[i].value, sizeof(uint64_t));
    }
  }
  void End() {
    if (persistence_ == nullptr) return;
    persistence_->SetObserver(nullptr);
    persistence_ = nullptr;
    media_store_hook = nullptr;
    current_ = nullptr;
  }

  static inline TracedCut* current_ = nullptr;
  Persistence* persistence_;
  uint64_t left_;
  uint64_t fences_ = 0;
  RegionImage durable_;
  std::map<uint8_t*, std::vector<Store>> stores_;  // by line: stores that no fence guarantees, in order
  std::vector<Staged> staged_;
};

}  // namespace braiddb::test
