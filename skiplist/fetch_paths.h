// FetchPaths: gets what searches of several lists for one target will touch into the CPU's caches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "skiplist/braided_list.h"
#include "util/prefetch.h"

namespace braiddb {

// A search is one cache miss after the other; those of many lists are made side by side first, a step in each in turns. It
// compares keys by their first eight bytes only, and nothing follows from what it finds: the searches come after it.
// `list_at(size_t i)`: the i-th of `count` lists.
template <class ListAt>
void FetchPaths(size_t count, const ListAt& list_at, const SearchKey& target) {
  constexpr size_t kSideBySide = 16;
  constexpr uint32_t kMostSteps = 64;
  struct Path {
    const BraidedList* list;
    const uint64_t* tower;
    const LogEntry* next;  // fetched, not looked at
    uint32_t layer;
  };
  Path paths[kSideBySide];
  // What the tower leads to on its layer, or the first one below where it leads to something; false at the end.
  const auto look = [](Path* path) {
    for (;; --path->layer) {
      path->next = path->list->Load(path->tower, path->layer);
      if (path->next != nullptr) break;
      if (path->layer == 0) return false;
    }
    Prefetch(path->next);
    Prefetch(reinterpret_cast<const char*>(path->next) + kCacheLine);  // a tall one's key
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
