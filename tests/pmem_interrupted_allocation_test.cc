// Blocks are allocated also if a signal interrupts each call that takes long.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "pmem/pool_maker.h"
#include "tests/support/db_test_util.h"

namespace {

constexpr off_t kMostAtOnce = 100'000;
off_t last_end = 0;
bool in_order = true;

int AllocateAtMost(off_t begin, off_t bytes) {
  if (bytes > kMostAtOnce) return EINTR;
  in_order = in_order && begin == last_end;
  last_end = begin + bytes;
  return 0;
}

}  // namespace

// In place of the C library's.
extern "C" int fallocate(int, int, off_t begin, off_t bytes) {
  errno = AllocateAtMost(begin, bytes);
  return errno == 0 ? 0 : -1;
}
extern "C" int posix_fallocate(int, off_t begin, off_t bytes) { return AllocateAtMost(begin, bytes); }

namespace braiddb::test {
namespace {

TEST(InterruptedAllocationTest, IsDoneInPieces) {
  constexpr uint64_t kEnd = (18 << 20) + 4096;
  last_end = 0;
  EXPECT_EQ(Allocate(-1, 0, kEnd), 0);
  EXPECT_EQ(last_end, static_cast<off_t>(kEnd));
  last_end = 4096;
  EXPECT_OK(FillRange(-1, "file", 4096, kEnd));
  EXPECT_EQ(last_end, static_cast<off_t>(kEnd));
  EXPECT_TRUE(in_order);
}

}  // namespace
}  // namespace braiddb::test
