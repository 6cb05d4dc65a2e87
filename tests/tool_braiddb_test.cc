// The program braiddb: its verbs, exit codes and output.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/mutation/mutation_database.h"
#include "tests/support/tool_fixture.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

using Result = ToolResult;

class ToolTest : public ToolRunner {
 protected:
  void Damage() {
    for (const auto& name : RegionFiles(path_)) {
      std::string content = ReadFileOrDie(path_ + "/" + name);
      const size_t at = content.find(PatternedValue(7, 100));
      if (at == std::string::npos) continue;
      content[at] = static_cast<char>(content[at] ^ 1);
      return WriteFileOrDie(path_ + "/" + name, content);
    }
    FAIL() << "no file has the value";
  }
};

TEST_F(ToolTest, CheckSaysWhatItFinds) {
  Fill(TinyOptions(1), 100);
  std::map<std::string, std::string> before;
  for (const auto& file : ListFiles(path_)) before[file] = ReadFileOrDie(path_ + "/" + file);
  const Result sound = Run("check " + path_);
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.error;
  EXPECT_TRUE(Has(sound.out, "\nsound\n")) << sound.out;
  EXPECT_TRUE(Has(sound.out, "entries")) << sound.out;
  EXPECT_EQ(sound.error, "");
  for (const auto& [file, content] : before) EXPECT_TRUE(ReadFileOrDie(path_ + "/" + file) == content) << file;
  EXPECT_EQ(ListFiles(path_).size(), before.size());

  Damage();
  const Result damaged = Run("check " + path_);
  EXPECT_EQ(damaged.exit_code, 1);
  for (const char* part : {"damaged: a damaged log entry", "where: ", ".pmem, byte ", "what to do: ", "\nDAMAGED\n"})
    EXPECT_TRUE(Has(damaged.out, part)) << part << " is not in\n" << damaged.out;
}

TEST_F(ToolTest, CheckAndRepairPrintJson) {
  Fill(TinyOptions(1), 100);
  const auto sound = nlohmann::json::parse(Run("check --json " + path_).out, nullptr, false);
  EXPECT_EQ(sound["sound"], true) << sound;
  EXPECT_TRUE(sound["findings"].empty()) << sound;
  Damage();
  const auto damaged = nlohmann::json::parse(Run("check --json " + path_).out, nullptr, false);
  EXPECT_EQ(damaged["sound"], false) << damaged;
  EXPECT_FALSE(damaged["findings"].empty()) << damaged;
  const Result repair = Run("repair --json " + path_ + " " + directory_.File("fresh"));
  EXPECT_EQ(repair.exit_code, 1);
  const auto repaired = nlohmann::json::parse(repair.out, nullptr, false);
  EXPECT_EQ(repaired["keys"], 99) << repaired;
  EXPECT_EQ(repaired["lost"].size(), 1u) << repaired;
}

TEST_F(ToolTest, CheckCannotLook) {
  EXPECT_EQ(Run("check " + path_).exit_code, 2);
  auto db = OpenOrFail(TinyOptions(1), path_);
  const Result busy = Run("check " + path_);
  EXPECT_EQ(busy.exit_code, 2);
  EXPECT_TRUE(Has(busy.error, "busy")) << busy.error;
}

TEST_F(ToolTest, DumpIsForPeopleAndForPrograms) {
  {
    auto db = OpenOrFail(MutationDatabase::MakeOptions(), path_);
    ASSERT_OK(db->Put({}, "in the last level", "1"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Put({}, std::string("\0%\n\xff", 4), "two"));
    ASSERT_OK(db->Delete({}, "gone"));
    ASSERT_OK(db->Close());
  }
  const Result text = Run("dump " + path_);
  EXPECT_EQ(text.exit_code, 0) << text.error;
  for (const char* part : {"region region=0 ", "region region=1 ", "manifest generation=", "table id=", "segment region=",
                           "level level=0 family=0 tables=1 entries=2", "level level=1 family=0 entries=1"})
    EXPECT_TRUE(Has(text.out, part)) << part << " is not in\n" << text.out;
  EXPECT_FALSE(Has(text.out, "entry "));

  const Result entries = Run("dump --entries " + path_);
  EXPECT_TRUE(Has(entries.out, "type=put batch=false state=live")) << entries.out;
  EXPECT_TRUE(Has(entries.out, "key=%00%25%0A%FF value=two\n")) << entries.out;
  EXPECT_TRUE(Has(entries.out, "type=delete")) << entries.out;

  const Result json = Run("dump --json --entries " + path_);
  EXPECT_EQ(json.exit_code, 0);
  std::istringstream lines(json.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.starts_with("{\"") && line.ends_with("}")) << line;
  }
  EXPECT_EQ(count, 1 + 3);
  EXPECT_TRUE(Has(json.out, "\"comparator\":\"braiddb.BytewiseComparator\"")) << json.out;
  EXPECT_TRUE(Has(json.out, "\"key\":\"in the last level\",\"value\":\"1\"}")) << json.out;
}

TEST_F(ToolTest, RepairMakesANewDatabase) {
  Fill(TinyOptions(1), 100);
  const std::string fresh = directory_.File("fresh");
  const Result whole = Run("repair " + path_ + " " + fresh);
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.error;
  EXPECT_TRUE(Has(whole.out, "100 keys")) << whole.out;
  Damage();
  EXPECT_EQ(Run("repair " + path_ + " " + fresh).exit_code, 2) << "there is a database already";
  fs::remove_all(fresh);
  const Result repaired = Run("repair --regions 2 " + path_ + " " + fresh);
  EXPECT_EQ(repaired.exit_code, 1) << repaired.error;
  EXPECT_TRUE(Has(repaired.out, "99 keys")) << repaired.out;
  EXPECT_TRUE(Has(repaired.out, "lost: ")) << repaired.out;
  EXPECT_EQ(Run("check " + fresh).exit_code, 0);
  auto db = OpenOrFail(TinyOptions(2), fresh);
  EXPECT_EQ(ScanForward(db.get()).size(), 99u);
}

TEST_F(ToolTest, ColumnFamiliesAreShown) {
  const MutationDatabase database(Life::kKilled, 2, TestedL1(), true);
  ASSERT_TRUE(database.Make(path_, directory_.File("older")));
  const Result check = Run("check " + path_);
  EXPECT_EQ(check.exit_code, 0) << check.out << check.error;
  EXPECT_TRUE(Has(check.out, "  3 column families\n")) << check.out;
  const Result dump = Run("dump --entries " + path_);
  for (const char* part : {"family id=1 name=other number=", "family id=2 name=of another kind number=",
                           "family id=3 name=dropped number=", "comparator=braiddb.ReverseBytewiseComparator l1=", "dropped=true",
                           "level level=1 family=2 entries=", " family=1 boundary=", " family=2 sequence="})
    EXPECT_TRUE(Has(dump.out, part)) << part << " is not in\n" << dump.out.substr(0, 3000);
  EXPECT_TRUE(Has(Run("dump --json " + path_).out, "\"name\": \"of another kind\""));
  const Result repair = Run("repair " + path_ + " " + directory_.File("fresh"));
  EXPECT_EQ(repair.exit_code, 0) << repair.out << repair.error;
  EXPECT_TRUE(Has(repair.out, "  3 column families\n")) << repair.out;
}

TEST_F(ToolTest, RegionsElsewhereAreFound) {
  Options options = TinyOptions(2);
  options.region_paths = {directory_.File("r0"), directory_.File("r1")};
  Fill(options, 50);
  EXPECT_EQ(Run("check " + path_).exit_code, 0);
  const Result result =
      Run("check --region-path " + options.region_paths[0] + " --region-path " + options.region_paths[1] + " " + path_);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
}

TEST_F(ToolTest, ArgumentsAreChecked) {
  EXPECT_EQ(Run("").exit_code, 2);
  EXPECT_EQ(Run("frobnicate x").exit_code, 2);
  EXPECT_EQ(Run("check").exit_code, 2);
  EXPECT_EQ(Run("check a b").exit_code, 2);
  EXPECT_EQ(Run("check --nonsense a").exit_code, 2);
  EXPECT_EQ(Run("repair a").exit_code, 2);
  EXPECT_EQ(Run("check --comparator odd a").exit_code, 2);
  for (const char* help : {"--help", "check --help", "dump --help", "repair --help"}) {
    const Result result = Run(help);
    EXPECT_EQ(result.exit_code, 0) << help;
    EXPECT_TRUE(Has(result.out, "braiddb ")) << result.out;
  }
}

TEST_F(ToolTest, DoctorSaysWhatAPlaceIsWorth) {
  const std::string place = directory_.File("place");
  fs::create_directories(place);
  const Result text = Run("doctor " + place + " " + path_);
  EXPECT_EQ(text.exit_code, 0) << text.out << text.error;
  for (const std::string& part : {place + "\n", path_ + "\n", std::string("media: "), std::string("map_sync: "),
                                  std::string("persist_mode: "), std::string("huge_pages: "), std::string("limits: "),
                                  std::string("space: "), std::string("it does not exist"), std::string("fit for a database")})
    EXPECT_TRUE(Has(text.out, part)) << part << " is not in\n" << text.out;
  EXPECT_TRUE(fs::is_empty(place));
  EXPECT_FALSE(fs::exists(path_));

  const Result json = Run("doctor --json " + place + " /dev/null");
  EXPECT_EQ(json.exit_code, 1) << json.error;
  const auto parsed = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << json.out;
  ASSERT_EQ(parsed["paths"].size(), 2u);
  EXPECT_EQ(parsed["paths"][0]["path"], place);
  EXPECT_EQ(parsed["paths"][0]["needs_change"], false);
  EXPECT_EQ(parsed["paths"][1]["needs_change"], true);
  for (const auto& finding : parsed["paths"][1]["findings"])
    EXPECT_TRUE(finding["level"] == "good" || !finding["advice"].get<std::string>().empty()) << finding;

  fs::create_symlink("circle", directory_.File("circle"));
  const Result circle = Run("doctor " + directory_.File("circle") + " " + place);
  EXPECT_EQ(circle.exit_code, 2) << circle.out;
  EXPECT_TRUE(Has(circle.error, "circle")) << circle.error;
  EXPECT_TRUE(Has(circle.out, "fit for a database")) << "the other path is looked at";
  EXPECT_EQ(Run("doctor").exit_code, 2);
  EXPECT_EQ(Run("doctor --system-root " + directory_.File("nothing") + " " + place).exit_code, 2);
  const Result few = Run("--help >/dev/null; ulimit -n 40; " + std::string(BRAIDDB_TOOL) + " doctor " + place);
  EXPECT_TRUE(Has(few.out, "CHANGE limits: open files: 40")) << few.out;
  EXPECT_EQ(few.exit_code, 1);
}

}  // namespace
}  // namespace braiddb::test
