// Checkpoints, backups, sorted files: what is copied is what was there, whole or not at all.
#include "braiddb/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/event_listener.h"
#include "braiddb/options_file.h"
#include "db/temporary_place.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_temp_dir.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class BackupTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = TinyOptions(2);
    options_.create_if_missing = true;
    ASSERT_OK(DB::Open(options_, directory_.Sub("db"), &db_));
    for (int i = 0; i < 500; ++i) {
      const std::string key = NumberedKey(i * 7 % 500);
      expected_[key] = PatternedValue(i, i % 50 == 0 ? 100'000 : 100);
      ASSERT_OK(db_->Put({}, key, expected_[key]));
    }
    for (int i = 0; i < 500; i += 10) {
      ASSERT_OK(db_->Delete({}, NumberedKey(i)));
      expected_.erase(NumberedKey(i));
    }
    expected_[""] = "";
    ASSERT_OK(db_->Put({}, "", ""));
  }
  std::unique_ptr<DB> OpenAt(const std::string& path, Options options) {
    options.create_if_missing = false;
    options.error_if_exists = false;
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options, path, &db));
    return db;
  }
  std::unique_ptr<DB> OpenCopy() { return OpenAt(directory_.Sub("copy"), options_); }
  std::unique_ptr<BackupEngine> OpenEngine() {
    std::unique_ptr<BackupEngine> engine;
    EXPECT_OK(BackupEngine::Open(directory_.Sub("backups"), &engine));
    return engine;
  }
  std::string Sub(const std::string& name) { return directory_.Sub(name); }
  // Changes one byte of a file.
  static void Damage(const std::string& path, uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  PmemTempDir directory_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> expected_;
};

// ---- Checkpoint

TEST_F(BackupTest, CheckpointHoldsWhatWasThereAndNothingLater) {
  uint64_t sequence = 0;
  const uint64_t latest = db_->GetLatestSequenceNumber();
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy"), &sequence));
  EXPECT_EQ(sequence, latest);
  ASSERT_OK(db_->Put({}, "later", "v"));
  const auto copy = OpenCopy();
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(HoldsExactly(copy.get(), expected_));
  EXPECT_EQ(copy->GetOptions().regions, 2u);
  ASSERT_OK(copy->Put({}, "only there", "v"));
  std::string value;
  EXPECT_TRUE(db_->Get({}, "only there", &value).IsNotFound());
  EXPECT_FALSE(std::filesystem::exists(Sub("copy.tmp")));
}

TEST_F(BackupTest, CheckpointOfAnNvTreeWithAnotherOrder) {
  Options options = TinyOptions(1);
  options.create_if_missing = true;
  options.l1 = L1Kind::kNvTree;
  options.comparator = ReverseBytewiseComparator();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, Sub("reverse"), &db));
  ASSERT_OK(db->Put({}, "a", "1"));
  ASSERT_OK(db->Put({}, "b", "2"));
  ASSERT_OK(CreateCheckpoint(db.get(), Sub("copy") + "/"));
  const auto copy = OpenAt(Sub("copy"), options);
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(HoldsExactly(copy.get(), {{"b", "2"}, {"a", "1"}}));
}

TEST_F(BackupTest, CheckpointOfNothingAndOverNothingThatIsThere) {
  Options options = TinyOptions(1);
  options.create_if_missing = true;
  std::unique_ptr<DB> empty;
  ASSERT_OK(DB::Open(options, Sub("empty"), &empty));
  ASSERT_OK(CreateCheckpoint(empty.get(), Sub("copy")));
  EXPECT_TRUE(CreateCheckpoint(db_.get(), Sub("copy")).IsInvalidArgument());
  EXPECT_TRUE(CreateCheckpoint(db_.get(), Sub("db")).IsInvalidArgument());
  EXPECT_TRUE(CreateCheckpoint(db_.get(), "").IsInvalidArgument());
  const auto copy = OpenAt(Sub("copy"), options);
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(HoldsExactly(copy.get(), std::map<std::string, std::string>()));
}

TEST_F(BackupTest, WhatACrashLeftOfACheckpointIsNoObstacle) {
  TemporaryPlace left(Sub("copy"), [](const std::string& path) { return DB::Destroy({}, path); });
  ASSERT_OK(left.Make());
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options_, Sub("copy.tmp"), &db));
  ASSERT_OK(db->Put({}, "left", "v"));
  db.reset();
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
  EXPECT_FALSE(std::filesystem::exists(Sub("copy") + "/COPYING"));
}

TEST_F(BackupTest, ADatabaseWithTheTemporaryNameIsNotRemoved) {
  std::unique_ptr<DB> users;
  ASSERT_OK(DB::Open(options_, Sub("copy.tmp"), &users));
  ASSERT_OK(users->Put({}, "of the user", "v"));
  users.reset();
  EXPECT_CODE(CreateCheckpoint(db_.get(), Sub("copy")), kInvalidArgument);
  EXPECT_TRUE(HoldsExactly(OpenAt(Sub("copy.tmp"), options_).get(), {{"of the user", "v"}}));
}

// The link stays, and what it leads to is replaced.
TEST_F(BackupTest, ARestoreFollowsALink) {
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get()));
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("target")));
  std::filesystem::create_directory_symlink(Sub("target"), Sub("copy"));
  ASSERT_OK(db_->Put({}, "later", "v"));
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("copy") + "/"));
  EXPECT_TRUE(std::filesystem::is_symlink(Sub("copy")));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
  EXPECT_TRUE(HoldsExactly(OpenAt(Sub("target"), options_).get(), expected_));
  std::filesystem::create_directory_symlink(Sub("nowhere"), Sub("dangling"));
  EXPECT_CODE(engine->RestoreBackup(1, options_, Sub("dangling")), kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_symlink(Sub("dangling")));
}

TEST_F(BackupTest, CheckpointsAreConsistentWhileWritersGoOn) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop.load(); ++i) {
      WriteBatch batch;
      for (int k = 0; k < 10; ++k) batch.Put("w" + NumberedKey(k * 1000), std::to_string(i));
      ASSERT_OK(db_->Write({}, batch));
    }
  });
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove_all(Sub("copy"));
    EXPECT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
    const auto copy = OpenCopy();
    ASSERT_NE(copy, nullptr);
    std::string first, value;
    const Status status = copy->Get({}, "w" + NumberedKey(0), &first);
    for (int k = 0; k < 10 && status.ok(); ++k) {
      EXPECT_OK(copy->Get({}, "w" + NumberedKey(k * 1000), &value));
      EXPECT_EQ(value, first);
    }
  }
  stop = true;
  writer.join();
}

// ---- Backups

TEST_F(BackupTest, RestoredIsWhatWasBackedUp) {
  const auto engine = OpenEngine();
  uint32_t first = 0, second = 0;
  const auto before = expected_;
  ASSERT_OK(engine->CreateBackup(db_.get(), "first\n\none", &first));
  ASSERT_OK(db_->Put({}, "new", "v"));
  expected_["new"] = "v";
  ASSERT_OK(engine->CreateBackup(db_.get(), {}, &second));
  EXPECT_LT(first, second);
  ASSERT_OK(engine->RestoreBackup(first, options_, Sub("copy")));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), before));
  // In place of what is there, be it larger.
  ASSERT_OK(engine->RestoreBackup(second, options_, Sub("copy")));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
  const auto infos = engine->GetBackupInfo();
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].id, first);
  EXPECT_EQ(infos[0].metadata, "first\n\none");
  EXPECT_EQ(infos[0].keys, before.size());
  EXPECT_EQ(infos[0].size, std::filesystem::file_size(Sub("backups") + "/1.backup"));
  EXPECT_GT(infos[0].timestamp, 1'700'000'000);
  EXPECT_GT(infos[1].sequence, infos[0].sequence);
}

TEST_F(BackupTest, BackupsAreThereAfterAReopenOfTheEngine) {
  uint32_t id = 0;
  ASSERT_OK(OpenEngine()->CreateBackup(db_.get(), "kept", &id));
  std::ofstream(Sub("backups") + "/7.backup.tmp") << "cut short";
  std::ofstream(Sub("backups") + "/notes.txt") << "not ours";
  {
    const auto engine = OpenEngine();
    std::unique_ptr<BackupEngine> another;
    EXPECT_TRUE(BackupEngine::Open(Sub("backups"), &another).IsBusy());
    ASSERT_EQ(engine->GetBackupInfo().size(), 1u);
    EXPECT_EQ(engine->GetBackupInfo()[0].metadata, "kept");
    EXPECT_FALSE(std::filesystem::exists(Sub("backups") + "/7.backup.tmp"));
    EXPECT_TRUE(std::filesystem::exists(Sub("backups") + "/notes.txt"));
    ASSERT_OK(engine->VerifyBackup(id));
    ASSERT_OK(engine->RestoreBackup(id, options_, Sub("copy")));
  }
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
}

TEST_F(BackupTest, OldOnesCanBePurged) {
  const auto engine = OpenEngine();
  for (int i = 0; i < 4; ++i) ASSERT_OK(engine->CreateBackup(db_.get()));
  ASSERT_OK(engine->DeleteBackup(2));
  EXPECT_TRUE(engine->DeleteBackup(2).IsNotFound());
  ASSERT_OK(engine->PurgeOldBackups(1));
  ASSERT_EQ(engine->GetBackupInfo().size(), 1u);
  EXPECT_EQ(engine->GetBackupInfo()[0].id, 4u);
  EXPECT_FALSE(std::filesystem::exists(Sub("backups") + "/1.backup"));
  EXPECT_TRUE(engine->VerifyBackup(1).IsNotFound());
  EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("copy")).IsNotFound());
  uint32_t next = 0;
  ASSERT_OK(engine->CreateBackup(db_.get(), {}, &next));
  EXPECT_EQ(next, 5u);
}

TEST_F(BackupTest, DamageIsFoundWhereverItIsAndLeavesWhatWasThere) {
  ASSERT_OK(OpenEngine()->CreateBackup(db_.get()));
  const std::string path = Sub("backups") + "/1.backup";
  const std::string original = Sub("original");
  std::filesystem::copy_file(path, original);
  const uint64_t size = std::filesystem::file_size(path);
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
  for (uint64_t at = 0; at < size; at += at < 200 || at > size - 200 ? 7 : size / 17) {
    SCOPED_TRACE(at);
    Damage(path, at);
    const auto engine = OpenEngine();
    if (!engine->GetBackupInfo().empty()) {
      EXPECT_TRUE(engine->VerifyBackup(1).IsCorruption());
      EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("copy")).IsCorruption());
    }
    std::filesystem::copy_file(original, path, std::filesystem::copy_options::overwrite_existing);
  }
  for (const uint64_t length : {uint64_t{0}, uint64_t{50}, size / 2, size - 1}) {
    std::filesystem::resize_file(path, length);
    EXPECT_TRUE(OpenEngine()->GetBackupInfo().empty());
    std::filesystem::copy_file(original, path, std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
}

TEST_F(BackupTest, ARestoreKeepsFilesOfOthersAndTakesNothingAwayThatItCannotReplace) {
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get()));
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
  std::ofstream(Sub("copy") + "/notes.txt") << "not ours";
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("copy") + "/"));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
  EXPECT_TRUE(std::filesystem::exists(Sub("copy") + "/notes.txt"));
  EXPECT_FALSE(std::filesystem::exists(Sub("copy.old")));
  std::filesystem::create_directories(Sub("copy") + "/a/b");
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("copy")));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
  EXPECT_TRUE(std::filesystem::exists(Sub("copy") + "/notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(Sub("copy") + "/a/b"));
  EXPECT_FALSE(std::filesystem::exists(Sub("copy.old")));
  EXPECT_FALSE(std::filesystem::exists(Sub("copy.tmp")));
  // A file with that name is somebody's.
  std::ofstream(Sub("copy.old")) << "not ours";
  EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("copy")).IsInvalidArgument());
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
}

TEST_F(BackupTest, ARestoreDoesNotMoveItsOwnBackups) {
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
  ASSERT_OK(BackupEngine::Open(Sub("copy") + "/backups", &engine));
  ASSERT_OK(engine->CreateBackup(db_.get()));
  EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("copy")).IsInvalidArgument());
  EXPECT_OK(engine->VerifyBackup(1));
  EXPECT_TRUE(HoldsExactly(OpenCopy().get(), expected_));
}

// Listeners belong to the database that is copied, and to opens of the user.
TEST_F(BackupTest, ListenersHearNothingOfCopiesThatAreMade) {
  struct Counter : EventListener {
    void OnFlushCompleted(DB* db, const FlushJobInfo&) override { foreign += db->GetName() != path; }
    std::atomic<int> foreign{0};
    std::string path;
  };
  const auto counter = std::make_shared<Counter>();
  counter->path = Sub("heard");
  options_.listeners = {counter};
  std::unique_ptr<DB> heard;
  ASSERT_OK(DB::Open(options_, Sub("heard"), &heard));
  for (int i = 0; i < 2000; ++i) ASSERT_OK(heard->Put({}, NumberedKey(i), PatternedValue(i, 500)));
  ASSERT_OK(CreateCheckpoint(heard.get(), Sub("copy")));
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(heard.get()));
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("restored")));
  ASSERT_OK(heard->Close());
  EXPECT_EQ(counter->foreign, 0);
}

TEST_F(BackupTest, RestoreRefusesWhatCannotWork) {
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get()));
  EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("db")).IsBusy());
  Options other = options_;
  other.comparator = ReverseBytewiseComparator();
  EXPECT_TRUE(engine->RestoreBackup(1, other, Sub("copy")).IsInvalidArgument());
  other = options_;
  other.region_paths = {Sub("r0"), Sub("r1")};
  EXPECT_TRUE(engine->RestoreBackup(1, other, Sub("copy")).IsNotSupported());
  EXPECT_FALSE(std::filesystem::exists(Sub("copy")));
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_F(BackupTest, ADamagedBackupIsKnownAsThat) {
  auto engine = OpenEngine();
  for (int i = 0; i < 2; ++i) ASSERT_OK(engine->CreateBackup(db_.get()));
  engine.reset();
  std::filesystem::resize_file(Sub("backups") + "/1.backup", 200);
  engine = OpenEngine();
  ASSERT_EQ(engine->GetBackupInfo().size(), 1u);
  EXPECT_EQ(engine->GetDamagedBackups(), std::vector<uint32_t>{1});
  ASSERT_OK(engine->CreateBackup(db_.get()));  // 3
  engine.reset();
  std::filesystem::resize_file(Sub("backups") + "/3.backup", 200);
  engine = OpenEngine();
  uint32_t id = 0;
  ASSERT_OK(engine->CreateBackup(db_.get(), {}, &id));
  EXPECT_EQ(id, 4u) << "the damaged ones are older";
  EXPECT_TRUE(engine->VerifyBackup(1).IsCorruption());
  EXPECT_TRUE(engine->RestoreBackup(1, options_, Sub("copy")).IsCorruption());
  ASSERT_OK(engine->DeleteBackup(1));
  EXPECT_EQ(engine->GetDamagedBackups(), std::vector<uint32_t>{3});
  EXPECT_TRUE(engine->VerifyBackup(1).IsNotFound());
  EXPECT_FALSE(std::filesystem::exists(Sub("backups") + "/1.backup"));
}

TEST_F(BackupTest, CopiesHaveTheOptionsFileOfTheOriginal) {
  db_.reset();
  options_.error_if_exists = false;
  options_.lookup_cache_size = 1 << 20;
  options_.disable_auto_compaction = true;
  options_.foreign_options["max_open_files"] = "5";
  ASSERT_OK(DB::Open(options_, Sub("db"), &db_));
  LoadedOptions original, loaded;
  ASSERT_OK(LoadLatestOptions(Sub("db"), &original));
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy")));
  ASSERT_OK(LoadLatestOptions(Sub("copy"), &loaded));
  EXPECT_EQ(OptionsToText(loaded.options), OptionsToText(original.options));
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get(), "mine"));
  const BackupInfo info = engine->GetBackupInfo().front();
  EXPECT_EQ(info.options, OptionsToText(original.options));
  EXPECT_EQ(info.metadata, "mine");
  ASSERT_OK(OptionsFromText(info.options, &loaded));
  ASSERT_OK(engine->RestoreBackup(1, loaded.options, Sub("restored")));
  ASSERT_OK(LoadLatestOptions(Sub("restored"), &loaded));
  EXPECT_EQ(OptionsToText(loaded.options), OptionsToText(original.options));
}

// The regions of each copy in a directory of their own.
TEST_F(BackupTest, RegionsGoWhereTheyAreWanted) {
  int made = 0;
  CopyOptions how;
  how.place_regions = [&](const std::string&, Options* options) {
    ++made;
    options->region_paths = {Sub("regions") + std::to_string(made) + "a", Sub("regions") + std::to_string(made) + "b"};
    return Status::OK();
  };
  std::vector<std::string> destroyed;
  how.destroy = [&](const std::string& path) {
    destroyed.push_back(path);
    return DB::Destroy({}, path);
  };
  const auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get()));
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("copy"), how));
  EXPECT_FALSE(std::filesystem::exists(Sub("copy") + "/region-0"));
  EXPECT_TRUE(std::filesystem::exists(Sub("regions1b")));
  ASSERT_OK(engine->RestoreBackup(1, options_, Sub("copy"), how));
  EXPECT_FALSE(std::filesystem::exists(Sub("regions1b")));  // with the old one
  EXPECT_EQ(destroyed.back(), Sub("copy.old"));
  EXPECT_TRUE(std::filesystem::exists(Sub("regions2b")));
  Options options = options_;
  options.regions = 0;
  EXPECT_TRUE(HoldsExactly(OpenAt(Sub("copy"), options).get(), expected_));
  how.place_regions = [](const std::string&, Options*) { return Status::NoSpace("nowhere"); };
  EXPECT_CODE(CreateCheckpoint(db_.get(), Sub("checkpoint"), nullptr, how), kNoSpace);
  EXPECT_FALSE(std::filesystem::exists(Sub("checkpoint.tmp")));
  EXPECT_CODE(engine->RestoreBackup(1, options_, Sub("copy"), how), kNoSpace);
  EXPECT_TRUE(HoldsExactly(OpenAt(Sub("copy"), options).get(), expected_));
}

// ---- Sorted files

TEST_F(BackupTest, IngestedFilesAreOneBatchTheLastOneWins) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("one"), BytewiseComparator(), &writer));
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "x" + NumberedKey(i);
    ASSERT_OK(writer->Put(key, PatternedValue(i, 100)));
    expected_[key] = PatternedValue(i, 100);
  }
  ASSERT_OK(writer->Finish());
  EXPECT_EQ(writer->FileSize(), std::filesystem::file_size(Sub("one")));
  EXPECT_TRUE(writer->Put("z", "").IsInvalidArgument());
  EXPECT_TRUE(writer->Finish().IsInvalidArgument());
  ASSERT_OK(SortedFileWriter::Create(Sub("two"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->Delete(NumberedKey(1)));
  ASSERT_OK(writer->Put("x" + NumberedKey(5), "two"));
  ASSERT_OK(writer->Finish());
  expected_.erase(NumberedKey(1));
  expected_["x" + NumberedKey(5)] = "two";
  const uint64_t before = db_->GetLatestSequenceNumber();
  IngestOptions options;
  options.remove_files = true;
  ASSERT_OK(IngestExternalFiles(db_.get(), {Sub("one"), Sub("two")}, options));
  EXPECT_GE(db_->GetLatestSequenceNumber(), before + 2002);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  EXPECT_FALSE(std::filesystem::exists(Sub("one")));
}

TEST_F(BackupTest, RangesOfAFileDeleteWhatWasThereBeforeIt) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("one"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->Put(NumberedKey(150), "one"));
  ASSERT_OK(writer->Put(NumberedKey(250), "one"));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(SortedFileWriter::Create(Sub("two"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->DeleteRange(NumberedKey(200), NumberedKey(300)));
  ASSERT_OK(writer->Put(NumberedKey(220), "two"));
  ASSERT_OK(writer->DeleteRange(NumberedKey(210), NumberedKey(210)));  // of nothing
  EXPECT_TRUE(writer->DeleteRange(NumberedKey(2), NumberedKey(1)).IsInvalidArgument());
  EXPECT_TRUE(writer->DeleteRange("", std::string(kMaxKeySize + 1, 'c')).IsInvalidArgument());
  ASSERT_OK(writer->Finish());
  EXPECT_TRUE(writer->DeleteRange("a", "b").IsInvalidArgument());
  ASSERT_OK(SortedFileWriter::Create(Sub("three"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->DeleteRange(NumberedKey(290), NumberedKey(310)));  // and no update
  ASSERT_OK(writer->Finish());
  ASSERT_OK(IngestExternalFiles(db_.get(), {Sub("one"), Sub("two"), Sub("three")}));
  expected_.erase(expected_.lower_bound(NumberedKey(200)), expected_.lower_bound(NumberedKey(310)));
  expected_[NumberedKey(150)] = "one";
  expected_[NumberedKey(220)] = "two";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_F(BackupTest, FilesOfAnotherOrderAndWhoWrites) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("file"), ReverseBytewiseComparator(), &writer));
  ASSERT_OK(writer->Put("z", "1"));
  ASSERT_OK(writer->Put("y", "2"));
  ASSERT_OK(writer->Finish());
  IngestOptions options;
  uint32_t updates = 0;
  options.write = [&](const WriteBatch& batch) {
    updates = batch.Count();
    return Status::NoSpace("not now");
  };
  options.any_comparator = true;
  options.remove_files = true;
  EXPECT_CODE(IngestExternalFiles(db_.get(), {Sub("file")}, options), kNoSpace);
  EXPECT_EQ(updates, 2u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  options.write = nullptr;
  ASSERT_OK(IngestExternalFiles(db_.get(), {Sub("file")}, options));
  expected_["y"] = "2";
  expected_["z"] = "1";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  EXPECT_FALSE(std::filesystem::exists(Sub("file")));
  // A range of one order is none of another.
  ASSERT_OK(SortedFileWriter::Create(Sub("ranges"), ReverseBytewiseComparator(), &writer));
  ASSERT_OK(writer->DeleteRange("z", "y"));
  ASSERT_OK(writer->Finish());
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("ranges")}, options).IsInvalidArgument());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// Two databases may have families with the same id.
TEST_F(BackupTest, NothingIsIngestedIntoAFamilyOfAnotherDatabase) {
  std::unique_ptr<DB> other;
  ASSERT_OK(DB::Open(options_, Sub("other"), &other));
  std::unique_ptr<ColumnFamilyHandle> ours, theirs;
  ASSERT_OK(db_->CreateColumnFamily({}, "ours", &ours));
  ASSERT_OK(other->CreateColumnFamily({}, "theirs", &theirs));
  ASSERT_EQ(ours->GetID(), theirs->GetID());
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("file"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->Put("key", "value"));
  ASSERT_OK(writer->Finish());
  IngestOptions options;
  options.family = theirs.get();
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("file")}, options).IsInvalidArgument());
  EXPECT_OK(IngestExternalFiles(other.get(), {Sub("file")}, options));
  std::string value;
  EXPECT_TRUE(db_->Get({}, ours.get(), "key", &value).IsNotFound());
  EXPECT_OK(other->Get({}, theirs.get(), "key", &value));
}

TEST_F(BackupTest, WhatIsNoFileIsNoSortedFile) {
  ASSERT_EQ(mkfifo(Sub("pipe").c_str(), 0600), 0);  // an open of it would wait
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("pipe")}).IsIOError());
  std::filesystem::create_directory(Sub("directory"));
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("directory")}).IsIOError());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_F(BackupTest, WritersOfSortedFilesKeepTheOrder) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("file"), BytewiseComparator(), &writer));
  EXPECT_TRUE(writer->Finish().IsInvalidArgument());
  ASSERT_OK(writer->Put("b", ""));
  EXPECT_TRUE(writer->Put("b", "").IsInvalidArgument());
  EXPECT_TRUE(writer->Put("a", "").IsInvalidArgument());
  EXPECT_TRUE(writer->Put(std::string(kMaxKeySize + 1, 'c'), "").IsInvalidArgument());
  ASSERT_OK(writer->Put("c", ""));
  EXPECT_FALSE(std::filesystem::exists(Sub("file")));
  writer.reset();  // not finished: nothing is left
  EXPECT_FALSE(std::filesystem::exists(Sub("file.tmp")));
  EXPECT_TRUE(SortedFileWriter::Create(Sub("nowhere/file"), BytewiseComparator(), &writer).IsNotFound());
}

TEST_F(BackupTest, NothingIsIngestedOfFilesOfWhichOneIsWrong) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(Sub("sound"), BytewiseComparator(), &writer));
  ASSERT_OK(writer->Put("sound", "v"));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(SortedFileWriter::Create(Sub("other order"), ReverseBytewiseComparator(), &writer));
  ASSERT_OK(writer->Put("k", "v"));
  ASSERT_OK(writer->Finish());
  std::filesystem::copy_file(Sub("sound"), Sub("damaged"));
  Damage(Sub("damaged"), 100);
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("sound"), Sub("other order")}).IsInvalidArgument());
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("sound"), Sub("damaged")}).IsCorruption());
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("sound"), Sub("nowhere")}).IsNotFound());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// ---- Column families

// A comparator of the program's own.
class ByLength final : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  const char* Name() const override { return "test.ByLength"; }
};

class FamilyCopyTest : public BackupTest {
 protected:
  using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;
  static std::vector<ColumnFamilyDescriptor> Families(const Options& options) {
    std::vector<ColumnFamilyDescriptor> families = {{"default", ColumnFamilyOptions(options)}, {"tree", {}}, {"by length", {}}};
    families[1].options.l1 = L1Kind::kNvTree;
    families[1].options.nv_leaf_size = 1024;
    families[1].options.comparator = ReverseBytewiseComparator();
    families[2].options.comparator = &ByLengthOrder();
    return families;
  }
  static const Comparator& ByLengthOrder() {
    static const ByLength order;
    return order;
  }
  static std::string KeysOf(DB* db, ColumnFamilyHandle* family) {
    std::string keys;
    const auto iterator = db->NewIterator({}, family);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      keys += std::string(iterator->key()) + "=" + std::string(iterator->value()) + " ";
    EXPECT_OK(iterator->status());
    return keys;
  }
  // Ids 1 and 3, since the one between is gone; a copy gives others.
  void Fill() {
    Handles made(3);
    const auto families = Families(options_);
    ASSERT_OK(db_->CreateColumnFamily(families[1].options, "tree", &made[0]));
    ASSERT_OK(db_->CreateColumnFamily({}, "gone", &made[1]));
    ASSERT_OK(db_->CreateColumnFamily(families[2].options, "by length", &made[2]));
    ASSERT_OK(db_->DropColumnFamily(made[1].get()));
    WriteBatch batch;
    for (const char* key : {"a", "b", "cc"}) batch.Put(made[0].get(), key, "t");
    for (const char* key : {"ccc", "b", "aa"}) batch.Put(made[2].get(), key, "l");
    ASSERT_OK(db_->Write({}, batch));
    handles_ = std::move(made);
  }
  void ExpectAll(const std::string& path) {
    Handles handles;
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(options_, path, Families(options_), &handles, &copy));
    EXPECT_EQ(KeysOf(copy.get(), handles[1].get()), "cc=t b=t a=t ");
    EXPECT_EQ(KeysOf(copy.get(), handles[2].get()), "b=l aa=l ccc=l ");
    EXPECT_EQ(handles[1]->GetOptions().l1, L1Kind::kNvTree);
    const auto iterator = copy->NewIterator({});
    auto wanted = expected_.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++wanted) {
      ASSERT_NE(wanted, expected_.end());
      ASSERT_EQ(iterator->key(), wanted->first);
      ASSERT_EQ(iterator->value(), wanted->second);
    }
    EXPECT_EQ(wanted, expected_.end());
    handles.clear();
    EXPECT_OK(copy->Close());
  }
  void TearDown() override { handles_.clear(); }

  Handles handles_;
};

TEST_F(FamilyCopyTest, CheckpointsHaveAllFamiliesWithTheirOrdersAndLastLevels) {
  Fill();
  uint64_t sequence = 0;
  ASSERT_OK(CreateCheckpoint(db_.get(), Sub("copy"), &sequence));
  ASSERT_OK(db_->Put({}, handles_[0].get(), "later", "t"));
  EXPECT_LT(sequence, db_->GetLatestSequenceNumber());
  std::vector<std::string> names;
  ASSERT_OK(DB::ListColumnFamilies(options_, Sub("copy"), &names));
  EXPECT_EQ(names, (std::vector<std::string>{"default", "tree", "by length"}));
  ExpectAll(Sub("copy"));
}

TEST_F(FamilyCopyTest, BackupsHaveThemToo) {
  Fill();
  auto engine = OpenEngine();
  ASSERT_OK(engine->CreateBackup(db_.get(), "of the user"));
  engine.reset();
  engine = OpenEngine();
  const auto all = engine->GetBackupInfo();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].families, (std::vector<std::string>{"tree", "by length"}));
  EXPECT_EQ(all[0].metadata, "of the user");
  EXPECT_EQ(all[0].keys, expected_.size() + 6);
  ASSERT_OK(engine->VerifyBackup(all[0].id));
  EXPECT_CODE(engine->RestoreBackup(all[0].id, options_, Sub("copy")), kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(Sub("copy"))) << "a comparator is not known";
  CopyOptions copy;
  copy.comparators.push_back(&ByLengthOrder());
  ASSERT_OK(engine->RestoreBackup(all[0].id, options_, Sub("copy"), copy));
  ExpectAll(Sub("copy"));
}

// Batches over two families, and families that come and go: a copy has both halves of each, and a family with all of its keys.
TEST_F(FamilyCopyTest, ACopyIsOfOneMoment) {
  Fill();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop.load(); ++i) {
      WriteBatch batch;
      batch.Put(handles_[0].get(), "half", std::to_string(i));
      batch.Put(handles_[2].get(), "half", std::to_string(i));
      ASSERT_OK(db_->Write({}, batch));
      if (i % 50 != 0) continue;
      std::unique_ptr<ColumnFamilyHandle> temporary;
      ASSERT_OK(db_->CreateColumnFamily({}, "temporary", &temporary));
      ASSERT_OK(db_->Put({}, temporary.get(), "k", "v"));
      ASSERT_OK(db_->DropColumnFamily(temporary.get()));
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string path = Sub("copy" + std::to_string(i));
    ASSERT_OK(CreateCheckpoint(db_.get(), path));
    auto families = Families(options_);
    std::vector<std::string> names;
    ASSERT_OK(DB::ListColumnFamilies(options_, path, &names));
    if (names.size() > families.size()) families.push_back({"temporary", {}});
    Handles handles;
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(options_, path, families, &handles, &copy));
    std::string one, two;
    const Status status = copy->Get({}, handles[1].get(), "half", &one);
    EXPECT_EQ(status.code(), copy->Get({}, handles[2].get(), "half", &two).code());
    EXPECT_EQ(one, two);
    handles.clear();
    EXPECT_OK(copy->Close());
  }
  stop.store(true);
  writer.join();
}

TEST_F(FamilyCopyTest, FilesAreIngestedIntoTheFamilyThatIsNamed) {
  Fill();
  std::unique_ptr<SortedFileWriter> file;
  ASSERT_OK(SortedFileWriter::Create(Sub("file"), &ByLengthOrder(), &file));
  ASSERT_OK(file->Put("z", "f"));
  ASSERT_OK(file->Put("aa", "f"));
  ASSERT_OK(file->DeleteRange("b", "c"));
  ASSERT_OK(file->Finish());
  IngestOptions options;
  EXPECT_CODE(IngestExternalFiles(db_.get(), {Sub("file")}, options), kInvalidArgument) << "of another order";
  options.family = handles_[2].get();
  ASSERT_OK(IngestExternalFiles(db_.get(), {Sub("file")}, options));
  EXPECT_EQ(KeysOf(db_.get(), handles_[2].get()), "z=f aa=f ccc=l ");
  EXPECT_EQ(KeysOf(db_.get(), handles_[0].get()), "cc=t b=t a=t ");
}

std::vector<uint32_t> IdsOf(const BackupEngine& engine) {
  std::vector<uint32_t> ids;
  for (const BackupInfo& info : engine.GetBackupInfo()) ids.push_back(info.id);
  return ids;
}

// Whatever others have put into the directory, a backup takes the place of no file.
TEST_F(BackupTest, AStrayFileIsNeverReplaced) {
  uint32_t id = 0;
  ASSERT_OK(OpenEngine()->CreateBackup(db_.get(), "first", &id));
  EXPECT_EQ(id, 1u);
  const std::string strays[] = {"4294967295", "4294967296", "18446744073709551617", "0", "03", "+4", " 5", "-1", "6x", "2"};
  for (const std::string& name : strays) WriteFileOrDie(Sub("backups/" + name + ".backup"), "somebody's " + name);
  WriteFileOrDie(Sub("backups/07.backup.tmp"), "somebody's");
  {
    const auto engine = OpenEngine();
    EXPECT_EQ(engine->GetDamagedBackups(), (std::vector<uint32_t>{2, 4294967295}));
    for (const uint32_t next : {3u, 4u, 5u}) {
      ASSERT_OK(engine->CreateBackup(db_.get(), "later", &id));
      EXPECT_EQ(id, next);
    }
    WriteFileOrDie(Sub("backups/6.backup"), "somebody's 6");
    ASSERT_OK(engine->CreateBackup(db_.get(), "later", &id));
    EXPECT_EQ(id, 7u);
    EXPECT_EQ(IdsOf(*engine), (std::vector<uint32_t>{1, 3, 4, 5, 7}));
  }
  const auto engine = OpenEngine();
  EXPECT_EQ(IdsOf(*engine), (std::vector<uint32_t>{1, 3, 4, 5, 7}));
  EXPECT_EQ(engine->GetBackupInfo()[0].metadata, "first");
  for (const uint32_t each : IdsOf(*engine)) EXPECT_OK(engine->VerifyBackup(each));
  for (const std::string& name : strays)
    EXPECT_TRUE(ReadFileOrDie(Sub("backups/" + name + ".backup")) == "somebody's " + name) << name;
  EXPECT_EQ(ReadFileOrDie(Sub("backups/6.backup")), "somebody's 6");
  EXPECT_EQ(ReadFileOrDie(Sub("backups/07.backup.tmp")), "somebody's");
}

TEST_F(BackupTest, BehindTheLargestNumberThereIsNone) {
  ASSERT_OK(OpenEngine()->CreateBackup(db_.get(), "first"));
  std::filesystem::copy(Sub("backups/1.backup"), Sub("backups/4294967294.backup"));
  uint32_t id = 0;
  {
    const auto engine = OpenEngine();
    ASSERT_OK(engine->CreateBackup(db_.get(), "last", &id));
    EXPECT_EQ(id, UINT32_MAX);
  }
  const auto engine = OpenEngine();
  EXPECT_TRUE(engine->CreateBackup(db_.get(), "none", &id).IsNoSpace());
  EXPECT_EQ(IdsOf(*engine), (std::vector<uint32_t>{1, UINT32_MAX - 1, UINT32_MAX}));
  EXPECT_EQ(engine->GetBackupInfo()[0].metadata, "first");
  ASSERT_OK(engine->DeleteBackup(UINT32_MAX));
}

// In a child with a time limit: a reader that waits for the backup would do so for ever.
TEST_F(BackupTest, TheListIsReadWhileABackupIsMade) {
  db_.reset();
  const auto body = [&] {
    std::unique_ptr<BackupEngine> engine;
    if (!DB::Open(options_, Sub("db"), &db_).ok() || !BackupEngine::Open(Sub("backups"), &engine).ok()) return 1;
    if (!engine->CreateBackup(db_.get()).ok()) return 2;
    size_t seen = 0;
    SyncPoints::Instance().SetCallback("BackupEngine::CreateBackup:Taken", [&](void*) {
      std::thread([&] { seen = engine->GetBackupInfo().size() + engine->GetDamagedBackups().size(); }).join();
    });
    SyncPoints::Instance().Enable();
    if (!engine->CreateBackup(db_.get()).ok()) return 3;
    SyncPoints::Instance().Clear();
    if (seen != 1) return 4;
    return engine->GetBackupInfo().size() == 2 ? 0 : 5;
  };
  EXPECT_EQ(test::RunInChild(body, 60'000), 0);
}

}  // namespace
}  // namespace braiddb::test
