// Sorted files: what is ingested is one batch, whole or not at all.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/backup_fixture.h"

namespace braiddb::test {
namespace {

class IngestTest : public BackupTest {};
class FamilyIngestTest : public FamilyCopyTest {};

TEST_F(IngestTest, IngestedFilesAreOneBatchTheLastOneWins) {
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

TEST_F(IngestTest, RangesOfAFileDeleteWhatWasThereBeforeIt) {
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

TEST_F(IngestTest, FilesOfAnotherOrderAndWhoWrites) {
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
TEST_F(IngestTest, NothingIsIngestedIntoAFamilyOfAnotherDatabase) {
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

TEST_F(IngestTest, WhatIsNoFileIsNoSortedFile) {
  ASSERT_EQ(mkfifo(Sub("pipe").c_str(), 0600), 0);  // an open of it would wait
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("pipe")}).IsIOError());
  std::filesystem::create_directory(Sub("directory"));
  EXPECT_TRUE(IngestExternalFiles(db_.get(), {Sub("directory")}).IsIOError());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_F(IngestTest, WritersOfSortedFilesKeepTheOrder) {
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

TEST_F(IngestTest, NothingIsIngestedOfFilesOfWhichOneIsWrong) {
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

TEST_F(FamilyIngestTest, FilesAreIngestedIntoTheFamilyThatIsNamed) {
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

}  // namespace
}  // namespace braiddb::test
