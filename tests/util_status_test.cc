// Status, comparators and statistics: the public value types.
#include <gtest/gtest.h>

#include <algorithm>

#include "braiddb/comparator.h"
#include "braiddb/statistics.h"
#include "braiddb/status.h"

namespace braiddb {
namespace {

TEST(Status, OkHasNoMessage) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Status::Code::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
}

TEST(Status, EachCodeKnowsItselfAndItsName) {
  EXPECT_EQ(Status::NotFound("k").ToString(), "NotFound: k");
  EXPECT_EQ(Status::Corruption("k").ToString(), "Corruption: k");
  EXPECT_EQ(Status::NotSupported("k").ToString(), "Not implemented: k");
  EXPECT_EQ(Status::InvalidArgument("k").ToString(), "Invalid argument: k");
  EXPECT_EQ(Status::IOError("k").ToString(), "IO error: k");
  EXPECT_TRUE(Status::NotFound().IsNotFound());
  EXPECT_TRUE(Status::Corruption("k").IsCorruption());
  EXPECT_TRUE(Status::NotSupported("k").IsNotSupported());
  EXPECT_TRUE(Status::InvalidArgument("k").IsInvalidArgument());
  EXPECT_TRUE(Status::IOError("k").IsIOError());
  EXPECT_TRUE(Status::Busy("k").IsBusy());
  EXPECT_TRUE(Status::NoSpace("k").IsNoSpace());
  EXPECT_TRUE(Status::ReadOnly("k").IsReadOnly());
  EXPECT_TRUE(Status::Aborted("k").IsAborted());
  EXPECT_TRUE(Status::MemoryLimit("k").IsMemoryLimit());
  EXPECT_FALSE(Status::Busy("k").ok());
}

TEST(Status, CopiesAreIndependent) {
  Status original = Status::Busy("held");
  Status copy = original;
  original = Status::OK();
  EXPECT_TRUE(original.ok());
  EXPECT_EQ(copy.message(), "held");
  const Status& alias = copy;
  copy = alias;
  EXPECT_EQ(copy.message(), "held");
  const Status moved = std::move(copy);
  EXPECT_TRUE(moved.IsBusy());
  EXPECT_EQ(moved.message(), "held");
}

TEST(Comparator, BytewiseIsUnsignedAndShorterFirst) {
  const Comparator* order = BytewiseComparator();
  EXPECT_LT(order->Compare("a", "b"), 0);
  EXPECT_GT(order->Compare("\xff", "\x01"), 0);
  EXPECT_LT(order->Compare("a", "aa"), 0);
  EXPECT_LT(order->Compare("", Slice("\0", 1)), 0);
  EXPECT_EQ(order->Compare(Slice("a\0b", 3), Slice("a\0b", 3)), 0);
  EXPECT_LT(order->Compare(Slice("a\0a", 3), Slice("a\0b", 3)), 0);
}

TEST(Comparator, ReverseIsTheExactReverse) {
  const Slice keys[] = {"", "a", "aa", "b", "\xff"};
  for (const Slice a : keys) {
    for (const Slice b : keys) {
      EXPECT_EQ(ReverseBytewiseComparator()->Compare(a, b) < 0, BytewiseComparator()->Compare(b, a) < 0);
    }
  }
  EXPECT_STRNE(ReverseBytewiseComparator()->Name(), BytewiseComparator()->Name());
}

TEST(Statistics, PrintsOneCounterPerLine) {
  Statistics statistics;
  statistics.writes = 12;
  statistics.recovery_us = 34;
  const std::string text = statistics.ToString();
  EXPECT_NE(text.find("braiddb.writes COUNT : 12\n"), std::string::npos);
  EXPECT_NE(text.find("braiddb.recovery.micros COUNT : 34\n"), std::string::npos);
  // A counter that was added to the struct and not to the text.
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), sizeof(Statistics) / sizeof(uint64_t));
}

}  // namespace
}  // namespace braiddb
