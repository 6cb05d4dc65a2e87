// FetchPaths: prefetches the nodes that searches of several lists for one target will visit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "skiplist/braided_list.h"
#include "util/prefetch.h"

namespace braiddb {

// GOAL   A search is a chain of cache misses. FetchPaths runs the searches of up to 16 lists in rounds, one step of each per
//        round, so their cache misses overlap. The real searches follow, and find the nodes in the cache.
// STEPS  1 begin at the home head of each list  2 in each round, each path compares the prefetched node by its key prefix,
//        moves right or down, and prefetches its next node  3 a path ends at the bottom or at the end of its list.
// WHAT A READER SEES  No result depends on this function: it compares 8-byte prefixes only, and a changed or damaged list only
// costs a wrong prefetch. `list_at(size_t i)` returns the i-th of `count` lists. Thread-safe, as reads of a list are.
template <class ListAt>
void FetchPaths(size_t count, const ListAt& list_at, const SearchKey& target) {
  constexpr size_t kSideBySide = 16;   // paths that advance together
  constexpr uint32_t kMostSteps = 64;  // bounds the work on a damaged list or one with few upper layers
  // The position of one search: a tower before the target, and the next node on the layer.
  struct Path {
    const BraidedList* list;
    const uint64_t* tower;
    const LogEntry* next;  // prefetched, not read yet
    uint32_t layer;
  };
  Path paths[kSideBySide];
  // Finds the successor on the highest layer, from path->layer down, that has one, and prefetches it. Returns false if there is
  // none.
  const auto look = [](Path* path) {
    for (;; --path->layer) {
      path->next = path->list->Load(path->tower, path->layer);
      if (path->next != nullptr) break;
      if (path->layer == 0) return false;
    }
    Prefetch(path->next);
    Prefetch(reinterpret_cast<const char*>(path->next) + kCacheLine);  // the key of a tall node
    return true;
  };
  for (size_t first = 0; first < count; first += kSideBySide) {
    size_t running = 0;
    for (size_t i = first; i < std::min(count, first + kSideBySide); ++i) {
      const BraidedList& list = list_at(i);
      const BraidedList::Start home = list.Home();
      paths[running] = {&list, home.tower, nullptr, home.layer};
      running += look(&paths[running]);
    }
    for (uint32_t step = 0; running > 0 && step < kMostSteps; ++step) {
      size_t still = 0;
      for (size_t i = 0; i < running; ++i) {
        Path path = paths[i];
        if (path.list->order().Prefix(path.next->key()) < target.prefix) {
          path.tower = path.next->next;
        } else if (path.layer-- == 0) {
          continue;
        }
        paths[still] = path;
        still += look(&paths[still]);
      }
      running = still;
    }
  }
}

}  // namespace braiddb
