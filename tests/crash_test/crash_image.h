// Draws from a crash point what a power cut could leave of the stores that are not guaranteed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/crash_test/crash_point.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

enum class ImageKind : uint8_t { kGuaranteed, kEverything, kOneLine, kAllButOneLine, kPrefixes, kWords, kStoreOrder, kCount };

inline const char* NameOf(ImageKind kind) {
  static constexpr const char* kNames[] = {"nothing unfenced", "everything",   "one line",   "all but one line",
                                           "line prefixes",    "random words", "store order"};
  return kNames[static_cast<int>(kind)];
}

// A word that is on media though it was not guaranteed to be.
struct ImageWord {
  uint32_t region;
  uint64_t offset;
  uint64_t value;
};

using CrashImage = std::vector<ImageWord>;

namespace crash_image_internal {

inline void Add(const DirtyLine& line, const TracedStore& store, CrashImage* image) {
  image->push_back({line.region, line.offset + 8 * store.word, store.value});
}

// The stores of the line up to `count`; of a group that is cut by that, a random part.
inline void AddPrefix(const DirtyLine& line, size_t count, Random* random, CrashImage* image) {
  const auto& stores = line.stores;
  const bool cut = count > 0 && count < stores.size() && stores[count].group == stores[count - 1].group;
  for (size_t i = 0; i < stores.size(); ++i) {
    const bool in_cut_group = cut && stores[i].group == stores[count].group;
    if (in_cut_group ? random->OneIn(2) : i < count) Add(line, stores[i], image);
  }
}

// Stores of all lines in the order in which they were made, up to a random one.
inline void AddInOrder(const CrashPoint& point, Random* random, CrashImage* image) {
  std::vector<uint64_t> orders;
  for (const auto& line : point.dirty) {
    for (const auto& store : line.stores) orders.push_back(store.order);
  }
  std::sort(orders.begin(), orders.end());
  const uint64_t last = orders[random->Uniform(orders.size())];
  for (const auto& line : point.dirty) {
    for (const auto& store : line.stores) {
      if (store.order <= last) Add(line, store, image);
    }
  }
}

}  // namespace crash_image_internal

// `turn` goes through the lines of kOneLine and kAllButOneLine.
inline CrashImage DrawImage(const CrashPoint& point, ImageKind kind, uint64_t turn, Random* random) {
  using namespace crash_image_internal;
  CrashImage image;
  if (point.dirty.empty()) return image;
  if (kind == ImageKind::kStoreOrder) {
    AddInOrder(point, random, &image);
    return image;
  }
  const uint64_t percent = random->OneIn(3) ? 50 : random->OneIn(2) ? 15 : 85;
  const size_t chosen = turn % point.dirty.size();
  for (size_t i = 0; i < point.dirty.size(); ++i) {
    const DirtyLine& line = point.dirty[i];
    switch (kind) {
      case ImageKind::kEverything:
        AddPrefix(line, line.stores.size(), random, &image);
        break;
      case ImageKind::kOneLine:
        if (i == chosen) AddPrefix(line, line.stores.size(), random, &image);
        break;
      case ImageKind::kAllButOneLine:
        if (i != chosen) AddPrefix(line, line.stores.size(), random, &image);
        break;
      case ImageKind::kPrefixes:
        AddPrefix(line, random->OneIn(3) ? line.stores.size() : random->Uniform(line.stores.size() + 1), random, &image);
        break;
      case ImageKind::kWords:
        for (const auto& store : line.stores) {
          if (random->Percent(percent)) Add(line, store, &image);
        }
        break;
      default:
        break;
    }
  }
  return image;
}

}  // namespace braiddb::test
