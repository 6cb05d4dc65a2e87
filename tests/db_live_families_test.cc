// Column families of a database that another process, or another object of this one, has open for writing.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "tests/support/live_readers_test.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, LiveReadersTest, testing::ValuesIn(kLiveCases), [](const auto& of) { return of.param.name; });

TEST_P(LiveReadersTest, FollowsFamilies) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::unique_ptr<ColumnFamilyHandle> first;
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "first", &first));
  ASSERT_OK(writer->Put({}, first.get(), "a", "1"));
  std::unique_ptr<DB> reader;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(OpenReaderOf("first", &handles, &reader));
  std::string value;
  ASSERT_OK(reader->Get({}, handles[1].get(), "a", &value));
  EXPECT_EQ(value, "1");
  EXPECT_TRUE(reader->Get({}, handles[0].get(), "a", &value).IsNotFound());

  std::unique_ptr<ColumnFamilyHandle> second;
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "second", &second));
  WriteBatch batch;
  batch.Put(first.get(), "b", "2");
  batch.Put(second.get(), "c", "3");
  ASSERT_OK(writer->Write({}, batch));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> all;
  ASSERT_OK(reader->GetColumnFamilies(&all));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2]->GetName(), "second");
  std::vector<std::string> values;
  const auto statuses = reader->MultiGet({}, {all[1].get(), all[2].get()}, {"b", "c"}, &values);
  ASSERT_OK(statuses[0]);
  ASSERT_OK(statuses[1]);
  EXPECT_EQ(values, (std::vector<std::string>{"2", "3"}));
  for (int i = 0; i < 3000; ++i) ASSERT_OK(writer->Put({}, second.get(), NumberedKey(i), PatternedValue(i, 100)));
  for (int i = 0; i < 3000; i += 7) {
    ASSERT_OK(reader->Get({}, all[2].get(), NumberedKey(i), &value));
    ASSERT_EQ(value, PatternedValue(i, 100));
  }
  const auto iterator = reader->NewIterator({}, all[2].get());
  ASSERT_OK(writer->DropColumnFamily(second.get()));
  second.reset();
  EXPECT_TRUE(WaitUntil([&] { return reader->Get({}, all[2].get(), "c", &value).IsInvalidArgument(); }));
  // The iterator keeps its view.
  int count = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
  EXPECT_OK(iterator->status());
  EXPECT_EQ(count, 3001);
  // A new family with the id or the name of the old one is another one.
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "second", &second));
  ASSERT_OK(writer->Put({}, second.get(), "c", "4"));
  EXPECT_FALSE(reader->Get({}, all[2].get(), "c", &value).ok());
  ASSERT_OK(reader->GetColumnFamilies(&all));
  ASSERT_EQ(all.size(), 3u);
  ASSERT_OK(reader->Get({}, all[2].get(), "c", &value));
  EXPECT_EQ(value, "4");
}

// A family that is dropped during the open has a handle that says so.
TEST_P(LiveReadersTest, AFamilyMayBeDroppedDuringTheOpen) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "gone", &family));
  ASSERT_OK(writer->Put({}, family.get(), "a", "1"));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::unique_ptr<DB> reader;
  ASSERT_OK(OpenReaderOf("gone", &handles, &reader));  // the next one finds a published view
  handles.clear();
  reader.reset();
  SyncPoints::Instance().SetCallback("DBImpl::Open:MadeHandles", [&](void*) {
    if (family == nullptr) return;
    ASSERT_OK(writer->DropColumnFamily(family.get()));
    family.reset();
    ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  });
  SyncPoints::Instance().Enable();
  ASSERT_OK(OpenReaderOf("gone", &handles, &reader));
  SyncPoints::Instance().Clear();
  ASSERT_EQ(handles.size(), 2u);
  EXPECT_EQ(handles[1]->GetName(), "gone");
  std::string value;
  EXPECT_TRUE(WaitUntil([&] { return reader->Get({}, handles[1].get(), "a", &value).IsInvalidArgument(); }));
  EXPECT_TRUE(reader->Get({}, "a", &value).IsNotFound());
  handles.clear();
  reader.reset();
  const Status status = OpenReaderOf("gone", &handles, &reader);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.message().find("Column family not found: gone"), std::string_view::npos) << status.ToString();
}

// As without a writer: families that the open did not name are not visible, but those that are created later.
TEST_P(LiveReadersTest, FamiliesThatAreNotGivenAreNotVisible) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::unique_ptr<ColumnFamilyHandle> before, later;
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "before", &before));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  const auto names = [&] {
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    EXPECT_OK(reader->GetColumnFamilies(&handles));
    std::string all;
    for (const auto& handle : handles) all += handle->GetName() + " ";
    return all;
  };
  EXPECT_EQ(names(), "default ");
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "later", &later));
  EXPECT_EQ(names(), "default later ");
  ASSERT_OK(writer->Put({}, before.get(), "a", "1"));
  ASSERT_OK(writer->Flush());
  EXPECT_EQ(names(), "default later ");
}

// Ids come around again. Handles and iterators of earlier families stay what they were.
class LiveFamiliesTest : public DbOpenTest {};

TEST_F(LiveFamiliesTest, FamiliesAreMadeAgainAndAgain) {
  Options options = TinyOptions(1);
  options.l1 = L1Kind::kBraidedSkipList;
  auto writer = OpenOrFail(options, path_);
  ASSERT_NE(writer, nullptr);
  std::unique_ptr<DB> reader;
  ASSERT_OK(DB::OpenForReadOnly(options, path_, &reader));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> held;
  std::unique_ptr<Iterator> iterator;  // of a family that was dropped; it keeps the family's id in use
  std::string expected;
  for (int i = 0; i < 1100; ++i) {
    std::unique_ptr<ColumnFamilyHandle> made;
    ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options), "family", &made)) << i;
    ASSERT_OK(writer->Put({}, made.get(), "a", std::to_string(i)));
    if (i % 50 == 0) {
      std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
      ASSERT_OK(reader->GetColumnFamilies(&handles));
      ASSERT_EQ(handles.size(), 2u);
      std::string value;
      ASSERT_OK(reader->Get({}, handles[1].get(), "a", &value));
      EXPECT_EQ(value, std::to_string(i));
      iterator = reader->NewIterator({}, handles[1].get());
      expected = value;
      held.push_back(std::move(handles[1]));
    }
    if (i % 50 == 20) {
      iterator->SeekToFirst();
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      EXPECT_EQ(iterator->value(), expected);
      iterator.reset();
    }
    ASSERT_OK(writer->DropColumnFamily(made.get()));
  }
  for (const auto& handle : held) {
    std::string value;
    EXPECT_TRUE(WaitUntil([&] { return reader->Get({}, handle.get(), "a", &value).IsInvalidArgument(); })) << "not purged";
  }
}

// The first reader comes while a dropped family is on its way out of the database: an iterator keeps an old view.
TEST_P(LiveReadersTest, AFirstReaderBringsNoDroppedFamilyBack) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(writer->CreateColumnFamily(ColumnFamilyOptions(options_), "family", &family));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(writer->Put({}, NumberedKey(i), "v"));
    ASSERT_OK(writer->Put({}, family.get(), NumberedKey(i), "v"));
  }
  ASSERT_OK(writer->CompactRange({}, family.get(), nullptr, nullptr));
  auto iterator = writer->NewIterator({});
  iterator->SeekToFirst();
  std::atomic<bool> has_left{false};
  std::atomic<bool> is_forgotten{false};
  SyncPoints& points = SyncPoints::Instance();
  points.SetCallback("DBImpl::HasLeft:View", [&](void*) { has_left = true; });
  points.SetCallback("DBImpl::ForgetPurged:Done", [&](void*) { is_forgotten = true; });
  points.Enable();
  ASSERT_OK(writer->DropColumnFamily(family.get()));
  family.reset();
  ASSERT_TRUE(WaitUntil([&] { return has_left.load(); }));
  std::atomic<bool> shared{false};
  points.SetCallback("DBImpl::ShareLevels:Done", [&](void*) { shared = true; });
  const auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  ASSERT_OK(writer->Put({}, "y", "v"));
  ASSERT_OK(writer->Flush());
  ASSERT_TRUE(WaitUntil([&] { return shared.load(); }));
  iterator.reset();
  ASSERT_OK(writer->Put({}, "x", "v"));
  ASSERT_OK(writer->Flush());
  ASSERT_TRUE(WaitUntil([&] { return is_forgotten.load(); }));
  points.Clear();
  ASSERT_OK(writer->Put({}, "z", "v"));
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  std::string value;
  EXPECT_OK(reader->Get({}, "z", &value));
}

}  // namespace
}  // namespace braiddb::test
