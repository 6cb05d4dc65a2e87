// Entries with long values, whose lines bypass the caches.
#include "log/log_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "log/log_reader.h"
#include "tests/support/db_test_util.h"
#include "tests/support/entry_store.h"

namespace braiddb::test {
namespace {

class LogWriterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_.segments()->Allocate(0, kBytes, &segment_).ok()); }

  // Writes the update at `offset` of a segment full of 0xee. Returns the whole segment, without what was there before.
  std::string Write(uint64_t offset, const LogUpdate& update, LogWriter::Streamed* streamed) {
    std::memset(segment_->data(), 0xee, kBytes);
    const uint64_t size = LogEntrySize(update.height, update.key.size(), update.value.size());
    end_ = LogWriter::WriteEntry({segment_, offset, size, false}, offset, 17, 0, update, streamed);
    EXPECT_TRUE(store_.regions()->persistence()->Drain());
    return {reinterpret_cast<const char*>(segment_->data()), kBytes};
  }

  static constexpr uint64_t kBytes = 200 << 10;
  EntryStore store_{1};
  Segment* segment_ = nullptr;
  uint64_t end_ = 0;
};

TEST_F(LogWriterTest, StreamedEntriesAreAsPlainOnes) {
  for (const size_t key_size : {0, 1, 8, 37, 300}) {
    for (const size_t value_size : {2048, 2049, 2111, 4096, 4171, 9000, 100'000}) {
      for (const uint64_t offset : {0, 8, 32, 64}) {
        for (const uint32_t height : {1u, 4u}) {
          const std::string key(key_size, 'k');
          const std::string value = PatternedValue(value_size, value_size);
          const LogUpdate update{EntryType::kPut, key, value, height};
          const std::string plain = Write(offset, update, nullptr);
          const uint64_t end = end_;
          LogWriter::Streamed streamed;
          ASSERT_EQ(Write(offset, update, &streamed), plain) << key_size << " " << value_size << " " << offset;
          ASSERT_EQ(end_, end);
          ASSERT_TRUE(LogReader(*segment_, kBytes).ValidAt(offset));
          // Whole lines, all of them of the value, and all but the first and the last of it.
          const uint8_t* const from = segment_->data() + offset + sizeof(LogEntry) + 8 * height + key_size;
          const uint8_t* const to = from + value_size;
          EXPECT_EQ(reinterpret_cast<uintptr_t>(streamed.begin) % kCacheLine, 0u);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(streamed.end) % kCacheLine, 0u);
          EXPECT_GE(streamed.begin, from);
          EXPECT_LT(streamed.begin, from + kCacheLine);
          EXPECT_LE(streamed.end, to);
          EXPECT_GT(streamed.end, to - kCacheLine);
        }
      }
    }
  }
}

TEST_F(LogWriterTest, ShortValuesAreNotStreamed) {
  LogWriter::Streamed streamed;
  const std::string value(LogWriter::kStreamedValue - 1, 'v');
  Write(0, {EntryType::kPut, "key", value, 1}, &streamed);
  EXPECT_EQ(streamed.begin, nullptr);
}

}  // namespace
}  // namespace braiddb::test
