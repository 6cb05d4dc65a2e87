// Children of a process that has a database open: they keep no lock of it, and do no harm with it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "braiddb/check.h"
#include "tests/support/db_fixture.h"

namespace braiddb::test {
namespace {

// A child that has what its parent had at the fork, and waits for its end.
class IdleChild {
 public:
  IdleChild() : pid_(fork()) {
    while (pid_ == 0) pause();
  }
  ~IdleChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

 private:
  const pid_t pid_;
};

TEST_F(DbOpenTest, AChildKeepsNoLock) {
  Options options = TinyOptions(2);
  options.initial_region_size = 24 << 20;
  auto db = OpenOrFail(options, path_);
  ASSERT_NE(db, nullptr);
  const IdleChild child;
  ASSERT_OK(db->Put({}, "k", "v"));
  db.reset();
  for (int i = 0; i < 3; ++i) {
    db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    EXPECT_EQ(GetOrText(db.get(), "k"), "v");
    db.reset();
  }
  ASSERT_OK(DB::OpenForReadOnly(options, path_, &db));
  const IdleChild of_a_reader;
  db.reset();
  ASSERT_OK(DB::Destroy({}, path_));
}

// The parent is killed, and its child lives on.
TEST_F(DbOpenTest, AChildOfAKilledParentKeepsNoLock) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    std::unique_ptr<DB> db;
    if (!Open(TinyOptions(2), &db).ok() || !db->Put({}, "k", "v").ok()) _exit(1);
    const pid_t child = fork();
    while (child == 0) pause();
    _exit(write(pipe_ends[1], &child, sizeof child) == sizeof child ? 0 : 1);
  }
  int how = 0;
  pid_t child = 0;
  ASSERT_EQ(waitpid(parent, &how, 0), parent);
  ASSERT_EQ(how, 0);
  ASSERT_EQ(read(pipe_ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  {
    auto db = OpenOrFail(TinyOptions(2), path_);
    ASSERT_NE(db, nullptr);
    EXPECT_EQ(GetOrText(db.get(), "k"), "v");
  }
  kill(child, SIGKILL);
  for (const int end : pipe_ends) close(end);
}

TEST_F(DbOpenTest, AChildThatUsesTheHandleGetsAnError) {
  auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "k", "v"));
  EXPECT_EQ(RunInChild([&] {
              std::unique_ptr<ColumnFamilyHandle> family;
              for (const Status& status :
                   {db->Put({}, "child", "v"), db->Delete({}, "k"), db->Flush(), db->CompactRange({}, nullptr, nullptr),
                    db->WaitForCompaction(), db->CreateColumnFamily({}, "family", &family),
                    db->SetOptions(db->DefaultColumnFamily(), {}), db->Close()}) {
                if (!status.IsIOError() || status.message().find("parent") == std::string_view::npos) return 1;
              }
              std::unique_ptr<DB> second;
              if (!Open(TinyOptions(1), &second).IsBusy()) return 2;
              db.reset();
              return Open(TinyOptions(1), &second).IsBusy() ? 0 : 3;
            }),
            0);
  std::unique_ptr<DB> second;
  EXPECT_CODE(Open(TinyOptions(1), &second), kBusy);
  ASSERT_OK(db->Put({}, "parent", "v"));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db->Close());
  db.reset();
  EXPECT_TRUE(ChecksAsSound(path_));
  db = OpenOrFail(TinyOptions(1), path_);
  EXPECT_TRUE(HoldsExactly(db.get(), {{"k", "v"}, {"parent", "v"}}));
}

}  // namespace
}  // namespace braiddb::test
