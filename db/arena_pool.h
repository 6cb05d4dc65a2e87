// ArenaPool: arenas of freed memtables, kept for the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "util/arena.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently. After the constructor none throws or allocates, since memtables give
// their arenas back where no failure is possible.
class ArenaPool {
 public:
  // The largest number of arenas that a pool keeps.
  static constexpr size_t kMost = 6;

  ArenaPool() { arenas_.reserve(kMost); }
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  // The arena that was kept last, if its first extent is large enough. Smaller ones are freed. Null if there is none.
  std::unique_ptr<Arena> Take(uint64_t least_first_bytes);
  // Keeps the arena unless there are `most` already. REQUIRES: most <= kMost, and the arena is empty.
  void Keep(std::unique_ptr<Arena> arena, size_t most);
  void Clear();
  bool empty() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace braiddb
