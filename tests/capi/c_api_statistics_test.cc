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
  braiddb_options_set_disable_auto_compactions(options_, 1);  // nothing is counted that the test does not do
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

// They are the database's. Those of a family's options have no effect.
TEST_F(CApiStatisticsTest, OfADatabaseThatIsOpenedWithItsFamilies) {
  braiddb_options_enable_statistics(options_);
  braiddb_options_t* const of_family = braiddb_options_create();
  for (const bool is_of_family : {false, true}) {
    const char* const names[] = {"default"};
    const braiddb_options_t* const of_families[] = {is_of_family ? options_ : of_family};
    braiddb_column_family_handle_t* handles[1];
    braiddb_t* const db = braiddb_open_column_families(is_of_family ? of_family : options_, path().c_str(), 1, names, of_families,
                                                       handles, error_.pointer());
    ASSERT_EQ("", error_.Take());
    braiddb_put(db, write_, "key", 3, "value", 5, error_.pointer());
    char* const text = braiddb_property_value(db, "rocksdb.options-statistics");
    EXPECT_EQ(text != nullptr, !is_of_family);
    braiddb_free(text);
    EXPECT_EQ(Ticker("number.keys.written"), 1u);
    braiddb_column_family_handle_destroy(handles[0]);
    braiddb_close(db);
  }
  braiddb_options_destroy(of_family);
}

TEST_F(CApiStatisticsTest, HistogramsOfWhatWasDone) {
  braiddb_options_enable_statistics(options_);
  Open();
  const auto line = [this](const std::string& name) {
    const std::string text = Text(), begin = "rocksdb." + name + " P50 : ";
    const size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << name << " is not in\n" << text;
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line("db.get.micros"),
            "rocksdb.db.get.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0");
  for (int i = 0; i < 10; ++i) Put("key" + std::to_string(i), "value");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(Get("key" + std::to_string(i)), "value");
  EXPECT_EQ(line("bytes.per.read"),
            "rocksdb.bytes.per.read P50 : 5.000000 P95 : 5.000000 P99 : 5.000000 P100 : 5.000000 COUNT : 7 SUM : 35");
  EXPECT_NE(line("db.write.micros").find(" COUNT : 10 "), std::string::npos);
  EXPECT_NE(line("wal.file.sync.micros").find(" COUNT : 0 "), std::string::npos);
  // As with tickers: what one that is closed had stays.
  Close();
  Open();
  EXPECT_EQ(Get("key0"), "value");
  EXPECT_NE(line("bytes.per.read").find(" COUNT : 8 SUM : 40"), std::string::npos);
}

}  // namespace
}  // namespace braiddb::test
