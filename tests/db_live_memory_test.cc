// A live reader without DRAM: calls fail, its process goes on, and afterwards it holds nothing of the writer's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_new.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

// Bytes of the shared memory of this process.
uint64_t SharedBytes() {
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error).string().find("memfd:braiddb") == std::string::npos) continue;
    struct stat file {};
    if (stat(entry.path().c_str(), &file) == 0) bytes += static_cast<uint64_t>(file.st_blocks) * 512;
  }
  return bytes;
}

class LiveMemoryTest : public DbOpenTest {
 protected:
  // Opens when the first byte comes. Then reads until the pipe is closed; allocations fail until the second byte comes.
  int ReadWithoutMemory(int from) const {
    char first = 0;
    if (read(from, &first, 1) != 1) return 4;
    std::unique_ptr<DB> reader;
    if (!DB::OpenForReadOnly(options_, path_, &reader).ok()) return 2;
    fcntl(from, F_SETFL, O_NONBLOCK);
    bool fails = true;
    char byte = 0;
    std::string value;
    value.reserve(1000);
    uint64_t wrong = 0;
    for (int64_t round = 0;; ++round) {
      const ssize_t bytes = read(from, &byte, 1);
      if (bytes == 0) break;
      fails &= bytes != 1;
      // An allocation of the thread that follows fails, or one of the call.
      const Failing failing(!fails ? Who::kNobody : round % 2 == 0 ? Who::kOthers : Who::kThisThread, round % 61, 1 + round % 3);
      try {
        const Status status = reader->Get({}, NumberedKey(static_cast<uint64_t>(round) % 500), &value);
        wrong += !status.ok() && !status.IsMemoryLimit() ? 1 : 0;
      } catch (const std::bad_alloc&) {
      }
    }
    return wrong == 0 ? 0 : 3;
  }
  Options options_ = TinyOptions(1);
};

TEST_F(LiveMemoryTest, TheReaderGoesOnAndHoldsNothing) {
  options_.l1 = L1Kind::kBraidedSkipList;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = ForkChild();
  if (child == 0) {
    close(ends[1]);
    LeaveChild(ReadWithoutMemory(ends[0]));
  }
  close(ends[0]);
  // After the fork, so that the child has no lock of another thread.
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  for (int i = 0; i < 500; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), std::string(100, 'v')));
  ASSERT_EQ(::write(ends[1], "o", 1), 1);
  std::vector<DB::LiveReaderInfo> readers;
  ASSERT_TRUE(WaitUntil([&] { return DB::ListLiveReaders(path_, &readers).ok() && !readers.empty(); }));
  const auto write = [&] {
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 500; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), std::string(100, 'v')));
      ASSERT_OK(writer->Flush());
    }
    ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  };
  for (int i = 0; i < 4; ++i) write();
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  write();
  // What the reader held while there was no memory goes back when it follows again.
  EXPECT_TRUE(WaitUntil([&] {
    (void)writer->Put({}, "k", "v");
    (void)writer->Flush();
    return SharedBytes() < (8u << 20);
  })) << SharedBytes();
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace braiddb::test
