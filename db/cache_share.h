// CacheShare: the bytes that one database has taken from its CacheLimit.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "braiddb/cache_limit.h"

namespace braiddb {

// Gives all bytes back when it is destroyed. Without a limit, Take returns `most`. Thread safety: none.
class CacheShare {
 public:
  explicit CacheShare(std::shared_ptr<CacheLimit> limit) : limit_(std::move(limit)) {}
  ~CacheShare() { Give(bytes_); }
  CacheShare(const CacheShare&) = delete;
  CacheShare& operator=(const CacheShare&) = delete;

  // Take, Force and Give: as in CacheLimit.
  uint64_t Take(uint64_t least, uint64_t most) {
    const uint64_t taken = limit_ == nullptr ? most : limit_->Take(least, most);
    bytes_ += taken;
    return taken;
  }
  void Force(uint64_t bytes) {
    bytes_ += bytes;
    if (limit_ != nullptr) limit_->Force(bytes);
  }
  void Give(uint64_t bytes) {
    bytes_ -= bytes;
    if (limit_ != nullptr && bytes > 0) limit_->Give(bytes);
  }
  bool is_limited() const { return limit_ != nullptr; }
  bool is_short() const { return limit_ != nullptr && limit_->is_short(); }

 private:
  const std::shared_ptr<CacheLimit> limit_;
  uint64_t bytes_ = 0;
};

}  // namespace braiddb
