// db/error_policy.h, walked through: each kind of work × what fails there. What follows is what the table says, nothing that was
// acknowledged is lost, and a database that takes no more writes takes them again after an open.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"
#include "db/error_policy.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// Allocations of persistent memory: what a region has, and what it grows by.
constexpr const char* kAllocations = "pmemobj_xalloc posix_fallocate fallocate";
constexpr const char* kSyncs = "msync";
constexpr int kMostRounds = 200;

class DbErrorPolicyTest;

struct Provocation {
  const char* name;
  Work work;
  Cause cause;
  Outcome outcome;
  const char* calls;  // that fail, each time
  int error;
  const char* point;  // the sync point from which on they do; null: from the beginning of `run` on
  // REQUIRES: `point` is passed, or the calls are made, in one of its rounds. Returns the first error.
  std::function<Status(DbErrorPolicyTest*)> run;
  L1Kind l1 = L1Kind::kBraidedSkipList;
  bool copies_at_flush = false;
};

void PrintTo(const Provocation& provocation, std::ostream* out) { *out << provocation.name; }

class DbErrorPolicyTest : public DbOpenTest, public testing::WithParamInterface<Provocation> {
 public:
  DB* db() { return db_.get(); }
  Status Put(const std::string& key, const std::string& value, bool sync = true) {
    WriteOptions options;
    options.sync = sync;
    const Status status = db_->Put(options, key, value);
    if (status.ok()) expected_[key] = value;
    if (!status.ok() && status.IsIOError()) maybe_.insert(key);
    return status;
  }
  // New keys each time.
  Status PutMany(int count, size_t bytes, bool sync = true) {
    Status status;
    for (int i = 0; status.ok() && i < count; ++i, ++next_) status = Put(NumberedKey(next_), PatternedValue(next_, bytes), sync);
    return status;
  }
  Status DeleteMost() {
    Status status;
    for (auto it = expected_.begin(); status.ok() && it != expected_.end();) {
      const bool stays = ++deleted_ % 5 == 0;
      if (!stays) status = db_->Delete({}, it->first);
      it = stays ? std::next(it) : expected_.erase(it);
    }
    return status;
  }
  // Until the calls have failed; `step` writes more, and then does what meets the error.
  Status Rounds(const std::function<Status()>& write, const std::function<Status()>& work) {
    Status status;
    for (int round = 0; status.ok() && !has_failed() && round < kMostRounds; ++round) {
      status = write();
      if (!status.ok()) return status;
      Arm();
      status = work();
      Disarm();
    }
    return status;
  }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  void Arm() {
    const Provocation& test = GetParam();
    if (test.point == nullptr) return FailingCalls::Arm(0, test.error, FailingCalls::kForEver, test.calls);
    SyncPoints::Instance().SetCallback(test.point, [this](void*) {
      if (!armed_.exchange(true)) FailingCalls::Arm(0, GetParam().error, FailingCalls::kForEver, GetParam().calls);
    });
    SyncPoints::Instance().Enable();
  }
  void Disarm() {
    SyncPoints::Instance().Clear();
    FailingCalls::Stop();
    armed_ = false;
    failed_ = failed_ || FailingCalls::failed() > 0;
  }
  bool has_failed() const { return failed_; }
  bool EndsWriting() { return IntProperty(db_.get(), "braiddb.background-errors") != 0; }

 protected:
  Options MakeOptions() const {
    Options options = TinyOptions(1);
    options.l1 = GetParam().l1;
    options.memtable_size = 1 << 20;
    options.disable_auto_compaction = true;
    options.no_space_timeout_ms = 0;
    options.index_unified_logging = !GetParam().copies_at_flush;
    options.persist_mode = GetParam().cause == Cause::kPersist ? PersistMode::kPage : PersistMode::kEmulated;
    return options;
  }
  void TearDown() override { Disarm(); }
  // With all families that there are.
  void OpenAll() {
    db_.reset();
    std::vector<ColumnFamilyDescriptor> families;
    std::vector<std::string> names = {kDefaultColumnFamilyName};
    (void)DB::ListColumnFamilies({}, path_, &names);  // an error where there is no database yet
    for (const std::string& name : names) {
      const bool is_default = name == kDefaultColumnFamilyName;
      families.push_back({name, is_default ? ColumnFamilyOptions(MakeOptions()) : ColumnFamilyOptions()});
    }
    families_.clear();
    ASSERT_OK(DB::Open(MakeOptions(), path_, families, &families_, &db_));
  }

  void ExpectAllThere() {
    for (const auto& [key, value] : expected_) {
      if (maybe_.contains(key)) continue;
      ASSERT_EQ(GetOrText(db_.get(), key), value) << key;
    }
  }

  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> families_;
  std::map<std::string, std::string> expected_;
  std::set<std::string> maybe_;  // their last write failed
  int next_ = 0;
  int deleted_ = 0;
  bool failed_ = false;
  std::atomic<bool> armed_{false};
};

// ---- What is done

using Run = std::function<Status(DbErrorPolicyTest*)>;

Run Puts(bool sync) {
  return [sync](DbErrorPolicyTest* test) {
    return test->Rounds([] { return Status::OK(); }, [=] { return test->PutMany(2000, 4000, sync); });
  };
}

Run FlushOf(size_t bytes, int count) {
  return [=](DbErrorPolicyTest* test) {
    return test->Rounds([=] { return test->PutMany(count, bytes, false); }, [=] { return test->db()->Flush(); });
  };
}

Run CompactionOf(int count, size_t bytes) {
  return [=](DbErrorPolicyTest* test) {
    return test->Rounds([=] { return test->PutMany(count, bytes, false); }, [=] { return test->Compact(); });
  };
}

// Of segments that are sparse.
Run Relocation() {
  return [](DbErrorPolicyTest* test) {
    return test->Rounds(
        [=] {
          Status status = test->PutMany(4000, 400, false);
          if (status.ok()) status = test->Compact();
          return status.ok() ? test->DeleteMost() : status;
        },
        [=] { return test->Compact(); });
  };
}

// A thread that has ended leaves its open segment.
Run SealOfAnEndedThread() {
  return [](DbErrorPolicyTest* test) {
    return test->Rounds(
        [=] {
          Status status;
          std::thread([&] { status = test->PutMany(10, 100, false); }).join();
          return status;
        },
        [=] { return test->Compact(); });
  };
}

Run CreationOfAFamily() {
  return [](DbErrorPolicyTest* test) {
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    return test->Rounds([] { return Status::OK(); },
                        [&] {
                          handles.emplace_back();
                          return test->db()->CreateColumnFamily({}, "family" + std::to_string(handles.size()), &handles.back());
                        });
  };
}

Run DropOfAFamily(bool purges) {
  return [purges](DbErrorPolicyTest* test) {
    std::unique_ptr<ColumnFamilyHandle> handle;
    Status status = test->db()->CreateColumnFamily({}, "family", &handle);
    if (status.ok()) status = test->db()->Put({}, handle.get(), "key", "value");
    if (status.ok()) status = test->db()->Flush();
    if (!status.ok()) return status;
    test->Arm();
    status = test->db()->DropColumnFamily(handle.get());
    handle.reset();
    if (purges) {
      (void)WaitUntil([&] {
        (void)test->db()->WaitForCompaction();
        return test->EndsWriting();
      });
    }
    if (purges) status = test->Put("after", "the purge");
    test->Disarm();
    return status;
  };
}

std::vector<Provocation> Provocations() {
  constexpr auto kReport = Outcome::kReport;
  constexpr auto kLater = Outcome::kLater;
  constexpr auto kEnds = Outcome::kEndsWriting;
  constexpr L1Kind kList = L1Kind::kBraidedSkipList;
  const char* const merge = "DBImpl::MergeTables:Announced";
  const char* const sweep = "DBImpl::SweepFamily";
  std::vector<Provocation> all = {
      {"ReservePersist", Work::kReserveLog, Cause::kPersist, kEnds, kSyncs, EIO, nullptr, Puts(false)},
      {"ReserveNoSpace", Work::kReserveLog, Cause::kNoSpace, kReport, kAllocations, ENOSPC, nullptr, Puts(true)},
      {"ReserveTooManyFiles", Work::kReserveLog, Cause::kRefused, kReport, kAllocations, EMFILE, nullptr, Puts(true)},
      {"ReserveGoneDirectory", Work::kReserveLog, Cause::kRefused, kReport, kAllocations, ENOENT, nullptr, Puts(true)},
      {"AppendPersist", Work::kAppend, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::AppendAndPublish:Reserved", Puts(true)},
      {"SealPersist", Work::kSeal, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::TakeOpenSegment:Disowned",
       SealOfAnEndedThread()},
      {"ReleasePersist", Work::kRelease, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::Release", Relocation()},
      {"FlushCopiesPersist", Work::kFlushCopies, Cause::kPersist, kEnds, kSyncs, EIO, nullptr, FlushOf(100, 50), kList, true},
      {"FlushCopiesNoSpace", Work::kFlushCopies, Cause::kNoSpace, kEnds, kAllocations, ENOSPC, nullptr, FlushOf(900, 900), kList,
       true},
      {"CheckpointPersist", Work::kCheckpoint, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::CheckpointTables:Chosen",
       FlushOf(100, 5)},
      {"CheckpointNoSpace", Work::kCheckpoint, Cause::kNoSpace, kLater, kAllocations, ENOSPC, "DBImpl::CheckpointTables:Chosen",
       FlushOf(10, 1)},
      {"CheckpointRefused", Work::kCheckpoint, Cause::kRefused, kLater, kAllocations, EMFILE, "DBImpl::CheckpointTables:Chosen",
       FlushOf(10, 1)},
      {"CopiesPersist", Work::kMakeCopies, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::RelocateSparse:Copied", Relocation()},
      {"CopiesNoSpace", Work::kMakeCopies, Cause::kNoSpace, kLater, kAllocations, ENOSPC, nullptr, Relocation()},
      {"CopiesRefused", Work::kMakeCopies, Cause::kRefused, kLater, kAllocations, ENFILE, nullptr, Relocation()},
      {"CreateFamilyPersist", Work::kCreateFamily, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::MakeFamily:Made",
       CreationOfAFamily()},
      {"CreateFamilyNoSpace", Work::kCreateFamily, Cause::kNoSpace, kReport, kAllocations, ENOSPC, nullptr, CreationOfAFamily()},
      {"CreateFamilyRefused", Work::kCreateFamily, Cause::kRefused, kReport, kAllocations, EMFILE, nullptr, CreationOfAFamily()},
      {"DropFamilyPersist", Work::kDropFamily, Cause::kPersist, kEnds, kSyncs, EIO, nullptr, DropOfAFamily(false)},
      {"PurgeFamilyPersist", Work::kPurgeFamily, Cause::kPersist, kEnds, kSyncs, EIO, "DBImpl::ForgetPurged",
       DropOfAFamily(true)},
      {"OptionsFileRefused", Work::kOptionsFile, Cause::kRefused, kLater, "rename", EACCES, nullptr, CreationOfAFamily()},
  };
  for (const auto& [kind, merges, sweeps, refused] :
       {std::tuple(kList, "ListMergePersist", "ListSweepPersist", ""),
        std::tuple(L1Kind::kNvTree, "TreeMergePersist", "TreeSweepPersist", "Tree"),
        std::tuple(L1Kind::kSortedRuns, "RunsMergePersist", "RunsSweepPersist", "Runs"),
        std::tuple(L1Kind::kHybrid, "HybridMergePersist", "HybridSweepPersist", "Hybrid"),
        std::tuple(L1Kind::kLbTree, "LbTreeMergePersist", "LbTreeSweepPersist", "LbTree")}) {
    all.push_back({merges, Work::kMerge, Cause::kPersist, kEnds, kSyncs, EIO, merge, CompactionOf(400, 100), kind});
    all.push_back({sweeps, Work::kMerge, Cause::kPersist, kEnds, kSyncs, EIO, sweep, CompactionOf(400, 100), kind});
    if (kind == kList) continue;  // its merges allocate nothing
    const bool is_tree = kind == L1Kind::kNvTree, is_hybrid = kind == L1Kind::kHybrid;
    const bool is_lb_tree = kind == L1Kind::kLbTree;
    all.push_back({is_hybrid    ? "HybridMergeNoSpace"
                   : is_tree    ? "TreeMergeNoSpace"
                   : is_lb_tree ? "LbTreeMergeNoSpace"
                                : "RunsMergeNoSpace",
                   Work::kMerge, Cause::kNoSpace, kLater, kAllocations, ENOSPC, merge, CompactionOf(6000, 20), kind});
    all.push_back({is_hybrid    ? "HybridMergeRefused"
                   : is_tree    ? "TreeMergeRefused"
                   : is_lb_tree ? "LbTreeMergeRefused"
                                : "RunsMergeRefused",
                   Work::kMerge, Cause::kRefused, kLater, kAllocations, EMFILE, merge, CompactionOf(6000, 20), kind});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, DbErrorPolicyTest, testing::ValuesIn(Provocations()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(DbErrorPolicyTest, WhatFollowsIsWhatTheTableSays) {
  const Provocation& test = GetParam();
  EXPECT_EQ(OutcomeOf(test.work, test.cause), test.outcome);
  ASSERT_NO_FATAL_FAILURE(OpenAll());
  ASSERT_OK(PutMany(300, 100));
  ASSERT_OK(Compact());
  const Status status = test.run(this);
  ASSERT_TRUE(has_failed()) << "the error did not come: " << status.ToString();
  EXPECT_TRUE(test.outcome != Outcome::kReport || !status.ok());
  // A background thread that has met the error may come to say so only now.
  if (test.outcome == Outcome::kEndsWriting) (void)WaitUntil([this] { return EndsWriting(); });
  EXPECT_EQ(EndsWriting(), test.outcome == Outcome::kEndsWriting) << status.ToString();
  ExpectAllThere();
  if (test.outcome == Outcome::kEndsWriting) {
    EXPECT_CODE(Put("more", "value"), kReadOnly);
    EXPECT_FALSE(db_->Close().ok()) << "the close must not claim that all is well";
    families_.clear();
    db_.reset();
    EXPECT_TRUE(ChecksAsSound(path_));
    ASSERT_NO_FATAL_FAILURE(OpenAll());
  }
  // The cause is gone.
  ExpectAllThere();
  ASSERT_OK(PutMany(300, 100));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(Compact());
  EXPECT_OK(db_->WaitForCompaction());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  ExpectAllThere();
  ASSERT_OK(db_->Close());
  families_.clear();
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(path_));
  ASSERT_NO_FATAL_FAILURE(OpenAll());
  ExpectAllThere();
}

// The same, closed before the cause is gone, and with a reader of before all the time.
TEST_P(DbErrorPolicyTest, AnOpenGoesOnWithWhatIsLeft) {
  if (GetParam().outcome != Outcome::kLater) GTEST_SKIP() << "nothing is left";
  ASSERT_NO_FATAL_FAILURE(OpenAll());
  ASSERT_OK(PutMany(300, 100));
  ASSERT_OK(Compact());
  const std::map<std::string, std::string> before = expected_;
  std::unique_ptr<Iterator> reader = db_->NewIterator({});
  (void)GetParam().run(this);
  ASSERT_TRUE(has_failed());
  EXPECT_FALSE(EndsWriting());
  auto at = before.begin();
  for (reader->SeekToFirst(); reader->Valid() && at != before.end(); reader->Next(), ++at) {
    EXPECT_EQ(reader->key(), at->first);
    EXPECT_EQ(reader->value(), at->second);
  }
  EXPECT_TRUE(!reader->Valid() && at == before.end());
  reader.reset();
  ASSERT_OK(db_->Close());
  ASSERT_NO_FATAL_FAILURE(OpenAll());
  ExpectAllThere();
  ASSERT_OK(PutMany(300, 100));
  ASSERT_OK(Compact());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  ExpectAllThere();
  families_.clear();
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(path_));
}

// ---- Passing errors at any time

class PassingErrorsTest : public DbOpenTest, public testing::WithParamInterface<L1Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PassingErrorsTest,
                         testing::Values(L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kSortedRuns, L1Kind::kHybrid,
                                         L1Kind::kLbTree),
                         [](const auto& test) {
                           return test.param == L1Kind::kNvTree       ? "NvTree"
                                  : test.param == L1Kind::kSortedRuns ? "SortedRuns"
                                  : test.param == L1Kind::kHybrid     ? "Hybrid"
                                  : test.param == L1Kind::kLbTree     ? "LbTree"
                                                                      : "BraidedSkipList";
                         });

// Merges, sweeps and relocations in the background, snapshots, and some allocations that fail: no write is refused for longer
// than that, no answer is wrong.
TEST_P(PassingErrorsTest, NeverEndWriting) {
  Options options = TinyOptions(2);
  options.l1 = GetParam();
  options.no_space_timeout_ms = 0;
  auto db = OpenOrFail(options, path_);
  ASSERT_NE(db, nullptr);
  Random random(7);
  std::map<std::string, std::string> expected;
  std::map<std::string, std::string> frozen;
  const Snapshot* snapshot = nullptr;
  int64_t failed = 0;
  // How often a round allocates depends on the background, so the rounds go on until enough calls have failed.
  for (int round = 0; round < 300 / kSlowdown || (failed <= 10 / kSlowdown && round < 3000); ++round) {
    SCOPED_TRACE(round);
    const int kErrors[] = {EMFILE, ENOSPC, ENFILE, EINTR};
    FailingCalls::Arm(random.Uniform(4), kErrors[random.Uniform(4)], 1 + random.Uniform(8), kAllocations);
    for (int i = 0; i < 300; ++i) {
      const std::string key = NumberedKey(random.Uniform(4000));
      const bool deletes = random.OneIn(4);
      const std::string value = PatternedValue(i + 1000 * round, 10 + random.Uniform(300));
      const Status status = deletes ? db->Delete({}, key) : db->Put({}, key, value);
      ASSERT_TRUE(status.ok() || status.IsNoSpace() || status.IsIOError()) << status.ToString();
      if (!status.ok()) continue;
      if (deletes) {
        expected.erase(key);
      } else {
        expected[key] = value;
      }
    }
    // The background may free as much as the writes need. Then the data grow.
    if (round >= 300 / kSlowdown) {
      const std::string value = PatternedValue(round, 200'000);
      if (db->Put({}, "large" + std::to_string(round), value).ok()) expected["large" + std::to_string(round)] = value;
    }
    if (random.OneIn(3)) (void)db->CompactRange({}, nullptr, nullptr);
    if (random.OneIn(3)) (void)db->Flush();
    failed += FailingCalls::failed();
    FailingCalls::Stop();
    ASSERT_EQ(IntProperty(db.get(), "braiddb.background-errors"), 0u);
    ASSERT_OK(db->Put({}, "after", std::to_string(round)));
    expected["after"] = std::to_string(round);
    if (round % 10 == 5) {
      if (snapshot != nullptr) db->ReleaseSnapshot(snapshot);
      snapshot = db->GetSnapshot();
      frozen = expected;
    }
    if (round % 10 != 9) continue;
    ASSERT_TRUE(HoldsExactly(db.get(), expected));
    ReadOptions at_snapshot;
    at_snapshot.snapshot = snapshot;
    ASSERT_TRUE(HoldsExactly(db.get(), frozen, at_snapshot));
    if (round % 50 == 49) {
      db->ReleaseSnapshot(snapshot);
      snapshot = nullptr;
      db.reset();
      ASSERT_TRUE(ChecksAsSound(path_));
      db = OpenOrFail(options, path_);
      ASSERT_NE(db, nullptr);
      ASSERT_TRUE(HoldsExactly(db.get(), expected));
    }
  }
  EXPECT_GT(failed, 10 / kSlowdown);
  if (snapshot != nullptr) db->ReleaseSnapshot(snapshot);
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db.get(), expected));
  ASSERT_OK(db->Close());
  db.reset();
  EXPECT_TRUE(ChecksAsSound(path_));
}

// ---- The table

// Every cell is provoked above, or elsewhere, or nobody knows how it could come, and then it ends writing or leaves the matter to
// the caller.
TEST(ErrorPolicyTableTest, EveryCellIsKnown) {
  std::set<std::pair<Work, Cause>> provoked = {
      {Work::kMerge, Cause::kCorruption},    // check_reads_test
      {Work::kInstall, Cause::kNoMemory},    // db_memory_test
      {Work::kMerge, Cause::kNoMemory},      // the same
      {Work::kReserveLog, Cause::kCaller},   // db_refused_write_test
      {Work::kMerge, Cause::kStopped},       // every close during a merge
      {Work::kMakeCopies, Cause::kStopped},  // every close during a relocation
  };
  for (const Provocation& provocation : Provocations()) provoked.emplace(provocation.work, provocation.cause);
  for (int work = 0; work < static_cast<int>(Work::kCount); ++work) {
    for (int cause = 0; cause < static_cast<int>(Cause::kCount); ++cause) {
      const auto at = std::pair(static_cast<Work>(work), static_cast<Cause>(cause));
      const Outcome outcome = OutcomeOf(at.first, at.second);
      SCOPED_TRACE("work " + std::to_string(work) + ", cause " + std::to_string(cause));
      EXPECT_NE(outcome, Outcome::kNone);
      if (at.second == Cause::kPersist) {
        EXPECT_EQ(outcome, at.first == Work::kOptionsFile ? Outcome::kLater : Outcome::kEndsWriting);
      } else if (!provoked.contains(at) && outcome == Outcome::kLater) {
        EXPECT_TRUE(at.first == Work::kCheckpoint || at.first == Work::kMakeCopies || at.first == Work::kOptionsFile);
      }
    }
  }
  for (int work = 0; work < static_cast<int>(Work::kCount); ++work) {
    bool is_provoked = false;
    for (const auto& cell : provoked) is_provoked = is_provoked || cell.first == static_cast<Work>(work);
    EXPECT_TRUE(is_provoked) << "work " << work;
  }
}

TEST(ErrorPolicyTableTest, CausesByStatus) {
  EXPECT_EQ(CauseOf(Status::IOError("sync"), true), Cause::kPersist);
  EXPECT_EQ(CauseOf(Status::IOError("open"), false), Cause::kRefused);
  EXPECT_EQ(CauseOf(Status::NotFound("directory"), true), Cause::kRefused);
  EXPECT_EQ(CauseOf(Status::Busy("threads"), true), Cause::kRefused);
  EXPECT_EQ(CauseOf(Status::NoSpace(""), true), Cause::kNoSpace);
  EXPECT_EQ(CauseOf(Status::Corruption(""), true), Cause::kCorruption);
  EXPECT_EQ(CauseOf(Status::MemoryLimit(""), true), Cause::kNoMemory);
  EXPECT_EQ(CauseOf(Status::Aborted(""), true), Cause::kStopped);
  EXPECT_EQ(CauseOf(Status::ReadOnly(""), true), Cause::kCaller);
  EXPECT_EQ(CauseOf(Status::InvalidArgument(""), true), Cause::kCaller);
}

// ---- Calls of their own, which never end writing

TEST(ErrorsOfOtherCallsTest, ARefusedCallIsTheCallers) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs files of its own to look at types";
#endif
  const TestDirectory directory;
  Options options = TinyOptions(1);
  auto db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "key", "value"));
  const std::string file = directory.File("sorted");
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(file, BytewiseComparator(), &writer));
  ASSERT_OK(writer->Put("ingested", "value"));
  ASSERT_OK(writer->Finish());
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open(directory.File("backups"), &engine));
  int copies = 0;
  const std::pair<const char*, std::function<Status()>> kCalls[] = {
      {"ingestion", [&] { return IngestExternalFiles(db.get(), {file}); }},
      {"backup", [&] { return engine->CreateBackup(db.get()); }},
      {"checkpoint", [&] { return CreateCheckpoint(db.get(), directory.File("copy" + std::to_string(++copies))); }},
  };
  for (const auto& [name, call] : kCalls) {
    SCOPED_TRACE(name);
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    const rlimit none{3, files.rlim_max};  // what is open stays open
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const Status status = call();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_EQ(IntProperty(db.get(), "braiddb.background-errors"), 0u);
    EXPECT_OK(db->Put({}, name, "later"));
    EXPECT_OK(call());
  }
  EXPECT_EQ(GetOrText(db.get(), "ingested"), "value");
}

// What LOG cannot be told is lost, and nothing else.
TEST(ErrorsOfOtherCallsTest, AnInfoLogThatCannotBeWrittenChangesNothing) {
  const TestDirectory directory;
  Options options = TinyOptions(1);
  options.info_log = nullptr;
  auto db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  FailingCalls::Arm(0, ENOSPC, FailingCalls::kForEver, "writev");
  for (int i = 0; i < 500; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 100)));
  EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
  FailingCalls::Stop();
  EXPECT_GT(FailingCalls::failed(), 0);
  EXPECT_EQ(IntProperty(db.get(), "braiddb.background-errors"), 0u);
  EXPECT_OK(db->Put({}, "key", "value"));
}

}  // namespace
}  // namespace braiddb::test
