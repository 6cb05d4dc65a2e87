// Files, the lock, the logger, and format.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/support/fork_child.h"
#include "util/file.h"
#include "util/format.h"
#include "util/logger.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "braiddb-file-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::string dir_;
};

TEST_F(FileTest, CreateDirMakesParentsAndIsIdempotent) {
  ASSERT_TRUE(CreateDir(Path("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(Path("a/b/c")));
  EXPECT_TRUE(CreateDir(Path("a/b/c")).ok());
  EXPECT_TRUE(CreateDir(Path("a/b/d///")).ok());
  EXPECT_TRUE(CreateDir("/").ok());
}

TEST_F(FileTest, CreateDirOverAFileSaysSo) {
  ASSERT_TRUE(WriteSmallFile(Path("f"), "x").ok());
  const Status status = CreateDir(Path("f"));
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.message().find("there is a file of that name"), std::string_view::npos);
  EXPECT_FALSE(CreateDir(Path("f/below")).ok());
}

TEST_F(FileTest, SmallFilesAreReplacedWhole) {
  std::string data;
  EXPECT_TRUE(ReadSmallFile(Path("f"), 100, &data).IsNotFound());
  const std::string bytes(5000, '\0');
  ASSERT_TRUE(WriteSmallFile(Path("f"), bytes).ok());
  ASSERT_TRUE(ReadSmallFile(Path("f"), 5000, &data).ok());
  EXPECT_EQ(data, bytes);
  EXPECT_TRUE(ReadSmallFile(Path("f"), 4999, &data).IsCorruption());
  ASSERT_TRUE(WriteSmallFile(Path("f"), "").ok());
  ASSERT_TRUE(ReadSmallFile(Path("f"), 0, &data).ok());
  EXPECT_EQ(data, "");
  std::vector<std::string> names;
  ASSERT_TRUE(ListDir(dir_, &names).ok());
  EXPECT_EQ(names, std::vector<std::string>{"f"});  // no temporary left
}

TEST_F(FileTest, FailedWriteLeavesTheOldFile) {
  EXPECT_TRUE(WriteSmallFile(Path("missing/f"), "x").IsNotFound());
  ASSERT_TRUE(CreateDir(Path("d/full")).ok());
  EXPECT_FALSE(WriteSmallFile(Path("d"), "x").ok());  // a directory that is not empty cannot be replaced
  EXPECT_FALSE(FileExists(Path("d.tmp")));
  EXPECT_TRUE(FileExists(Path("d/full")));
}

TEST_F(FileTest, RemoveIsIdempotent) {
  ASSERT_TRUE(CreateDir(Path("d")).ok());
  ASSERT_TRUE(WriteSmallFile(Path("d/f"), "x").ok());
  EXPECT_FALSE(RemoveDir(Path("d")).ok());
  EXPECT_TRUE(RemoveFile(Path("d/f")).ok());
  EXPECT_TRUE(RemoveFile(Path("d/f")).ok());
  EXPECT_TRUE(RemoveDir(Path("d")).ok());
  EXPECT_TRUE(RemoveDir(Path("d")).ok());
  std::vector<std::string> names;
  EXPECT_TRUE(ListDir(Path("d"), &names).IsNotFound());
}

TEST_F(FileTest, LockIsRefusedInTheSameProcess) {
  std::unique_ptr<FileLock> first, second;
  ASSERT_TRUE(FileLock::Acquire(Path("LOCK"), &first).ok());
  const Status status = FileLock::Acquire(Path("LOCK"), &second);
  EXPECT_TRUE(status.IsBusy());
  EXPECT_EQ(second, nullptr);
  EXPECT_NE(status.message().find("locked by this process"), std::string_view::npos) << status.ToString();
  first.reset();
  EXPECT_TRUE(FileLock::Acquire(Path("LOCK"), &second).ok());
}

TEST_F(FileTest, ALockThatIsAboutToEndIsWaitedFor) {
  std::unique_ptr<FileLock> first, second;
  ASSERT_TRUE(FileLock::Acquire(Path("LOCK"), &first).ok());
  int attempts = 0;
  SyncPoints::Instance().SetCallback("RetryWhileLocked:Locked", [&](void*) {
    if (++attempts == 3) first.reset();
  });
  SyncPoints::Instance().Enable();
  EXPECT_TRUE(FileLock::Acquire(Path("LOCK"), &second).ok());
  SyncPoints::Instance().Clear();
  EXPECT_EQ(attempts, 3);
}

TEST_F(FileTest, LockIsRefusedToAnotherProcessAndEndsWithIt) {
  int to_parent[2], to_child[2];
  ASSERT_EQ(pipe(to_parent), 0);
  ASSERT_EQ(pipe(to_child), 0);
  const pid_t child = test::ForkChild();
  if (child == 0) {
    std::unique_ptr<FileLock> lock;
    const char locked = FileLock::Acquire(Path("LOCK"), &lock).ok() ? 'y' : 'n';
    char byte;
    (void)!write(to_parent[1], &locked, 1);
    (void)!read(to_child[0], &byte, 1);
    _exit(0);  // without giving the lock back
  }
  char locked = 0;
  ASSERT_EQ(read(to_parent[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  std::unique_ptr<FileLock> lock;
  const Status status = FileLock::Acquire(Path("LOCK"), &lock);
  EXPECT_TRUE(status.IsBusy());
  EXPECT_NE(status.message().find("locked by process " + std::to_string(child)), std::string_view::npos);
  EXPECT_FALSE(FileLock::Acquire(Path("missing/LOCK"), &lock).ok());
  ASSERT_EQ(write(to_child[1], "x", 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FileLock::Acquire(Path("LOCK"), &lock).ok());
  for (const int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) close(fd);
}

// Who waits for a lock whose file is removed meanwhile gets the lock of the file that others find.
TEST_F(FileTest, ALockOfARemovedFileIsNone) {
  std::unique_ptr<FileLock> first, second, third;
  ASSERT_TRUE(FileLock::Acquire(Path("LOCK"), &first).ok());
  SyncPoints::Instance().SetCallback("RetryWhileLocked:Locked", [&](void*) {
    std::filesystem::remove(Path("LOCK"));
    first.reset();
  });
  SyncPoints::Instance().Enable();
  EXPECT_TRUE(FileLock::Acquire(Path("LOCK"), &second).ok());
  SyncPoints::Instance().Clear();
  EXPECT_TRUE(std::filesystem::exists(Path("LOCK")));
  EXPECT_TRUE(FileLock::Acquire(Path("LOCK"), &third).IsBusy());
}

// What an earlier holder left in the file names nobody.
TEST_F(FileTest, AnOldHolderIsNotNamed) {
  std::ofstream(Path("LOCK")) << "1";
  const int reader = open(Path("LOCK").c_str(), O_RDONLY);
  ASSERT_EQ(flock(reader, LOCK_SH), 0);
  std::unique_ptr<FileLock> lock;
  const Status status = FileLock::Acquire(Path("LOCK"), &lock);
  EXPECT_TRUE(status.IsBusy());
  EXPECT_EQ(status.message().find("process 1;"), std::string_view::npos) << status.ToString();
  close(reader);
  ASSERT_TRUE(FileLock::Acquire(Path("LOCK"), &lock).ok());
  EXPECT_EQ(std::filesystem::status(Path("LOCK")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileTest, AnOpenFileIsAtItsPathUntilItIsReplaced) {
  std::ofstream(Path("a")) << "1";
  std::ofstream(Path("b")) << "2";
  const int file = open(Path("a").c_str(), O_RDONLY);
  EXPECT_TRUE(IsFileAt(file, Path("a")));
  EXPECT_FALSE(IsFileAt(file, Path("b")));
  std::filesystem::rename(Path("b"), Path("a"));
  EXPECT_FALSE(IsFileAt(file, Path("a")));
  std::filesystem::remove(Path("a"));
  EXPECT_FALSE(IsFileAt(file, Path("a")));
  close(file);
}

TEST_F(FileTest, ALoggedNameIsNoLine) {
  std::string line;
  Logger([&](std::string_view text) { line = text; }).Log("a\nb\x7f");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(line.ends_with("a\\x0ab\\x7f")) << line;
}

TEST_F(FileTest, DetailsOfALoggedMessageAreIndentedLines) {
  const std::vector<std::string> details = {"one", "two\nthree"};
  std::vector<std::string> lines;
  Logger([&](std::string_view text) { lines.emplace_back(text); }).Log("title", details);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].ends_with(" title"));
  EXPECT_EQ(lines[1], "  one");
  EXPECT_EQ(lines[2], "  two\\x0athree");
  Logger::OpenFile(Path("LOG"))->Log("title", details);
  EXPECT_TRUE(Read(Path("LOG")).ends_with(" title\n  one\n  two\\x0athree\n")) << Read(Path("LOG"));
}

TEST(StatusFromErrno, KeepsWhatCallersTellApart) {
  EXPECT_TRUE(StatusFromErrno(ENOSPC, "x").IsNoSpace());
  EXPECT_TRUE(StatusFromErrno(EDQUOT, "x").IsNoSpace());
  EXPECT_TRUE(StatusFromErrno(ENOENT, "x").IsNotFound());
  EXPECT_EQ(StatusFromErrno(EACCES, "cannot open f").ToString(), "IO error: cannot open f: Permission denied");
}

TEST_F(FileTest, LoggerWritesStampedLinesBehindThoseOfBefore) {
  std::unique_ptr<Logger> logger = Logger::OpenFile(Path("LOG"));
  logger->Log("first");
  logger->BeginRotation();
  const size_t first = Read(Path("LOG")).size();
  logger = Logger::OpenFile(Path("LOG"));
  logger->Log("second");
  const std::string data = Read(Path("LOG")).substr(first);
  int thread = 0, length = 0;
  EXPECT_EQ(std::sscanf(data.c_str(), "%*4d/%*2d/%*2d-%*2d:%*2d:%*2d.%*6d %d second%n", &thread, &length), 1) << data;
  EXPECT_EQ(thread, gettid());
  EXPECT_EQ(data.substr(static_cast<size_t>(length)), "\n");
  EXPECT_FALSE(FileExists(Path("LOG.old")));
}

// Numbers that are in the lines of a file, in their order.
std::vector<int> NumbersIn(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("number ");
    if (at != std::string::npos) numbers.push_back(std::stoi(line.substr(at + 7)));
  }
  return numbers;
}

// The newest lines are there, in order, in files of the size that was asked for.
TEST_F(FileTest, LoggerKeepsSomeFilesOfASize) {
  constexpr int kLines = 2000;
  constexpr uint64_t kBytes = 10'000;
  std::unique_ptr<Logger> logger = Logger::OpenFile(Path("LOG"), kBytes);
  const auto log = [&](int begin, int end) {
    for (int i = begin; i < end; ++i) logger->Log("number " + std::to_string(i));
  };
  log(0, kLines / 2);
  EXPECT_EQ(NumbersIn(Read(Path("LOG"))).size(), kLines / 2u) << "nothing is renamed before it is asked for";
  logger->BeginRotation();
  EXPECT_EQ(NumbersIn(Read(Path("LOG.old"))).size(), kLines / 2u);
  log(kLines / 2, kLines);
  const std::vector<std::string> files = Logger::Files(Path("LOG"));
  EXPECT_EQ(files.size(), static_cast<size_t>(Logger::kMaxFiles));
  int next = kLines;
  for (const std::string& file : files) {
    const std::vector<int> numbers = NumbersIn(Read(file));
    ASSERT_FALSE(numbers.empty()) << file;
    EXPECT_LE(Read(file).size(), kBytes + 100) << file;
    for (size_t i = 1; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], numbers[i - 1] + 1);
    EXPECT_EQ(numbers.back(), next - 1) << file;
    next = numbers.front();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(Path("LOG")).parent_path()),
                          std::filesystem::directory_iterator()),
            Logger::kMaxFiles);
}

TEST_F(FileTest, LoggerGoesOnWhereItsFilesCannotBeRenamedOrOpened) {
  std::filesystem::create_directories(Path("LOG.old.2"));
  std::unique_ptr<Logger> logger = Logger::OpenFile(Path("LOG"), 1000);
  logger->BeginRotation();
  for (int i = 0; i < 200; ++i) logger->Log("number " + std::to_string(i));
  size_t lines = 0;
  for (const std::string& file : Logger::Files(Path("LOG"))) {
    if (std::filesystem::is_regular_file(file)) lines += NumbersIn(Read(file)).size();
  }
  EXPECT_EQ(lines, 200u) << "nothing takes the place of a file that cannot be moved away";

  logger = Logger::OpenFile(Path("missing/LOG"));
  logger->Log("to nobody");
  logger->BeginRotation();
  logger->Log("to nobody");
  std::filesystem::create_directories(Path("directory"));
  Logger::OpenFile(Path("directory"))->Log("to nobody");
}

TEST_F(FileTest, LoggerKeepsLinesOfThreadsApart) {
  constexpr int kThreads = 4, kLines = 200;
  const std::unique_ptr<Logger> logger = Logger::OpenFile(Path("LOG"));
  const std::string message(200, 'm');
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kLines; ++i) logger->Log(message);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string data = Read(Path("LOG"));
  int lines = 0;
  for (size_t begin = 0, end; (end = data.find('\n', begin)) != std::string::npos; begin = end + 1, ++lines) {
    EXPECT_EQ(data.compare(end - message.size(), message.size(), message), 0);
    EXPECT_LT(end - begin, message.size() + 50);
  }
  EXPECT_EQ(lines, kThreads * kLines);
}

TEST(Logger, HandsLinesToASink) {
  std::string seen;
  Logger logger([&](std::string_view line) { seen = line; });
  logger.Log("hello");
  EXPECT_TRUE(seen.ends_with(" hello"));
  Logger(nullptr).Log("to nobody");
}

TEST(Format, ShortAndLong) {
  EXPECT_EQ(Format("%d-%s", 5, "x"), "5-x");
  EXPECT_EQ(Format("%s", ""), "");
  const std::string text(1000, 'a');
  EXPECT_EQ(Format("%s", text.c_str()), text);
  EXPECT_EQ(Format("%s", text.substr(0, 255).c_str()).size(), 255u);
  EXPECT_EQ(Format("%s", text.substr(0, 256).c_str()).size(), 256u);
}

}  // namespace
}  // namespace braiddb
