// db_bench with a server of its own and with PMDK's example maps. A store that is not installed is skipped.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db_bench/engine.h"
#include "tests/support/db_test_util.h"
#include "util/random.h"

namespace braiddb::bench {
namespace {

// Its keys are numbers, so it has a test of its own: a model, values that grow and shrink, batches, families, reopens.
class PmdkMapTest : public testing::TestWithParam<const char*> {};

TEST_P(PmdkMapTest, KeepsWhatIsWritten) {
  constexpr uint64_t kKeys = 200;
  test::TestDirectory directory;
  Flags flags;
  flags.num_column_families = 3;
  flags.num = 10'000;
  flags.value_size = 100;
  std::unique_ptr<Driver> driver;
  if (const Status status = MakeDriver(std::string("pmdk_map:") + GetParam(), flags, &driver); status.IsNotSupported())
    GTEST_SKIP() << status.ToString();
  const std::string path = directory.File("db");
  std::map<std::string, std::string> expected;
  test::Random random(5);
  const auto draw_key = [&] {
    std::string key(8, '\0');
    key[7] = static_cast<char>(random.Uniform(kKeys));  // 0 is a key, too
    return key;
  };
  for (int life = 0; life < 4; ++life) {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Session> session;
    ASSERT_TRUE(driver->Open(path, life > 0, &engine).ok());
    ASSERT_TRUE(engine->NewSession(false, &session).ok());
    std::string value;
    for (int i = 0; i < 1000; ++i) {
      std::vector<std::string> keys, values;
      std::vector<Update> batch;
      for (uint64_t n = random.OneIn(3) ? 1 + random.Uniform(5) : 1; n > 0; --n) {
        keys.push_back(draw_key());
        values.push_back(test::PatternedValue(random.Next(), random.Uniform(300)));
      }
      for (size_t n = 0; n < keys.size(); ++n) batch.push_back({keys[n], values[n], random.OneIn(4)});
      Status status;
      if (batch.size() > 1) {
        status = session->Write(batch);
      } else {
        status = batch[0].removes ? session->Delete(keys[0]) : session->Put(keys[0], values[0]);
      }
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (const Update& update : batch) {
        if (update.removes) {
          expected.erase(std::string(update.key));
        } else {
          expected[std::string(update.key)] = std::string(update.value);
        }
      }
    }
    for (uint64_t number = 0; number < kKeys; ++number) {
      std::string key(8, '\0');
      key[7] = static_cast<char>(number);
      const Status status = session->Get(key, &value);
      const auto at = expected.find(key);
      ASSERT_EQ(status.ok(), at != expected.end()) << status.ToString();
      if (status.ok()) {
        ASSERT_EQ(value, at->second);
      }
    }
    EXPECT_TRUE(session->Put("short", "v").IsNotSupported());
    EXPECT_TRUE(session->Put(std::string(8, '\xff'), "v").IsNotSupported());
    session.reset();
    EXPECT_TRUE(engine->Close().ok());
  }
  flags.num_column_families = 2;
  std::unique_ptr<Engine> engine;
  EXPECT_TRUE(driver->Open(path, true, &engine).IsInvalidArgument());
  EXPECT_TRUE(driver->Destroy(path).ok());
  EXPECT_TRUE(driver->Destroy(path).ok());
  EXPECT_TRUE(MakeDriver("pmdk_map:none", flags, &driver).IsInvalidArgument());
}

INSTANTIATE_TEST_SUITE_P(All, PmdkMapTest, testing::Values("ctree", "btree", "rbtree", "rtree", "hashmap_tx", "hashmap_atomic"),
                         [](const auto& test) { return std::string(test.param); });

// A server that is killed keeps what it has acknowledged. One that is gone is an error of each call, and its programs end.
TEST(RedisEngine, KeepsAcknowledgedWritesAndReportsAServerThatIsGone) {
  for (const std::string engine_name : {"redis", BRAIDDB_REDIS_STAND_IN}) {
    SCOPED_TRACE(engine_name);
    test::TestDirectory directory;
    Flags flags;
    std::unique_ptr<Driver> driver;
    if (MakeDriver(engine_name, flags, &driver).IsNotSupported()) continue;
    const std::string path = directory.File("db");
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Session> session;
    ASSERT_TRUE(driver->Open(path, false, &engine).ok());
    ASSERT_TRUE(engine->NewSession(false, &session).ok());
    ASSERT_TRUE(session->Put("key", std::string(100'000, 'v')).ok());
    ASSERT_TRUE(session->Write({{"other", "1", false}, {"key2", "2", false}, {"other", "", true}}).ok());
    EXPECT_GT(engine->State().at(0).value, 0u);
    engine.reset();  // kills the server
    std::string value;
    EXPECT_TRUE(session->Get("key", &value).IsIOError());
    EXPECT_TRUE(session->Write({{"a", "b", false}}).IsIOError());
    session.reset();
    EXPECT_FALSE(driver->Open(path, false, &engine).ok()) << "it is there";
    ASSERT_TRUE(driver->Open(path, true, &engine).ok());
    ASSERT_TRUE(engine->NewSession(true, &session).ok());
    ASSERT_TRUE(session->Get("key", &value).ok());
    EXPECT_EQ(value, std::string(100'000, 'v'));
    EXPECT_TRUE(session->Get("other", &value).IsNotFound());
    ASSERT_TRUE(session->Get("key2", &value).ok());
    EXPECT_EQ(value, "2");
    session.reset();
    EXPECT_TRUE(engine->Close().ok());
    engine.reset();
    EXPECT_TRUE(driver->Destroy(directory.File("elsewhere")).ok());
    const std::string foreign = directory.File("foreign");
    std::filesystem::create_directory(foreign);
    std::ofstream(foreign + "/file").put('x');
    EXPECT_TRUE(driver->Destroy(foreign).IsInvalidArgument());
    EXPECT_TRUE(driver->Open(foreign, false, &engine).IsInvalidArgument());
    EXPECT_TRUE(driver->Open(foreign, true, &engine).IsInvalidArgument());
    EXPECT_TRUE(std::filesystem::exists(foreign + "/file"));
    EXPECT_TRUE(driver->Destroy(path).ok());
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  Flags flags;
  std::unique_ptr<Driver> driver;
  EXPECT_TRUE(MakeDriver("redis:/nonexistent/server", flags, &driver).IsNotSupported());
}

}  // namespace
}  // namespace braiddb::bench
