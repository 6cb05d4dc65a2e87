// Checkpoints and backups: what is copied is what was there, whole or not at all.
#include "braiddb/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <locale>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/event_listener.h"
#include "braiddb/options_file.h"
#include "db/temporary_place.h"
#include "tests/support/backup_fixture.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

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

// A program whose numbers have separators, as in many languages.
class Grouping : public std::numpunct<char> {
 protected:
  char do_thousands_sep() const override { return ','; }
  char do_decimal_point() const override { return ';'; }
  std::string do_grouping() const override { return "\1"; }
};

class WithLocale {
 public:
  explicit WithLocale(const std::locale& locale) : before_(std::locale::global(locale)) {}
  ~WithLocale() { std::locale::global(before_); }
  WithLocale(const WithLocale&) = delete;
  WithLocale& operator=(const WithLocale&) = delete;

 private:
  const std::locale before_;
};

TEST_F(BackupTest, TheLocaleOfTheProgramDoesNotMatter) {
  const std::locale grouping(std::locale::classic(), new Grouping);
  Options options = TinyOptions(2);
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_space_amplification = 1234.5;
  options.l1 = L1Kind::kBraidedSkipList;  // which live readers can read
  const std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, ColumnFamilyOptions(options)},
                                                        {"family", ColumnFamilyOptions(options)}};
  std::unique_ptr<DB> db;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::unique_ptr<BackupEngine> engine;
  const auto expect_all = [&](const std::string& path) {
    ASSERT_OK(DB::Open(options, path, families, &handles, &db));
    EXPECT_EQ(GetOrText(db.get(), "a"), "1");
    std::string value;
    ASSERT_OK(db->Get({}, handles[1].get(), "b", &value));
    EXPECT_EQ(value, "2");
    std::unique_ptr<DB> reader;
    ASSERT_OK(DB::OpenForReadOnly(options, path, &reader));
    EXPECT_EQ(GetOrText(reader.get(), "a"), "1");
    reader.reset();
    handles.clear();
    db.reset();
  };
  {
    const WithLocale with(grouping);
    ASSERT_OK(DB::Open(options, Sub("grouped"), families, &handles, &db));
    ASSERT_OK(db->Put({}, "a", "1"));
    ASSERT_OK(db->Put({}, handles[1].get(), "b", "2"));
    ASSERT_OK(db->DeleteRange({}, db->DefaultColumnFamily(), "x", "y"));
    ASSERT_OK(BackupEngine::Open(Sub("engine"), &engine));
    ASSERT_OK(engine->CreateBackup(db.get()));
    engine.reset();
    ASSERT_OK(CreateCheckpoint(db.get(), Sub("checkpoint")));
    handles.clear();
    db.reset();
    ASSERT_NO_FATAL_FAILURE(expect_all(Sub("grouped")));
  }
  for (const bool groups : {false, true}) {
    const WithLocale with(groups ? grouping : std::locale::classic());
    ASSERT_OK(BackupEngine::Open(Sub("engine"), &engine));
    const std::vector<BackupInfo> backups = engine->GetBackupInfo();
    ASSERT_EQ(backups.size(), 1u);
    EXPECT_OK(engine->VerifyBackup(backups[0].id));
    ASSERT_OK(engine->RestoreBackup(backups[0].id, options, Sub(groups ? "restored" : "restored too")));
    engine.reset();
    ASSERT_NO_FATAL_FAILURE(expect_all(Sub(groups ? "restored" : "restored too")));
    ASSERT_NO_FATAL_FAILURE(expect_all(Sub("grouped")));
    ASSERT_NO_FATAL_FAILURE(expect_all(Sub("checkpoint")));
  }
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

// ---- Column families

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
