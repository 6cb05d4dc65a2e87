// The data of batches in RocksDB's form: the bytes are those that RocksDB 7.8.3 gives.
#include <algorithm>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;

class CApiWireBatchTest : public CApiTest {
 protected:
  CApiWireBatchTest() {
    Open();
    other_ = braiddb_create_column_family(db_, options_, "other", error_.pointer());
    EXPECT_EQ("", error_.Take());
  }
  ~CApiWireBatchTest() override {
    braiddb_writebatch_destroy(batch_);
    braiddb_column_family_handle_destroy(other_);
  }
  static std::string Data(braiddb_writebatch_t* batch) {
    size_t length = 0;
    const char* const data = braiddb_writebatch_data(batch, &length);
    return {data, length};
  }
  // The error of writing what was made from them.
  std::string WriteErrorOf(std::string_view data) {
    braiddb_writebatch_t* const batch = braiddb_writebatch_create_from(data.data(), data.size());
    braiddb_write(db_, write_, batch, error_.pointer());
    braiddb_writebatch_destroy(batch);
    return error_.Take();
  }

  braiddb_column_family_handle_t* other_ = nullptr;
  braiddb_writebatch_t* const batch_ = braiddb_writebatch_create();
};

constexpr std::string_view kEmpty = "\0\0\0\0\0\0\0\0\0\0\0\0"sv;
constexpr std::string_view kAll =
    "\0\0\0\0\0\0\0\0\x0a\0\0\0"
    "\x01\x01k\x01v\0\x01k\x07\x01s\x02\x01m\x01o\x03\x03log\x0f\x01"
    "a\x01"
    "b\x05\x01\x01k\x01v\x04\x01\x01k\x08\x01\x01s\x06\x01\x01m\x01o\x0e\x01\x01"
    "a\x01"
    "b"sv;

TEST_F(CApiWireBatchTest, BytesAreThoseOfRocksDB) {
  EXPECT_EQ(kEmpty, Data(batch_));
  braiddb_writebatch_put(batch_, "k", 1, "v", 1);
  braiddb_writebatch_delete(batch_, "k", 1);
  braiddb_writebatch_singledelete(batch_, "s", 1);
  braiddb_writebatch_merge(batch_, "m", 1, "o", 1);
  braiddb_writebatch_put_log_data(batch_, "log", 3);
  braiddb_writebatch_delete_range(batch_, "a", 1, "b", 1);
  braiddb_writebatch_put_cf(batch_, other_, "k", 1, "v", 1);
  braiddb_writebatch_delete_cf(batch_, other_, "k", 1);
  braiddb_writebatch_singledelete_cf(batch_, other_, "s", 1);
  braiddb_writebatch_merge_cf(batch_, other_, "m", 1, "o", 1);
  braiddb_writebatch_delete_range_cf(batch_, other_, "a", 1, "b", 1);
  EXPECT_EQ(10, braiddb_writebatch_count(batch_));
  EXPECT_EQ(kAll, Data(batch_));
  braiddb_writebatch_t* const copy = braiddb_writebatch_create_from(kAll.data(), kAll.size());
  EXPECT_EQ(10, braiddb_writebatch_count(copy));
  EXPECT_EQ(kAll, Data(copy));
  braiddb_writebatch_append(copy, copy);
  EXPECT_EQ(20, braiddb_writebatch_count(copy));
  EXPECT_EQ(kAll.size() * 2 - kEmpty.size(), Data(copy).size());
  EXPECT_EQ(kAll.substr(kEmpty.size()), Data(copy).substr(kAll.size()));
  braiddb_writebatch_destroy(copy);
  braiddb_writebatch_clear(batch_);
  EXPECT_EQ(kEmpty, Data(batch_));
}

TEST_F(CApiWireBatchTest, StayWhereTheyAreUntilTheBatchChanges) {
  braiddb_writebatch_put(batch_, "k", 1, std::string(100, 'v').data(), 100);
  size_t length = 0;
  const char* const data = braiddb_writebatch_data(batch_, &length);
  const std::string before(data, length);
  EXPECT_EQ(data, braiddb_writebatch_data(batch_, &length));
  EXPECT_EQ(before, std::string(data, length));
}

TEST_F(CApiWireBatchTest, LongStringsAndManyFamilies) {
  braiddb_column_family_handle_t* family = nullptr;
  for (int i = 0; i < 130; ++i) {
    braiddb_column_family_handle_destroy(family);
    family = braiddb_create_column_family(db_, options_, ("f" + std::to_string(i)).c_str(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  ASSERT_EQ(131u, braiddb_column_family_handle_get_id(family));
  const std::string value(20'000, 'v');
  braiddb_writebatch_put_cf(batch_, family, "k", 1, value.data(), value.size());
  EXPECT_EQ("\0\0\0\0\0\0\0\0\1\0\0\0\5\x83\1\1k\xa0\x9c\1"s + value, Data(batch_));
  const std::string data = Data(batch_);
  EXPECT_EQ("", WriteErrorOf(data));
  size_t length = 0;
  braiddb_free(braiddb_get_cf(db_, read_, family, "k", 1, &length, error_.pointer()));
  EXPECT_EQ(20'000u, length);
  braiddb_column_family_handle_destroy(family);
}

TEST_F(CApiWireBatchTest, SavePointsTakeBackLogDataToo) {
  braiddb_writebatch_put(batch_, "k", 1, "v", 1);
  const std::string before = Data(batch_);
  braiddb_writebatch_set_save_point(batch_);
  braiddb_writebatch_put_log_data(batch_, "log", 3);
  braiddb_writebatch_singledelete(batch_, "s", 1);
  EXPECT_EQ("\0\0\0\0\0\0\0\0\2\0\0\0\1\1k\1v\3\3log\7\1s"s, Data(batch_));
  braiddb_writebatch_rollback_to_save_point(batch_, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(before, Data(batch_));
}

// Two batches get the same random calls: one is asked for its data after each, the other at the end.
TEST_F(CApiWireBatchTest, AreTheSameHoweverOftenTheyAreAskedFor) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::function<void(braiddb_writebatch_t*)>> calls;
    braiddb_writebatch_clear(batch_);
    size_t save_points = 0;
    size_t done = 0;
    for (int i = 0; i < 30; ++i) {
      const std::string key(random() % 300, static_cast<char>('a' + i % 26));
      const auto choice = random() % 12;
      if (choice < 3) {
        calls.emplace_back([key](auto* batch) { braiddb_writebatch_put(batch, key.data(), key.size(), "v", 1); });
      } else if (choice == 3) {
        calls.emplace_back([key](auto* batch) { braiddb_writebatch_singledelete(batch, key.data(), key.size()); });
      } else if (choice == 4) {
        calls.emplace_back([key](auto* batch) { braiddb_writebatch_delete(batch, key.data(), key.size()); });
      } else if (choice == 5) {
        calls.emplace_back([key](auto* batch) { braiddb_writebatch_put_log_data(batch, key.data(), key.size()); });
      } else if (choice == 6) {
        calls.emplace_back([key](auto* batch) { braiddb_writebatch_delete_range(batch, "", 0, key.data(), key.size()); });
      } else if (choice == 7 && random() % 4 == 0) {
        calls.emplace_back([](auto* batch) { braiddb_writebatch_append(batch, batch); });
      } else if (choice < 10) {
        ++save_points;
        calls.emplace_back([](auto* batch) { braiddb_writebatch_set_save_point(batch); });
      } else if (save_points > 0) {
        --save_points;
        calls.emplace_back([pops = random() % 4 == 0](auto* batch) {
          (pops ? braiddb_writebatch_pop_save_point : braiddb_writebatch_rollback_to_save_point)(batch, nullptr);
        });
      }
      if (calls.size() == done) continue;
      done = calls.size();
      calls.back()(batch_);
      if (random() % 3 != 0) Data(batch_);
      braiddb_writebatch_t* const other = braiddb_writebatch_create();
      for (const auto& call : calls) call(other);
      ASSERT_EQ(Data(other), Data(batch_)) << round << " " << i;
      ASSERT_EQ(braiddb_writebatch_count(other), braiddb_writebatch_count(batch_));
      braiddb_writebatch_destroy(other);
    }
  }
}

// The least of three.
double SecondsOf(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = now();
    work();
    least = std::min(least, now() - start);
  }
  return least;
}

// Eight times as many puts take eight times as long, and not 64 times.
TEST_F(CApiWireBatchTest, ToAskForThemAfterEachPutIsNotQuadratic) {
  const auto fill = [](int count, auto create, auto put, auto data, auto destroy) {
    return SecondsOf([&] {
      auto* const batch = create();
      size_t length = 0;
      for (int i = 0; i < count; ++i) {
        put(batch, "0123456789abcdef", 16, "0123456789abcdef", 16);
        data(batch, &length);
      }
      EXPECT_GT(length, static_cast<size_t>(count) * 32);
      destroy(batch);
    });
  };
  const auto expect_linear = [&fill](auto... functions) {
    EXPECT_LT(fill(16'000, functions...), 24 * fill(2'000, functions...));
  };
  expect_linear(braiddb_writebatch_create, braiddb_writebatch_put, braiddb_writebatch_data, braiddb_writebatch_destroy);
  expect_linear([] { return braiddb_writebatch_wi_create(0, 1); }, braiddb_writebatch_wi_put, braiddb_writebatch_wi_data,
                braiddb_writebatch_wi_destroy);
}

// A rollback costs what is taken back, whatever stays.
TEST_F(CApiWireBatchTest, ARollbackDoesNotReadWhatStays) {
  const auto roll_back = [](int count) {
    braiddb_writebatch_t* const batch = braiddb_writebatch_create();
    for (int i = 0; i < count; ++i) braiddb_writebatch_put(batch, "0123456789abcdef", 16, "0123456789abcdef", 16);
    size_t length = 0;
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < 1000; ++i) {
        braiddb_writebatch_set_save_point(batch);
        braiddb_writebatch_put(batch, "k", 1, "v", 1);
        braiddb_writebatch_data(batch, &length);
        braiddb_writebatch_rollback_to_save_point(batch, nullptr);
      }
    });
    EXPECT_EQ(count, braiddb_writebatch_count(batch));
    braiddb_writebatch_destroy(batch);
    return seconds;
  };
  EXPECT_LT(roll_back(6'400), 8 * roll_back(100));
}

TEST_F(CApiWireBatchTest, WhatRocksDBWroteIsWritten) {
  // With a sequence number, a no-op, and the tag of a family for the default one.
  const std::string data = "\7\0\0\0\0\0\0\0\3\0\0\0\x0d\1\1a\1x\5\0\1b\1y\5\1\1c\1z"s;
  braiddb_writebatch_t* const batch = braiddb_writebatch_create_from(data.data(), data.size());
  EXPECT_EQ(3, braiddb_writebatch_count(batch));
  EXPECT_EQ("\7\0\0\0\0\0\0\0\3\0\0\0\x0d\1\1a\1x\1\1b\1y\5\1\1c\1z"s, Data(batch));
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_destroy(batch);
  EXPECT_EQ("a=x b=y ", Scan(read_));
  EXPECT_EQ("", WriteErrorOf("\0\0\0\0\0\0\0\0\2\0\0\0\7\1a\x0f\1b\1c"s));
  EXPECT_EQ("", Scan(read_));
}

TEST_F(CApiWireBatchTest, DamageIsCorruption) {
  const std::string good = "\0\0\0\0\0\0\0\0\1\0\0\0\1\1k\1v"s;
  EXPECT_EQ("Corruption: malformed WriteBatch (too small)", WriteErrorOf(""));
  EXPECT_EQ("Corruption: malformed WriteBatch (too small)", WriteErrorOf(good.substr(0, 5)));
  EXPECT_EQ("Corruption: WriteBatch has wrong count", WriteErrorOf(good.substr(0, 12)));
  EXPECT_EQ("Corruption: bad WriteBatch Put", WriteErrorOf(good.substr(0, 16)));
  EXPECT_EQ("Corruption: WriteBatch has wrong count", WriteErrorOf("\0\0\0\0\0\0\0\0\2\0\0\0\1\1k\1v"s));
  EXPECT_EQ("Corruption: unknown WriteBatch tag", WriteErrorOf("\0\0\0\0\0\0\0\0\1\0\0\0\x55\1k\1v"s));
  EXPECT_EQ("Corruption: bad WriteBatch Delete", WriteErrorOf("\0\0\0\0\0\0\0\0\1\0\0\0\4\xff\xff\xff\xff\xff\xff"s));
  EXPECT_EQ(0u, WriteErrorOf("\0\0\0\0\0\0\0\0\1\0\0\0\5\xff\xff\3\1k\1v"s).find("Invalid argument: Invalid column family"));
  EXPECT_EQ(0u, WriteErrorOf("\0\0\0\0\0\0\0\0\1\0\0\0\5\x09\1k\1v"s).find("Invalid argument: "));
  EXPECT_EQ("", Scan(read_));
  // Each length at which a good one is cut is told, and what was cut is given back.
  for (size_t length = 1; length < kAll.size(); ++length) {
    EXPECT_EQ(0u, WriteErrorOf(kAll.substr(0, length)).find("Corruption: ")) << length;
  }
  braiddb_writebatch_t* const cut = braiddb_writebatch_create_from(kAll.data(), 20);
  EXPECT_EQ(10, braiddb_writebatch_count(cut));
  EXPECT_EQ(kAll.substr(0, 20), Data(cut));
  braiddb_writebatch_clear(cut);
  EXPECT_EQ(kEmpty, Data(cut));
  braiddb_writebatch_destroy(cut);
}

TEST_F(CApiWireBatchTest, WithAnIndex) {
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  const auto data_of = [](braiddb_writebatch_wi_t* of) {
    size_t length = 0;
    const char* const data = braiddb_writebatch_wi_data(of, &length);
    return std::string(data, length);
  };
  braiddb_writebatch_wi_put(batch, "k", 1, "v", 1);
  braiddb_writebatch_wi_put(batch, "k", 1, "v2", 2);
  braiddb_writebatch_wi_put_log_data(batch, "k", 1);
  const std::string data = "\0\0\0\0\0\0\0\0\2\0\0\0\1\1k\1v\1\1k\2v2\3\1k"s;
  EXPECT_EQ(data, data_of(batch));
  braiddb_writebatch_wi_t* const copy = braiddb_writebatch_wi_create_from(data.data(), data.size());
  EXPECT_EQ(data, data_of(copy));
  braiddb_writebatch_wi_set_save_point(batch);
  braiddb_writebatch_wi_singledelete_cf(batch, other_, "s", 1);
  braiddb_writebatch_wi_put_log_data(batch, "x", 1);
  EXPECT_EQ("\0\0\0\0\0\0\0\0\3\0\0\0"s + data.substr(12) + "\x8\1\1s\3\1x", data_of(batch));
  braiddb_writebatch_wi_rollback_to_save_point(batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(data, data_of(batch));
  braiddb_write_writebatch_wi(db_, write_, copy, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("k=v2 ", Scan(read_));
  braiddb_writebatch_wi_destroy(copy);
  braiddb_writebatch_wi_destroy(batch);
}

// What a program sends to another database.
TEST_F(CApiWireBatchTest, BatchesOfTheLogHaveTheirNumbers) {
  Put("a", "1");
  braiddb_writebatch_put(batch_, "b", 1, "2", 1);
  braiddb_writebatch_delete(batch_, "a", 1);
  braiddb_write(db_, write_, batch_, error_.pointer());
  braiddb_wal_iterator_t* const log = braiddb_get_updates_since(db_, 1, nullptr, error_.pointer());
  ASSERT_EQ("", error_.Take());
  std::vector<std::string> all;
  for (; braiddb_wal_iter_valid(log); braiddb_wal_iter_next(log)) {
    uint64_t sequence = 0;
    braiddb_writebatch_t* const batch = braiddb_wal_iter_get_batch(log, &sequence);
    all.push_back(Data(batch));
    braiddb_writebatch_destroy(batch);
  }
  braiddb_wal_iter_destroy(log);
  ASSERT_EQ(2u, all.size());
  EXPECT_EQ("\1\0\0\0\0\0\0\0\1\0\0\0\1\1a\1\x31"s, all[0]);
  EXPECT_EQ("\2\0\0\0\0\0\0\0\2\0\0\0\1\1b\1\x32\0\1a"s, all[1]);
}

}  // namespace
}  // namespace braiddb::test
