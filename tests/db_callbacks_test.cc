// Listeners and loggers that use the database: whatever they call, nobody waits for ever, and a close ends. Each case runs in a
// child process with a time limit, so that a hang is a failure.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/event_listener.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kTimeLimitMs = 240'000;

// What a user's function does with a database.
using Use = std::function<void(DB* db, int number)>;

struct NamedUse {
  const char* name;
  Use use;
};

// Updates of `number` that return OK are noted.
class Acknowledged {
 public:
  void Put(DB* db, int number) {
    const std::string key = "acknowledged" + std::to_string(number);
    if (!db->Put({}, key, PatternedValue(number, 100)).ok()) return;
    const std::lock_guard lock(mutex_);
    keys_[key] = PatternedValue(number, 100);
  }
  int CountLost(DB* db) {
    int lost = 0;
    for (const auto& [key, value] : keys_) lost += GetOrText(db, key) != value;
    return lost;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> keys_;
};

Acknowledged acknowledged;  // of the child

ColumnFamilyOptions FamilyOptions() {
  ColumnFamilyOptions options;
  options.l1 = TestedL1();
  return options;
}

void CreateAndDrop(DB* db, int number) {
  std::unique_ptr<ColumnFamilyHandle> handle;
  if (!db->CreateColumnFamily(FamilyOptions(), "family" + std::to_string(number), &handle).ok()) return;
  (void)db->DropColumnFamily(handle.get());
}

void Read(DB* db, int) {
  std::string value;
  (void)db->Get({}, NumberedKey(1), &value);
  for (const char* property : {"braiddb.stats", "braiddb.levels", "braiddb.pm-bytes-reserved", "braiddb.pm-bytes-in-segments",
                               "braiddb.dram-bytes", "braiddb.num-running-flushes", "braiddb.region-nodes"}) {
    (void)db->GetProperty(property, &value);
  }
  const auto iterator = db->NewIterator({});
  iterator->SeekToFirst();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  (void)db->GetColumnFamilies(&handles);
}

const NamedUse kUses[] = {
    {"Read", Read},
    {"Flush",
     [](DB* db, int number) {
       acknowledged.Put(db, number);
       (void)db->Flush();
     }},
    {"CompactRange",
     [](DB* db, int number) {
       acknowledged.Put(db, number);
       (void)db->CompactRange({}, nullptr, nullptr);
       (void)db->WaitForCompaction();
     }},
    {"Families", CreateAndDrop},
};

// Of a child, which does not flush stdout.
void Report(const char* what, const std::string& how) { std::fprintf(stderr, "%s: %s\n", what, how.c_str()); }

// Of families, each makes lines of its own: the logger makes no more of them than this.
constexpr int kMostFamiliesOfALogger = 20;

class User : public EventListener {
 public:
  explicit User(Use use) : use_(std::move(use)) {}

  void OnMemTableSealed(DB* db, const MemTableInfo&) override { Note(db, "sealed"); }
  void OnFlushBegin(DB* db, const FlushJobInfo&) override { Note(db, "flush begins"); }
  void OnFlushCompleted(DB* db, const FlushJobInfo&) override { Note(db, "flush completed"); }
  void OnCompactionBegin(DB* db, const CompactionJobInfo&) override { Note(db, "compaction begins"); }
  void OnCompactionCompleted(DB* db, const CompactionJobInfo&) override { Note(db, "compaction completed"); }
  void OnBackgroundError(DB* db, const BackgroundErrorInfo&) override { Note(db, "error"); }
  void OnStallConditionsChanged(DB* db, const WriteStallInfo&) override { Note(db, "stall"); }
  void OnColumnFamilyHandleDeletionStarted(ColumnFamilyHandle* handle) override {
    if (used != nullptr && handle->GetName() == "users") Note(used, "deletion");
  }

  std::atomic<DB*> used{nullptr};  // for what handles tell of

  bool WasTold(const char* what) {
    const std::lock_guard lock(mutex_);
    return told_.contains(what);
  }

 private:
  void Note(DB* of, const char* what) {
    {
      const std::lock_guard lock(mutex_);
      told_.insert(what);
    }
    use_(of, number_++);
  }

  const Use use_;
  std::mutex mutex_;
  std::set<std::string> told_;
  std::atomic<int> number_{0};
};

class DbCallbacksTest : public DbOpenTest, public testing::WithParamInterface<NamedUse> {
 protected:
  DbCallbacksTest() {
    options_.memtable_size = 16 << 10;
    options_.l0_compaction_trigger = 1;
    options_.l0_slowdown_writes_trigger = 1;
  }
  // Everything that callbacks are told of, but for errors.
  static bool Work(DB* db) {
    bool ok = true;
    for (int i = 0; i < 1000; ++i) ok &= db->Put({}, NumberedKey(i), PatternedValue(i, 100)).ok();
    std::unique_ptr<ColumnFamilyHandle> handle;
    ok &= db->CreateColumnFamily(FamilyOptions(), "users", &handle).ok();
    ok &= db->Put({}, handle.get(), "k", "v").ok();
    ok &= db->CompactRange({}, nullptr, nullptr).ok();
    ok &= db->DropColumnFamily(handle.get()).ok();
    handle.reset();
    return ok && db->Put({}, "last", "v").ok();  // for the flush of the close
  }
  // What was acknowledged is there after the close.
  int Check(std::unique_ptr<DB> db) {
    const Status closed = db->Close();
    if (!closed.ok()) Report("close", closed.ToString());
    if (db->Put({}, "late", "v").ok()) return 3;
    db.reset();
    const Options options = TinyOptions(1);
    std::vector<std::string> names;
    if (!DB::ListColumnFamilies(options, path_, &names).ok()) return 4;
    std::vector<ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.push_back({name, ColumnFamilyOptions(options)});
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    if (const Status status = DB::Open(options, path_, families, &handles, &db); !status.ok()) {
      Report("open", status.ToString());
      return 5;
    }
    if (GetOrText(db.get(), "last") != "v" || acknowledged.CountLost(db.get()) != 0) return 6;
    handles.clear();
    return closed.ok() ? 0 : 7;
  }

  Options options_ = TinyOptions(1);
};

INSTANTIATE_TEST_SUITE_P(Uses, DbCallbacksTest, testing::ValuesIn(kUses), [](const auto& test) { return test.param.name; });

TEST_P(DbCallbacksTest, AListenerMayUseTheDatabase) {
  EXPECT_EQ(RunInChild(
                [&] {
                  const auto user = std::make_shared<User>(GetParam().use);
                  options_.listeners.push_back(user);
                  std::unique_ptr<DB> db;
                  if (!Open(options_, &db).ok()) return 1;
                  user->used = db.get();
                  if (!Work(db.get())) return 2;
                  // Whether merges are behind is judged when it is told.
                  for (int i = 0; i < 100'000 && !user->WasTold("stall"); ++i) {
                    if (!db->Put({}, NumberedKey(i % 1000), PatternedValue(i, 100)).ok()) return 2;
                  }
                  const int code = Check(std::move(db));
                  for (const char* what : {"sealed", "flush begins", "flush completed", "compaction begins",
                                           "compaction completed", "stall", "deletion"}) {
                    if (code == 0 && !user->WasTold(what)) return Report("not told", what), 10;
                  }
                  return code;
                },
                kTimeLimitMs),
            0);
}

TEST_P(DbCallbacksTest, AListenerMayUseTheDatabaseAfterAnError) {
  EXPECT_EQ(RunInChild(
                [&] {
                  const auto user = std::make_shared<User>(GetParam().use);
                  options_.listeners.push_back(user);
                  options_.persist_mode = PersistMode::kPage;
                  std::unique_ptr<DB> db;
                  if (!Open(options_, &db).ok()) return 1;
                  FailingCalls::Arm(0, EIO, FailingCalls::kForEver, "msync");
                  if (db->Put({}, "k", "v").ok()) return 2;
                  FailingCalls::Stop();
                  (void)db->Close();
                  return user->WasTold("error") ? 0 : 3;
                },
                kTimeLimitMs),
            0);
}

TEST_P(DbCallbacksTest, ALoggerMayUseTheDatabase) {
  EXPECT_EQ(RunInChild(
                [&] {
                  std::unique_ptr<DB> db;
                  std::atomic<DB*> shared{nullptr};
                  std::atomic<int> lines{0};
                  const bool makes_families = std::string_view(GetParam().name) == "Families";
                  options_.info_log = [&](std::string_view) {
                    const int number = lines++;
                    if (shared != nullptr && (!makes_families || number < kMostFamiliesOfALogger)) GetParam().use(shared, number);
                  };
                  if (!Open(options_, &db).ok()) return 1;
                  shared = db.get();
                  const int before = lines;
                  if (!Work(db.get())) return 2;
                  const int code = Check(std::move(db));
                  return code == 0 && lines < before + 3 ? 10 : code;
                },
                kTimeLimitMs),
            0);
}

// Nobody flushes any more, so a write that waited for flushes would wait for nothing.
class DbWritingCallbackTest : public DbOpenTest {};

TEST_F(DbWritingCallbackTest, AListenerMayWriteMuchWhileTheDatabaseCloses) {
  constexpr int kPuts = 60'000;
  class Writer : public EventListener {
   public:
    void OnFlushCompleted(DB* db, const FlushJobInfo&) override {
      if (!closes.exchange(false)) return;
      for (int i = 0; i < kPuts; ++i) written += db->Put({}, NumberedKey(i), "value").ok() ? 1 : 0;
    }
    std::atomic<bool> closes{false};
    std::atomic<int> written{0};
  };
  EXPECT_EQ(RunInChild(
                [&] {
                  const auto writer = std::make_shared<Writer>();
                  Options options = TinyOptions(1);
                  options.listeners.push_back(writer);
                  std::unique_ptr<DB> db;
                  if (!Open(options, &db).ok() || !db->Put({}, "first", "v").ok()) return 1;
                  writer->closes = true;
                  if (!db->Close().ok() || writer->written != kPuts) return 2;
                  db.reset();
                  if (!Open(TinyOptions(1), &db).ok()) return 3;
                  return ScanForward(db.get()).size() == kPuts + 1 ? 0 : 4;
                },
                kTimeLimitMs),
            0);
}

// The lines of a region that grows.
TEST_P(DbCallbacksTest, ALoggerMayUseTheDatabaseThatGrows) {
  EXPECT_EQ(RunInChild(
                [&] {
                  std::unique_ptr<DB> db;
                  std::atomic<DB*> shared{nullptr};
                  std::atomic<int> grown{0};
                  options_.info_log = [&](std::string_view line) {
                    if (shared == nullptr || line.find("grew") == std::string_view::npos) return;
                    GetParam().use(shared, grown++);
                  };
                  if (!Open(options_, &db).ok()) return 1;
                  shared = db.get();
                  const std::string large(1 << 20, 'v');
                  for (int i = 0; i < 40; ++i) {
                    if (!db->Put({}, NumberedKey(i), large).ok()) return 2;
                  }
                  if (!db->Put({}, "last", "v").ok()) return 2;
                  const int code = Check(std::move(db));
                  return code == 0 && grown == 0 ? 10 : code;
                },
                kTimeLimitMs),
            0);
}

TEST_P(DbCallbacksTest, ALoggerOfAReaderMayUseIt) {
  Fill(TinyOptions(1), 100);
  EXPECT_EQ(RunInChild(
                [&] {
                  std::unique_ptr<DB> db;
                  std::atomic<DB*> shared{nullptr};
                  std::atomic<int> used{0};
                  options_.info_log = [&](std::string_view) {
                    if (shared != nullptr) GetParam().use(shared, used++);
                  };
                  if (!DB::OpenForReadOnly(options_, path_, &db).ok()) return 1;
                  shared = db.get();
                  if (!db->Close().ok()) return 2;
                  return used == 0 ? 3 : 0;
                },
                kTimeLimitMs),
            0);
}

}  // namespace
}  // namespace braiddb::test
