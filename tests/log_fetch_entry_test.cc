// How much of entries is fetched before their sizes are known.
#include <gtest/gtest.h>

#include <vector>

#include "log/fetch_entry.h"

namespace braiddb::test {
namespace {

// Of entries with 8-byte keys whose values have these sizes: only headers are looked at.
uint64_t TypicalOf(const std::vector<uint32_t>& value_sizes) {
  std::vector<LogEntry> headers;
  for (const uint32_t size : value_sizes) headers.push_back({1, 0, size, LogEntry::MakeShape(8, 1, 0)});
  return TypicalEntryBytes(headers.size(), [&headers](uint64_t i) { return &headers[i]; });
}

TEST(TypicalEntryBytes, IsTheSizeWhereAllHaveOne) {
  for (const size_t count : {1, 2, 3, 15, 16, 17, 1000}) {
    EXPECT_EQ(TypicalOf(std::vector<uint32_t>(count, 8)), LogEntrySize(1, 8, 8)) << count;
    EXPECT_EQ(TypicalOf(std::vector<uint32_t>(count, 100)), LogEntrySize(1, 8, 100)) << count;
  }
}

TEST(TypicalEntryBytes, IsNotLessThanMostOfThem) {
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < 1600; ++i) sizes.push_back(i / 100 * 8);  // 0 … 120
  EXPECT_EQ(TypicalOf(sizes), LogEntrySize(1, 8, 96));
  // A few large ones do not count.
  for (uint32_t i = 0; i < 1600; ++i) sizes[i] = i < 1400 ? 8 : 1 << 20;
  EXPECT_EQ(TypicalOf(sizes), LogEntrySize(1, 8, 8));
}

TEST(TypicalEntryBytes, HasAnEnd) {
  EXPECT_EQ(TypicalOf({}), 0u);
  EXPECT_EQ(TypicalOf(std::vector<uint32_t>(100, 1 << 20)), kMostTypicalBytes);
}

}  // namespace
}  // namespace braiddb::test
