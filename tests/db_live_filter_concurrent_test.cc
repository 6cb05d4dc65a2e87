// Live readers use the filter of the process that writes: a key that is there is never excluded, while the filter grows, is built
// anew, and is replaced.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/live_readers_test.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class LiveFilterTest : public LiveReadersTest {
 protected:
  void SetUp() override {
    LiveReadersTest::SetUp();
    options_.merge_operator = nullptr;
    options_.lookup_cache_size = 0;  // reads ask the filter
    options_.filter_bits_per_key = 10;
    SyncPoints::Instance().SetCallback("DBImpl::InstallForeignView:Filter", [this](void* filter) {
      if (filter != nullptr) ++attached_;
    });
    SyncPoints::Instance().SetCallback("DBImpl::BeginFilter", [this](void*) { ++built_; });
    SyncPoints::Instance().Enable();
  }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    LiveReadersTest::TearDown();
  }

  std::atomic<int> attached_{0};
  std::atomic<int> built_{0};
};
INSTANTIATE_TEST_SUITE_P(Kinds, LiveFilterTest, testing::ValuesIn(kLiveCases), [](const auto& of) { return of.param.name; });

TEST_P(LiveFilterTest, NoKeyIsExcludedThatIsThere) {
  auto writer = OpenOrFail(options_, path_);
  ASSERT_NE(writer, nullptr);
  constexpr uint64_t kAtOnce = 400;
  for (uint64_t i = 0; i < kAtOnce; ++i) ASSERT_OK(writer->Put({}, NumberedKey(i), "v"));
  ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
  auto reader = OpenReader();
  ASSERT_NE(reader, nullptr);
  // The filter that was made before the first reader came is copied.
  EXPECT_TRUE(WaitUntil([&] {
    std::string value;
    return reader->Get({}, NumberedKey(0), &value).ok() && attached_.load() > 0;
  }));
  // All keys in [first, last) are there.
  std::atomic<uint64_t> first{0}, last{kAtOnce};
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> wrong{0}, reads{0};
  std::thread reads_all([&] {
    Random random(3);
    std::string value;
    while (!ends.load()) {
      const uint64_t begin = first.load(), end = last.load();
      const uint64_t key = random.Range(begin, end - 1);
      const Status status = reader->Get({}, NumberedKey(key), &value);
      const bool is_deleted = key < first.load();
      if (!status.ok() && !(status.IsNotFound() && is_deleted)) ++wrong;
      if (!reader->Get({}, NumberedKey(key) + "+", &value).IsNotFound()) ++wrong;
      ++reads;
    }
  });
  Rounds rounds(60 / kSlowdown);
  while (rounds.Next()) {
    const uint64_t end = last.load();
    for (uint64_t i = end; i < end + kAtOnce; ++i) {
      ASSERT_OK(writer->Put({}, NumberedKey(i), "v"));
      last.store(i + 1);
    }
    if (rounds.number() % 7 == 0) {  // most keys of the filter are gone, so it is built anew
      const uint64_t begin = first.load(), keeps = end - kAtOnce;
      first.store(keeps);
      for (uint64_t i = begin; i < keeps; ++i) ASSERT_OK(writer->Delete({}, NumberedKey(i)));
    }
    if (rounds.number() % 2 == 0) {
      ASSERT_OK(writer->CompactRange({}, nullptr, nullptr));
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return reads.load() > 1000; }));
  ends = true;
  reads_all.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_TRUE(kSlowdown > 1 || built_.load() > 1) << "the filter was built anew";
  for (uint64_t i = first.load(); i < last.load(); ++i) {
    std::string value;
    ASSERT_OK(reader->Get({}, NumberedKey(i), &value));
  }
}

}  // namespace
}  // namespace braiddb::test
