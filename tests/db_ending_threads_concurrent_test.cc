// Writes of threads that are ending, and of a process that is: buffers that are written by their destructors.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/write_batch.h"
#include "tests/support/db_fixture.h"
#include "tests/support/leave_child.h"
#include "util/thread_index.h"

namespace braiddb::test {
namespace {

// Everything that writes, then reads. The value is too large for an open segment.
void WriteAll(DB* db, const std::string& prefix) {
  EXPECT_OK(db->Put({}, prefix + "put", "value"));
  EXPECT_OK(db->Put({}, prefix + "large", std::string(1 << 20, 'v')));
  EXPECT_OK(db->Put({}, prefix + "deleted", "value"));
  EXPECT_OK(db->Delete({}, prefix + "deleted"));
  EXPECT_OK(db->Put({}, prefix + "range", "value"));
  WriteBatch batch;
  batch.Put(prefix + "batch", "value");
  batch.DeleteRange(prefix + "range", prefix + "rangf");
  EXPECT_OK(db->Write({}, batch));
  EXPECT_EQ(GetOrText(db, prefix + "put"), "value");
  const auto iterator = db->NewIterator({});
  iterator->Seek(prefix);
  EXPECT_TRUE(iterator->Valid());
}

void ExpectWritten(DB* db, const std::string& prefix) {
  EXPECT_EQ(GetOrText(db, prefix + "put"), "value");
  EXPECT_EQ(GetOrText(db, prefix + "large"), std::string(1 << 20, 'v'));
  EXPECT_EQ(GetOrText(db, prefix + "batch"), "value");
  std::string value;
  for (const char* gone : {"deleted", "range"}) EXPECT_TRUE(db->Get({}, prefix + gone, &value).IsNotFound()) << gone;
}

// Writes when it is destroyed.
struct Buffer {
  ~Buffer() {
    if (db != nullptr) WriteAll(db, prefix);
  }
  DB* db = nullptr;
  std::string prefix;
};

class DbEndingThreadsTest : public DbOpenTest {};

// The buffer is made before the thread's first write, so it is destroyed behind what the library has of the thread.
TEST_F(DbEndingThreadsTest, ThreadLocalBuffersAreWritten) {
  auto db = OpenOrFail(TinyOptions(2), path_);
  ASSERT_NE(db, nullptr);
  for (const bool writes_before : {false, true}) {
    std::thread([&] {
      static thread_local Buffer buffer;
      buffer.db = db.get();
      buffer.prefix = writes_before ? "before-" : "after-";
      if (writes_before) {
        EXPECT_OK(db->Put({}, "first", "value"));
      }
    }).join();
    ExpectWritten(db.get(), writes_before ? "before-" : "after-");
  }
  ASSERT_OK(db->Close());
  db.reset();
  db = OpenOrFail(TinyOptions(2), path_);
  ASSERT_NE(db, nullptr);
  for (const char* prefix : {"before-", "after-"}) ExpectWritten(db.get(), prefix);
}

// pthread keys are destroyed behind all thread_local objects. More threads than there are indexes: they are given back.
TEST_F(DbEndingThreadsTest, BuffersOfPthreadKeysAreWritten) {
  auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(db, nullptr);
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, [](void* state) { WriteAll(static_cast<DB*>(state), "key-"); }), 0);
  std::thread([&] {
    EXPECT_OK(db->Put({}, "first", "value"));
    EXPECT_EQ(pthread_setspecific(key, db.get()), 0);
  }).join();
  ExpectWritten(db.get(), "key-");
  ASSERT_EQ(pthread_key_delete(key), 0);
  ASSERT_EQ(pthread_key_create(&key, [](void* state) { EXPECT_OK(static_cast<DB*>(state)->Put({}, "k", "v")); }), 0);
  for (uint32_t i = 0; i < kMaxThreads + 10; ++i) {
    std::thread([&] {
      EXPECT_OK(db->Put({}, "first", "value"));
      EXPECT_EQ(pthread_setspecific(key, db.get()), 0);
    }).join();
  }
  pthread_key_delete(key);
}

TEST_F(DbEndingThreadsTest, BuffersAreWrittenAtTheEndOfTheProcess) {
  EXPECT_EQ(RunInChild([&] {
              // Behind the buffer's destructor: AddressSanitizer would take the database, which stays open, for a leak.
              struct Leaves {
                ~Leaves() { LeaveChild(0); }
              };
              static Leaves leaves;
              static Buffer buffer;
              std::unique_ptr<DB> db;
              if (!Open(TinyOptions(1), &db).ok() || !db->Put({}, "first", "value").ok()) return 1;
              buffer.db = db.release();
              buffer.prefix = "static-";
              std::exit(0);
            }),
            0);
  const auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(db, nullptr);
  ExpectWritten(db.get(), "static-");
}

}  // namespace
}  // namespace braiddb::test
