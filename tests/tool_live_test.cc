// The verbs of the program braiddb beside a program that has the database open for writing: this test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/support/tool_fixture.h"

namespace braiddb::test {
namespace {

using Json = nlohmann::json;

class LiveVerbTest : public ToolRunner {
 protected:
  void SetUp() override {
    ToolRunner::SetUp();
    db_ = OpenOrFail(TinyOptions(1), path_);
    ASSERT_NE(db_, nullptr);
    ASSERT_OK(db_->Put({}, "a", "1"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db_->Put({}, "b", "2"));
  }
  void TearDown() override {
    db_.reset();
    ToolRunner::TearDown();
  }

  std::unique_ptr<DB> db_;
};

TEST_F(LiveVerbTest, ExportsAreMade) {
  const ToolResult csv = Run("export --format csv " + path_);
  EXPECT_EQ(csv.exit_code, 0) << csv.error;
  EXPECT_EQ(csv.out, "a,1\nb,2\n");
  const std::string file = directory_.File("all.jsonl");
  const ToolResult json = Run("export --json " + path_ + " " + file);
  EXPECT_EQ(json.exit_code, 0) << json.error;
  EXPECT_TRUE(Has(json.out, "\"records\":2")) << json.out;
  EXPECT_TRUE(Has(ReadFileOrDie(file), "{\"key\":\"b\",\"value\":\"2\"}\n"));
}

// A live reader has some of the figures. Others are absent: they are not 0.
TEST_F(LiveVerbTest, FactsThatAreKnownArePrinted) {
  const ToolResult stat = Run("stat --json " + path_);
  EXPECT_EQ(stat.exit_code, 0) << stat.error;
  const Json facts = Json::parse(stat.out, nullptr, false);
  EXPECT_EQ(facts["regions"], 1) << stat.out;
  EXPECT_EQ(facts["last_level_entries"], 1) << stat.out;
  EXPECT_GE(facts["last_sequence"], 2) << stat.out;
  EXPECT_FALSE(facts.contains("live_bytes")) << stat.out;
  const ToolResult all = Run("properties --json " + path_);
  EXPECT_EQ(all.exit_code, 0) << all.error;
  const Json properties = Json::parse(all.out, nullptr, false);
  EXPECT_EQ(properties["braiddb.num-entries-l1"], 1) << all.out;
  EXPECT_FALSE(properties.contains("braiddb.pm-bytes-live")) << all.out;
  const ToolResult named = Run("properties " + path_ + " num-entries-l1 pm-bytes-live");
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_EQ(named.out, "braiddb.num-entries-l1: 1\n");
  EXPECT_TRUE(Has(named.error, "'braiddb.pm-bytes-live' beside the program")) << named.error;
}

// The advice of a refusal works.
TEST_F(LiveVerbTest, LogsAreFollowedOnly) {
  const std::string copy = directory_.File("copy");
  const std::string tool = BRAIDDB_TOOL;
  for (const std::string& command :
       {tool + " log " + path_, tool + " log --secondary " + copy + " " + path_,
        tool + " log --follow --secondary " + copy + " " + path_, "echo log | " + tool + " shell --read-only " + path_,
        "echo log | " + tool + " shell --secondary " + copy + " " + path_}) {
    const ToolResult refused = RunCommand(command);
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_TRUE(Has(refused.error, "has no history; `braiddb log --follow <database>`")) << command << refused.error;
    EXPECT_FALSE(Has(refused.error, "--secondary DIRECTORY")) << refused.error;
  }
  EXPECT_FALSE(Has(Run("log --help").out, "--secondary"));
  // What the log still has of before is the writer's affair, so there are new updates until the command ends.
  std::atomic<bool> has_ended{false};
  std::thread writer([&] {
    for (int i = 0; !has_ended.load(); ++i) {
      EXPECT_OK(db_->Put({}, "new" + std::to_string(i), "v"));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const ToolResult followed = RunCommand("timeout -s INT 4 " + tool + " log --follow " + path_);
  has_ended.store(true);
  writer.join();
  EXPECT_TRUE(Has(followed.out, "\tput\tnew")) << followed.out << followed.error;
}

// Each verb that reads works, or says what to do.
TEST_F(LiveVerbTest, VerbsThatReadWork) {
  for (const char* verb : {"get @ a", "scan @", "count @", "approximate-size @", "stat @", "properties @", "options @",
                           "families @", "readers @", "export --format tsv @"}) {
    std::string arguments = verb;
    arguments.replace(arguments.find('@'), 1, path_);
    const ToolResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << verb << ": " << result.error;
    EXPECT_NE(result.out, "") << verb;
  }
  for (const char* verb : {"put @ a 2", "delete @ a", "compact @", "flush @", "create-family @ f", "drop-family @ f", "check @",
                           "dump @", "repair @ @.new", "destroy --yes @", "import --format csv @ /dev/null"}) {
    std::string arguments = verb;
    for (size_t at = 0; (at = arguments.find('@')) != std::string::npos;) arguments.replace(at, 1, path_);
    const ToolResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << verb;
    EXPECT_TRUE(result.error.starts_with("braiddb: ")) << verb << ": " << result.error;
  }
  for (const std::string& verb :
       {"backup " + path_ + " " + directory_.File("backups"), "checkpoint " + path_ + " " + directory_.File("new")}) {
    const ToolResult refused = Run(verb);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(Has(refused.error, "--secondary DIRECTORY")) << refused.error;
  }
}

}  // namespace
}  // namespace braiddb::test
