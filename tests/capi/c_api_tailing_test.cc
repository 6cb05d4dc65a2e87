// Tailing iterators: they show what was written since they were made, when they are moved to a key or come to their end.
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/capi/c_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class CApiTailingTest : public CApiTest {
 protected:
  CApiTailingTest() {
    Open();
    braiddb_readoptions_set_tailing(read_, 1);
  }
  ~CApiTailingTest() override { braiddb_iter_destroy(iterator_); }
  void Make() { iterator_ = braiddb_create_iterator(db_, read_); }
  // "(end)" if it stands nowhere.
  std::string Key() {
    braiddb_iter_get_error(iterator_, error_.pointer());
    EXPECT_EQ("", error_.Take());
    if (!braiddb_iter_valid(iterator_)) return "(end)";
    size_t length = 0;
    const char* const key = braiddb_iter_key(iterator_, &length);
    return {key, length};
  }
  std::string Seek(std::string_view key) {
    braiddb_iter_seek(iterator_, key.data(), key.size());
    return Key();
  }
  std::string Next() {
    braiddb_iter_next(iterator_);
    return Key();
  }

  braiddb_iterator_t* iterator_ = nullptr;
};

TEST_F(CApiTailingTest, SeeksShowWhatCameSince) {
  Make();
  EXPECT_EQ("(end)", Seek("a"));
  Put("b", "1");
  EXPECT_EQ("b", Seek("a"));
  Put("a", "1");
  Delete("b");
  EXPECT_EQ("a", Seek("a"));
  EXPECT_EQ("(end)", Next());
  Put("c", "1");
  braiddb_iter_seek_to_first(iterator_);
  EXPECT_EQ("a", Key());
  braiddb_iter_seek_to_last(iterator_);
  EXPECT_EQ("c", Key());
  braiddb_iter_prev(iterator_);
  EXPECT_EQ("a", Key());
  Put("ab", "1");
  braiddb_iter_seek_for_prev(iterator_, "b", 1);
  EXPECT_EQ("ab", Key());
}

TEST_F(CApiTailingTest, TheEndIsWhereTheDataEnd) {
  Put("1", "v");
  Make();
  EXPECT_EQ("1", Seek("0"));
  for (const char* key : {"2", "3", "4"}) {
    Put(key, "v");
    EXPECT_EQ(key, Next());
  }
  braiddb_flush(db_, nullptr, error_.pointer());
  Delete("4");
  Put("5", "v");
  EXPECT_EQ("5", Next());
  EXPECT_EQ("(end)", Next());
}

TEST_F(CApiTailingTest, BoundsStayAndSnapshotsDoNotCount) {
  Put("a", "v");
  const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
  Put("b", "v");
  braiddb_readoptions_set_snapshot(read_, snapshot);
  braiddb_readoptions_set_iterate_lower_bound(read_, "b", 1);
  braiddb_readoptions_set_iterate_upper_bound(read_, "d", 1);
  Make();
  braiddb_readoptions_set_iterate_lower_bound(read_, nullptr, 0);
  braiddb_readoptions_set_iterate_upper_bound(read_, nullptr, 0);
  braiddb_readoptions_set_snapshot(read_, nullptr);
  EXPECT_EQ("b", Seek("a"));
  Put("d", "v");
  EXPECT_EQ("(end)", Next());
  Put("c", "v");
  EXPECT_EQ("b", Seek("a"));
  EXPECT_EQ("c", Next());
  EXPECT_EQ("(end)", Next());
  braiddb_release_snapshot(db_, snapshot);
}

TEST_F(CApiTailingTest, OfAColumnFamilyAndOfSeveral) {
  braiddb_column_family_handle_t* family = braiddb_create_column_family(db_, options_, "other", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_iterator_t* iterators[1];
  braiddb_create_iterators(db_, read_, &family, iterators, 1, error_.pointer());
  ASSERT_EQ("", error_.Take());
  iterator_ = iterators[0];
  EXPECT_EQ("(end)", Seek("a"));
  braiddb_put_cf(db_, write_, family, "a", 1, "v", 1, error_.pointer());
  braiddb_column_family_handle_destroy(family);
  EXPECT_EQ("a", Seek("a"));
}

TEST_F(CApiTailingTest, OthersSeeWhatThereWas) {
  braiddb_readoptions_set_tailing(read_, 0);
  Put("a", "v");
  Make();
  EXPECT_EQ("a", Seek("a"));
  Put("b", "v");
  EXPECT_EQ("(end)", Next());
  EXPECT_EQ("(end)", Seek("b"));
}

// Beside another database object that writes.
class CApiLiveTailingTest : public CApiTailingTest {
 protected:
  CApiLiveTailingTest() {
    braiddb_options_set_refresh_live_readers(options_, 1);
    Put("a", "1");
    reader_ = braiddb_open_for_read_only(options_, path().c_str(), 0, error_.pointer());
    EXPECT_EQ("", error_.Take());
    iterator_ = braiddb_create_iterator(reader_, read_);
  }
  ~CApiLiveTailingTest() override {
    braiddb_iter_destroy(std::exchange(iterator_, nullptr));
    braiddb_close_database(reader_, error_.pointer());
    EXPECT_EQ("", error_.Take());
  }

  braiddb_t* reader_ = nullptr;
};

// The write has its number when the iterator looks for newer writes, but is not visible yet.
TEST_F(CApiLiveTailingTest, AWriteUnderWayIsFoundLater) {
  std::atomic<bool> is_under_way{false}, goes_on{false};
  SyncPoints::Instance().SetCallback("DBImpl::AppendAndPublish:Durable", [&](void*) {
    is_under_way = true;
    EXPECT_TRUE(WaitUntil([&] { return goes_on.load(); }));
  });
  SyncPoints::Instance().Enable();
  std::thread writer([this] { Put("b", "1"); });
  EXPECT_TRUE(WaitUntil([&] { return is_under_way.load(); }));
  EXPECT_EQ("a", Seek("a"));
  EXPECT_EQ("(end)", Seek("b"));
  goes_on = true;
  writer.join();
  SyncPoints::Instance().Clear();
  EXPECT_EQ("b", Seek("b"));
}

// The next writer writes nothing, so its last number is that of the former one.
TEST_F(CApiLiveTailingTest, GoesOnWithTheNextWriter) {
  EXPECT_EQ("a", Seek("a"));
  Open();
  braiddb_refresh(reader_, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("a", Seek("a"));
  EXPECT_EQ("(end)", Next());
  Put("b", "1");
  EXPECT_EQ("b", Seek("b"));
}

}  // namespace
}  // namespace braiddb::test
