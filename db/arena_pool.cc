#include "db/arena_pool.h"

#include <utility>

#include "util/check.h"

namespace braiddb {

std::unique_ptr<Arena> ArenaPool::Take(uint64_t least_first_bytes) {
  const std::lock_guard lock(mutex_);
  while (!arenas_.empty() && arenas_.back()->first_bytes() < least_first_bytes) arenas_.pop_back();
  if (arenas_.empty()) return nullptr;
  std::unique_ptr<Arena> arena = std::move(arenas_.back());
  arenas_.pop_back();
  return arena;
}

void ArenaPool::Keep(std::unique_ptr<Arena> arena, size_t most) {
  BRAIDDB_DCHECK(most <= kMost);
  const std::lock_guard lock(mutex_);
  if (arenas_.size() < most) arenas_.push_back(std::move(arena));
}

void ArenaPool::Clear() {
  const std::lock_guard lock(mutex_);
  arenas_.clear();
}

bool ArenaPool::empty() const {
  const std::lock_guard lock(mutex_);
  return arenas_.empty();
}

}  // namespace braiddb
