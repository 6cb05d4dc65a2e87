// The compaction filter of DBWithTTL.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "braiddb/compaction_filter.h"
#include "braiddb/ttl.h"

namespace braiddb {

// How long keys live, and what time it is.
// Thread safety: all methods, by any number of threads.
class TtlClock {
 public:
  // `ttl`: in place of the options'.
  TtlClock(const TtlOptions& options, int32_t ttl);

  int64_t Now() const { return now_(); }
  void SetTtl(int32_t seconds) { ttl_.store(seconds, std::memory_order_relaxed); }
  // Of a value that has a time.
  bool IsOver(Slice stored) const;

 private:
  const std::function<int64_t()> now_;
  std::atomic<int32_t> ttl_;
};

// Makes filters that remove what has expired, and ask the user's about the rest; either of the user's may be null.
std::shared_ptr<CompactionFilterFactory> MakeTtlFilterFactory(std::shared_ptr<const TtlClock> clock,
                                                              const CompactionFilter* users_filter,
                                                              std::shared_ptr<CompactionFilterFactory> users_factory);

}  // namespace braiddb
