// TtlFilter: the compaction filter of DBWithTTL. Drops expired values.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "braiddb/compaction_filter.h"
#include "braiddb/ttl.h"

namespace braiddb {

// The lifetime of keys and the current time.
// Thread safety: all methods may be called concurrently.
class TtlClock {
 public:
  // `ttl`: lifetime in seconds; used instead of the options' value.
  TtlClock(const TtlOptions& options, int32_t ttl);

  int64_t Now() const { return now_(); }
  void SetTtl(int32_t seconds) { ttl_.store(seconds, std::memory_order_relaxed); }
  // Whether a value that has a time is expired.
  bool IsOver(Slice stored) const;

 private:
  const std::function<int64_t()> now_;
  std::atomic<int32_t> ttl_;
};

// Creates filters that drop expired values and ask the user's filter about all others. The user's filter and factory may be null.
std::shared_ptr<CompactionFilterFactory> MakeTtlFilterFactory(std::shared_ptr<const TtlClock> clock,
                                                              const CompactionFilter* users_filter,
                                                              std::shared_ptr<CompactionFilterFactory> users_factory);

}  // namespace braiddb
