// TtlValue: a value with the time of its write.
//
// LAYOUT  value · time i32, seconds since 1970 (UTC), little endian. RocksDB's format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "braiddb/slice.h"
#include "braiddb/status.h"

namespace braiddb {

inline constexpr size_t kTimeBytes = sizeof(int32_t);

// Writes the value followed by the time to `buffer`. The format ends in 2038; later times are stored as the last time of the
// format.
inline void AddTime(Slice value, int64_t time, std::string* buffer) {
  const auto stored =
      static_cast<int32_t>(std::clamp<int64_t>(time, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  char bytes[kTimeBytes];
  std::memcpy(bytes, &stored, sizeof bytes);
  buffer->reserve(value.size() + kTimeBytes);
  buffer->assign(value);
  buffer->append(bytes, sizeof bytes);
}

inline bool HasTime(Slice stored) { return stored.size() >= kTimeBytes; }
// REQUIRES: HasTime(stored).
inline Slice WithoutTime(Slice stored) { return stored.substr(0, stored.size() - kTimeBytes); }
inline int64_t TimeOf(Slice stored) {
  int32_t time = 0;
  std::memcpy(&time, stored.data() + stored.size() - kTimeBytes, sizeof time);
  return time;
}

inline Status NoTime() {
  return Status::Corruption("a value is shorter than the time of its write; was the database written to without DBWithTTL?");
}

}  // namespace braiddb
