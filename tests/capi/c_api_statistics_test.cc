// Statistics through the C API: what databases that share options have counted, as RocksDB's tickers.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "braiddb/c.h"
#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

class CApiStatisticsTest : public CApiTest {
 protected:
  // "" if there are none.
  std::string Text() {
    char* const text = braiddb_options_statistics_get_string(options_);
    const std::string copy = text == nullptr ? "" : text;
    braiddb_free(text);
    return copy;
  }
  uint64_t Ticker(const std::string& name) {
    const std::string text = "\n" + Text(), line = "\nrocksdb." + name + " COUNT : ";
    const size_t at = text.find(line);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no ticker " << name << " in\n" << text;
      return 0;
    }
    return std::stoull(text.substr(at + line.size()));
  }
};

TEST_F(CApiStatisticsTest, ThereAreNoneUnlessEnabled) {
  Open();
  EXPECT_EQ(braiddb_options_statistics_get_string(options_), nullptr);
}

TEST_F(CApiStatisticsTest, TickersCountWhatWasDone) {
  braiddb_options_enable_statistics(options_);
  Open();
  EXPECT_EQ(Ticker("number.keys.written"), 0u);
  for (int i = 0; i < 10; ++i) Put("key" + std::to_string(i), "value");
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "a", 1, "1", 1);
  braiddb_writebatch_put(batch, "b", 1, "2", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  braiddb_writebatch_destroy(batch);
  ASSERT_EQ("", error_.Take());
  for (int i = 0; i < 7; ++i) EXPECT_EQ(Get("key" + std::to_string(i)), "value");
  EXPECT_EQ(Ticker("number.keys.written"), 12u);
  EXPECT_EQ(Ticker("write.self"), 11u);
  EXPECT_EQ(Ticker("write.wal"), 11u);
  EXPECT_EQ(Ticker("number.keys.read"), 7u);
  EXPECT_GT(Ticker("wal.bytes"), 100u);
  EXPECT_EQ(Ticker("block.cache.miss"), 0u);

  // What one that is closed had counted stays; what another open with the same options counts comes to it.
  Close();
  EXPECT_EQ(Ticker("number.keys.written"), 12u);
  Open();
  Put("more", "value");
  EXPECT_EQ(Ticker("number.keys.written"), 13u);

  // Options and their copies have the same ones, and databases outlive them.
  braiddb_options_t* const copy = braiddb_options_create_copy(options_);
  char* const text = braiddb_options_statistics_get_string(copy);
  EXPECT_EQ(Text(), text);
  braiddb_free(text);
  braiddb_options_destroy(copy);
}

}  // namespace
}  // namespace braiddb::test
