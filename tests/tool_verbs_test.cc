// The verbs of the program braiddb on one database, and its shell.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "tests/support/fork_child.h"
#include "tests/support/tool_fixture.h"
#include "tools/child_job.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class VerbTest : public ToolRunner {
 protected:
  Json JsonOf(const std::string& arguments) {
    const ToolResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << ": " << result.error;
    return Json::parse(result.out, nullptr, false);
  }
};

TEST_F(VerbTest, KeysAreWrittenReadAndDeleted) {
  EXPECT_EQ(Run("put " + path_ + " a 1").exit_code, 2) << "there is no database";
  EXPECT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  EXPECT_EQ(Run("put --hex " + path_ + " 00ff 0x0a").exit_code, 0);
  EXPECT_EQ(Run("put --escape " + path_ + " b%25 %00").exit_code, 0);
  EXPECT_EQ(RunCommand("printf 'from\\nfile' | " + std::string(BRAIDDB_TOOL) + " put --value-file - " + path_ + " c").exit_code,
            0);
  EXPECT_EQ(Run("get " + path_ + " a").out, "1\n");
  EXPECT_EQ(Run("get " + path_ + " c").out, "from\nfile\n");
  EXPECT_EQ(Run("get --hex " + path_ + " 00ff").out, "0a\n");
  EXPECT_EQ(Run("get --json " + path_ + " a c").out,
            "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"c\",\"value\":\"from\\u000afile\"}\n");
  const ToolResult missing = Run("get " + path_ + " a nothing");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(Has(missing.error, "there is no key 'nothing'")) << missing.error;
  EXPECT_EQ(Run("scan --escape " + path_).out, "%00%FF\t%0A\na\t1\nb%25\t%00\nc\tfrom%0Afile\n");
  EXPECT_EQ(Run("scan --keys-only --reverse --limit 2 " + path_).out, "c\nb%\n");
  EXPECT_EQ(Run("scan --keys-only --begin b --end c " + path_).out, "b%\n");
  EXPECT_EQ(Run("scan --keys-only --prefix b " + path_).out, "b%\n");
  EXPECT_EQ(Run("scan --keys-only --prefix b --reverse " + path_).out, "b%\n");
  EXPECT_EQ(Run("scan --json --limit 1 " + path_).out, "{\"key_hex\":\"00ff\",\"value\":\"\\u000a\"}\n");
  EXPECT_EQ(Run("scan --table --limit 2 --hex " + path_).out, "key   value\n00ff  0a\n61    31\n");
  EXPECT_EQ(JsonOf("count --json " + path_)["keys"], 4);
  EXPECT_EQ(Run("count --begin b " + path_).out, "keys: 2\n");
  EXPECT_EQ(JsonOf("approximate-size --json --begin b " + path_)["bytes"], 2 + 1 + 1 + 9);
  EXPECT_EQ(Run("delete " + path_ + " a nothing").exit_code, 0);
  EXPECT_EQ(Run("delete --begin b --end d " + path_).exit_code, 0);
  EXPECT_EQ(Run("scan --keys-only --escape " + path_).out, "%00%FF\n");
  EXPECT_EQ(Run("compact " + path_).exit_code, 0);
  EXPECT_EQ(Run("flush " + path_).exit_code, 0);
  EXPECT_EQ(Run("check " + path_).exit_code, 0);
}

TEST_F(VerbTest, WrongArgumentsAreRefused) {
  EXPECT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  for (const char* wrong : {"get --hex @ zz",
                            "get --escape @ %1",
                            "get --hex --escape @ 61",
                            "export --format csv --hex --escape @",
                            "import --format csv --hex --escape @",
                            "import --format mdb @",
                            "load --hex --escape @",
                            "get @",
                            "put @ a",
                            "put @ a b c",
                            "scan @ a",
                            "delete @",
                            "delete --begin a @",
                            "delete --begin a --end b @ c",
                            "compact --prefix a @",
                            "count --family none @",
                            "create-family @",
                            "drop-family @ none",
                            "drop-family @ default",
                            "create-family --l1 odd @ f",
                            "create-family --comparator odd @ f",
                            "delete --begin b --end a @",
                            "scan --limit x @",
                            "scan --limit -1 @",
                            "scan --limit -18446744073709551615 @",
                            "log --since -1 @",
                            "destroy @"}) {
    std::string arguments = wrong;
    arguments.replace(arguments.find('@'), 1, path_);
    const ToolResult result = Run(arguments + " </dev/null");
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_TRUE(result.error.starts_with("braiddb: ")) << wrong << ": " << result.error;
  }
  EXPECT_EQ(Run("properties " + path_ + " nothing").exit_code, 1);
}

TEST_F(VerbTest, ReadsChangeNoByte) {
  Fill(TinyOptions(2), 300);
  std::map<std::string, std::string> before;
  for (const auto& file : ListFiles(path_)) before[file] = ReadFileOrDie(path_ + "/" + file);
  for (const char* verb : {"get @ x", "scan @", "count @", "approximate-size @", "stat @", "properties @", "options @",
                           "families @", "log @", "export --format csv @"}) {
    std::string arguments = verb;
    arguments.replace(arguments.find('@'), 1, path_);
    EXPECT_LE(Run(arguments).exit_code, 1) << verb;
  }
  EXPECT_EQ(ListFiles(path_).size(), before.size());
  for (const auto& [file, content] : before) EXPECT_TRUE(ReadFileOrDie(path_ + "/" + file) == content) << file;
}

TEST_F(VerbTest, ReadsGoOnBesideAProgram) {
  auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_OK(db->Put({}, "key", "value"));
  EXPECT_EQ(Run("get " + path_ + " key").out, "value\n");
  EXPECT_EQ(Run("scan " + path_).exit_code, 0);
  EXPECT_EQ(Run("count " + path_).out, "keys: 1\n");
  EXPECT_TRUE(Has(Run("readers " + path_).out, "pid"));
  EXPECT_EQ(Run("readers --json " + path_).out, "[]\n");
  const std::string copy = directory_.File("copy");
  EXPECT_EQ(Run("get --secondary " + copy + " " + path_ + " key").out, "value\n");
  ASSERT_OK(db->Put({}, "key", "later"));
  EXPECT_EQ(Run("get --secondary " + copy + " " + path_ + " key").out, "later\n");
  EXPECT_EQ(Run("export --format csv --secondary " + copy + " " + path_).out, "key,later\n");
  const std::string checkpoint = directory_.File("checkpoint");
  const std::string backups = directory_.File("backups");
  const std::string restored = directory_.File("restored");
  EXPECT_EQ(Run("checkpoint --secondary " + copy + " " + path_ + " " + checkpoint).exit_code, 0);
  EXPECT_EQ(Run("get " + checkpoint + " key").out, "later\n");
  EXPECT_EQ(JsonOf("backup --json --secondary " + copy + " " + path_ + " " + backups)["keys"], 1);
  EXPECT_EQ(Run("restore " + backups + " " + restored).exit_code, 0);
  EXPECT_EQ(Run("get " + restored + " key").out, "later\n");
  EXPECT_EQ(Run("put " + path_ + " key value").exit_code, 2);
}

TEST_F(VerbTest, FactsArePrinted) {
  Options options = TinyOptions(2);
  options.l1 = L1Kind::kNvTree;
  {
    auto db = OpenOrFail(options, path_);
    ASSERT_OK(db->Put({}, "a", "1"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Close());
  }
  const Json stat = JsonOf("stat --json " + path_);
  EXPECT_EQ(stat["regions"], 2);
  EXPECT_EQ(stat["last_level"], "nv_tree");
  EXPECT_EQ(stat["last_level_entries"], 1);
  EXPECT_TRUE(Has(Run("stat " + path_).out, "keys_estimate: 1\n"));
  const Json properties = JsonOf("properties --json " + path_);
  EXPECT_EQ(properties["braiddb.estimate-num-keys"], 1);
  EXPECT_TRUE(properties.contains("braiddb.levels"));
  EXPECT_EQ(Run("properties " + path_ + " num-entries-l1 rocksdb.num-entries-l1").out,
            "braiddb.num-entries-l1: 1\nrocksdb.num-entries-l1: 1\n");
  EXPECT_EQ(JsonOf("options --json " + path_)["TableOptions/BraidDB \"default\""]["l1"], "nv_tree");
  EXPECT_TRUE(Has(Run("options " + path_).out, "l1=nv_tree\n"));
}

TEST_F(VerbTest, FamiliesAreCreatedUsedAndDropped) {
  EXPECT_EQ(Run("put --create " + path_ + " a default").exit_code, 0);
  EXPECT_EQ(Run("create-family --l1 nv_tree --comparator reverse-bytewise " + path_ + " other").exit_code, 0);
  EXPECT_EQ(Run("create-family " + path_ + " other").exit_code, 2);
  EXPECT_EQ(Run("put --family other " + path_ + " a 1").exit_code, 0);
  EXPECT_EQ(Run("put --family other " + path_ + " b 2").exit_code, 0);
  EXPECT_EQ(Run("scan --family other " + path_).out, "b\t2\na\t1\n");
  EXPECT_EQ(Run("scan " + path_).out, "a\tdefault\n");
  EXPECT_EQ(Run("families " + path_).out, "default\nother\n");
  EXPECT_TRUE(Has(Run("families --json " + path_).out, "{\"family\":\"other\",\"last_level\":\"nv_tree\","))
      << Run("families --json " + path_).out;
  EXPECT_EQ(Run("drop-family " + path_ + " other").exit_code, 0);
  EXPECT_EQ(Run("families " + path_).out, "default\n");
  EXPECT_EQ(Run("scan --family other " + path_).exit_code, 2);
}

TEST_F(VerbTest, FamiliesWithAnyNameAreInJson) {
  {
    auto db = OpenOrFail(TinyOptions(1), path_);
    std::unique_ptr<ColumnFamilyHandle> family;
    ASSERT_OK(db->CreateColumnFamily({}, "other \xff", &family));
  }
  EXPECT_EQ(JsonOf("stat --json --family \"$(printf 'other \\377')\" " + path_)["column_family_hex"], "6f7468657220ff");
}

// A database that was killed has updates that were not flushed.
TEST_F(VerbTest, LogPrintsUpdates) {
  EXPECT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string copy = directory_.File("killed");
  {
    auto db = OpenOrFail(Options(), path_);
    ASSERT_OK(db->Put({}, "b", "2"));
    ASSERT_OK(db->Delete({}, "a"));
    CopyDatabase(path_, copy);
  }
  const ToolResult result = Run("log --json " + copy);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(Has(result.out, "\"family\":0,\"update\":\"put\",\"key\":\"b\",\"value\":\"2\"}")) << result.out;
  EXPECT_TRUE(Has(result.out, "\"update\":\"delete\",\"key\":\"a\",\"value\":\"\"}")) << result.out;
}

// Beside a program that writes, from before its open until Ctrl-C.
TEST_F(VerbTest, LogFollowsAWriter) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string out = directory_.File("out");
  const pid_t child = ForkChild();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) _exit(98);
    execl(BRAIDDB_TOOL, BRAIDDB_TOOL, "log", "--follow", "--json", path_.c_str(), nullptr);
    _exit(99);
  }
  // Waits until the output has `count` lines.
  const auto wait_for = [&](int count) {
    for (int i = 0; i < 1000; ++i) {
      const std::string text = fs::exists(out) ? ReadFileOrDie(out) : "";
      if (std::count(text.begin(), text.end(), '\n') >= count) return text;
      usleep(20'000);
    }
    return ReadFileOrDie(out);
  };
  int lines = 0;
  for (int open = 0; open < 2; ++open) {
    auto db = OpenOrFail(Options(), path_);
    ASSERT_NE(db, nullptr) << "log --follow must not hold the database";
    ASSERT_OK(db->Put({}, "key" + std::to_string(open), "value"));
    ASSERT_OK(db->Delete({}, "a"));
    const std::string text = wait_for(lines += 2);
    EXPECT_TRUE(Has(text, "\"update\":\"put\",\"key\":\"key" + std::to_string(open) + "\",\"value\":\"value\"}")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), lines) << text;
  }
  EXPECT_EQ(kill(child, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(VerbTest, LogThatCannotBeFollowedIsRefused) {
  EXPECT_EQ(Run("log --follow " + path_).exit_code, 2) << "there is no database";
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  EXPECT_EQ(Run("log --follow --secondary " + directory_.File("copy") + " " + path_).exit_code, 2);
  const ToolResult old = Run("log --follow --since 1 " + path_);
  EXPECT_EQ(old.exit_code, 2);
  EXPECT_TRUE(Has(old.error, "may have been reclaimed")) << old.error;
}

TEST_F(VerbTest, CopiesAreMade) {
  Fill(TinyOptions(2), 200);
  const std::string backups = directory_.File("backups");
  const std::string restored = directory_.File("restored");
  EXPECT_EQ(JsonOf("backup --json --metadata first " + path_ + " " + backups)["keys"], 200);
  EXPECT_EQ(Run("put " + path_ + " more 1").exit_code, 0);
  EXPECT_EQ(JsonOf("backup --json " + path_ + " " + backups)["backup"], 2);
  EXPECT_TRUE(Has(Run("restore --list " + backups).out, "backup 1: 200 keys")) << Run("restore --list " + backups).error;
  EXPECT_EQ(JsonOf("restore --json " + backups + " " + restored)["keys"], 201);
  EXPECT_EQ(Run("restore --id 1 " + backups + " " + restored).exit_code, 0);
  EXPECT_EQ(Run("restore --id 7 " + backups + " " + restored).exit_code, 2);
  EXPECT_EQ(Run("restore " + backups).exit_code, 2);
  EXPECT_EQ(Run("restore --list " + directory_.File("nothing")).exit_code, 2);
  EXPECT_FALSE(fs::exists(directory_.File("nothing")));
  EXPECT_EQ(Run("count " + restored).out, "keys: 200\n");
  const std::string copy = directory_.File("copy");
  EXPECT_EQ(Run("checkpoint " + path_ + " " + copy).exit_code, 0);
  EXPECT_EQ(Run("checkpoint " + path_ + " " + copy).exit_code, 2) << "it is there";
  EXPECT_EQ(Run("count " + copy).out, "keys: 201\n");
  EXPECT_EQ(Run("destroy --yes " + copy).exit_code, 0);
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_EQ(Run("destroy --yes " + copy).exit_code, 2);
}

// A removal that was interrupted is finished. A place that cannot be reached is an error.
TEST_F(VerbTest, DestroyFinishesAndRefuses) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  fs::rename(path_ + "/DATABASE", path_ + "/DESTROYING");
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.is_directory()) fs::remove_all(entry.path());
  }
  EXPECT_EQ(Run("destroy --yes " + path_).exit_code, 0);
  EXPECT_FALSE(fs::exists(path_));
  const std::string loop = directory_.File("loop");
  fs::create_symlink(loop, loop);
  EXPECT_EQ(Run("destroy --yes " + loop).exit_code, 2);
}

TEST_F(VerbTest, PlacesThatCannotBeReadAreErrors) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string loop = directory_.File("loop");
  fs::create_symlink(loop, loop);
  const std::string long_name = directory_.File(std::string(5000, 'x'));
  for (const std::string& arguments : {"put " + path_ + " a --value-file " + directory_.path(), "restore --list " + loop,
                                       "restore --list " + long_name, "restore " + loop + " " + directory_.File("new"),
                                       "checkpoint " + path_ + " " + long_name, "backup " + path_ + " " + long_name}) {
    const ToolResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_TRUE(Has(result.error, "braiddb: ")) << result.error;
  }
  EXPECT_EQ(Run("get " + path_ + " a").out, "1\n");
}

TEST_F(VerbTest, LostOutputIsAnError) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string backups = directory_.File("backups");
  ASSERT_EQ(Run("backup " + path_ + " " + backups).exit_code, 0);
  WriteFileOrDie(directory_.File("script"), "scan\n");
  for (const std::string& arguments : {"check " + path_, "dump " + path_, "get " + path_ + " a", "top --once " + path_,
                                       "restore --list " + backups, std::string("--help"), std::string("get --help"),
                                       "shell " + path_ + " <" + directory_.File("script"), "backup " + path_ + " " + backups}) {
    const ToolResult result = Run(arguments + " >/dev/full");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_TRUE(Has(result.error, "the output cannot be written")) << result.error;
  }
}

// Without --id a restore takes the newest backup, or none.
TEST_F(VerbTest, DamagedNewestBackupIsNotPassedOver) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string backups = directory_.File("backups");
  const std::string restored = directory_.File("restored");
  ASSERT_EQ(Run("backup " + path_ + " " + backups).exit_code, 0);
  ASSERT_EQ(Run("backup " + path_ + " " + backups).exit_code, 0);
  fs::resize_file(backups + "/2.backup", 10);
  const ToolResult result = Run("restore " + backups + " " + restored);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(Has(result.error, "the newest backup, 2, is damaged")) << result.error;
  EXPECT_FALSE(fs::exists(restored));
  EXPECT_EQ(Run("restore --id 0 " + backups + " " + restored).exit_code, 2);
  EXPECT_EQ(Run("restore --id 1 " + backups + " " + restored).exit_code, 0);
}

// A backup and its database must not lie in one another, and a directory of other things gets no lock file.
TEST_F(VerbTest, WrongPlacesOfBackupsAreRefused) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string backups = directory_.File("backups");
  ASSERT_EQ(Run("backup " + path_ + " " + backups).exit_code, 0);
  EXPECT_EQ(Run("backup " + path_ + " " + path_).exit_code, 2);
  EXPECT_EQ(Run("backup " + path_ + " " + path_ + "/backups").exit_code, 2);
  EXPECT_EQ(Run("restore " + backups + " " + backups).exit_code, 2);
  EXPECT_EQ(Run("restore " + backups + " " + directory_.path()).exit_code, 2);
  EXPECT_EQ(Run("restore --list " + path_).exit_code, 2);
  EXPECT_EQ(Run("restore " + path_ + " " + directory_.File("new")).exit_code, 2);
  EXPECT_FALSE(fs::exists(path_ + "/BACKUP_LOCK"));
  EXPECT_TRUE(Has(Run("restore --list " + backups).out, "backup 1: 1 keys"));
}

TEST_F(VerbTest, TheNumberOfKeysIsANumberInJson) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  EXPECT_TRUE(JsonOf("families --json " + path_)["keys_estimate"].is_number());
}

TEST_F(VerbTest, AShellWithoutReadableInputFails) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const ToolResult result = Run("shell " + path_ + " <" + directory_.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(Has(result.error, "cannot be read")) << result.error;
}

// Names and paths may have any bytes.
TEST_F(VerbTest, JsonHasOtherBytesInHex) {
  const std::string odd = path_ + "\xff";
  ASSERT_EQ(Run("put --create '" + odd + "' a 1").exit_code, 0);
  ASSERT_EQ(Run("create-family '" + odd + "' '\xfe'").exit_code, 0);
  ASSERT_EQ(Run("create-family '" + odd + "' '\xfd'").exit_code, 0);
  const Json options = JsonOf("options --json '" + odd + "'");
  int families = 0;
  for (const auto& [section, values] : options.items()) families += Has(section, "_hex") ? 1 : 0;
  EXPECT_EQ(families, 2 * 2) << options;  // two sections for each
}

TEST(FactsTest, TextsThatAreNotUtf8AreInHexAtAnyDepth) {
  using nlohmann::ordered_json;
  const ordered_json json{{"a", "\xff"}, {"b", {{{"c", "\xfe"}, {"d", "text"}}, "\xfd"}}, {"\xfc", 1}};
  EXPECT_EQ(tools::WithHexFields(json).dump(), R"({"a_hex":"ff","b":[{"c_hex":"fe","d":"text"},{"hex":"fd"}],"fc_hex":1})");
}

TEST_F(VerbTest, EmptyPathsAreRefused) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  for (const char* call : {"get '' a", "put '' a 2", "check ''", "destroy --yes ''", "stat ''", "backup '' b", "bench ''",
                           "checkpoint . ''", "restore b ''", "repair . ''"}) {
    const ToolResult result = RunCommand("cd " + path_ + "; " + BRAIDDB_TOOL + " " + call);
    EXPECT_EQ(result.exit_code, 2) << call << result.out;
    EXPECT_TRUE(Has(result.error, "empty")) << call << result.error;
  }
  std::unique_ptr<DB> db;
  EXPECT_TRUE(DB::Open({}, "", &db).IsInvalidArgument());
  EXPECT_TRUE(DB::OpenForReadOnly({}, "", &db).IsInvalidArgument());
  EXPECT_TRUE(DB::Destroy({}, "").IsInvalidArgument());
  CheckReport report;
  EXPECT_TRUE(CheckDatabase({}, "", &report).IsInvalidArgument());
  RepairReport repaired;
  EXPECT_TRUE(RepairDatabase({}, "", directory_.File("new"), &repaired).IsInvalidArgument());
  EXPECT_TRUE(RepairDatabase({}, path_, "", &repaired).IsInvalidArgument());
}

// Files of a database must not get the descriptors of the standard streams.
TEST_F(VerbTest, ClosedOutputIsNotAFileOfTheDatabase) {
  ASSERT_EQ(Run("put --create " + path_ + " secret topsecret").exit_code, 0);
  const ToolResult result = RunCommand("printf 'get secret\n' | " + std::string(BRAIDDB_TOOL) + " shell " + path_ + " >&-");
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_EQ(ReadFileOrDie(path_ + "/LOCK"), "");
  (void)RunCommand("printf 'bogus\n' | " + std::string(BRAIDDB_TOOL) + " shell " + path_ + " >&- 2>&-; true");
  EXPECT_FALSE(Has(ReadFileOrDie(path_ + "/LOG"), "bogus"));
}

// Whoever makes a database chooses the names of its families. TAB must not run them.
TEST_F(VerbTest, CompletionRunsNothingOfTheDatabase) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string trap = directory_.File("trap");
  ASSERT_EQ(Run("create-family " + path_ + " '$(touch " + trap + ")'").exit_code, 0);
  ASSERT_EQ(Run("create-family " + path_ + " 'two words'").exit_code, 0);
  const std::string out = RunCommand("bash -c 'PATH=\"$(dirname " + std::string(BRAIDDB_TOOL) + "):$PATH\"; . " + BRAIDDB_SOURCE +
                                     "/tools/completion/braiddb; COMP_WORDS=(braiddb scan " + path_ +
                                     " --family \"\"); COMP_CWORD=4; _braiddb; printf \"%s\\n\" \"${COMPREPLY[@]}\"'")
                              .out;
  EXPECT_TRUE(Has(out, "two words\n")) << out;
  EXPECT_TRUE(Has(out, "$(touch")) << out;
  EXPECT_FALSE(fs::exists(trap)) << out;
}

TEST_F(VerbTest, BenchTakesNoFlagForItsDirectory) {
  const ToolResult result = RunCommand("cd " + directory_.path() + "; " + BRAIDDB_TOOL + " bench --benchmarks=fillseq --num=10");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(Has(result.error, "the directory comes first")) << result.error;
  EXPECT_FALSE(fs::exists(directory_.File("--benchmarks=fillseq")));
}

TEST_F(VerbTest, BenchUsesTheNewDirectory) {
  if (!fs::exists(fs::path(BRAIDDB_TOOL).parent_path() / "db_bench")) GTEST_SKIP() << "this build has no db_bench";
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string made = directory_.File("new");
  EXPECT_EQ(Run("bench " + made + " --db=" + path_ + " --num=10 --benchmarks=fillseq").exit_code, 0);
  EXPECT_TRUE(fs::exists(made + "/DATABASE"));
  EXPECT_EQ(Run("get " + path_ + " a").out, "1\n");
}

// The copy is complete, and only its report is lost.
TEST_F(VerbTest, CopiesWhoseReaderIsGoneAreThere) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string copy = directory_.File("copy");
  // The reader has gone before the copy begins.
  const ToolResult result = RunCommand("bash -c '(sleep 0.2; exec " + std::string(BRAIDDB_TOOL) + " checkpoint " + path_ + " " +
                                       copy + "; ) | true; exit ${PIPESTATUS[0]}'");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(Has(result.error, "the output cannot be written")) << result.error;
  EXPECT_FALSE(Has(result.error, "nothing is left")) << result.error;
  EXPECT_EQ(Run("get " + copy + " a").out, "1\n") << result.error;
}

TEST_F(VerbTest, ControlCharactersAreEscaped) {
  ASSERT_EQ(Run("put --create " + path_ + " a 1").exit_code, 0);
  const std::string backups = directory_.File("backups");
  ASSERT_EQ(Run("backup --metadata \"$(printf 'x\\033[2J')\" " + path_ + " " + backups).exit_code, 0);
  const std::string list = Run("restore --list " + backups).out;
  EXPECT_TRUE(Has(list, "x%1B[2J\n")) << list;
  const std::string error = Run("get " + path_ + " \"$(printf '\\033[2J')\"").error;
  EXPECT_TRUE(Has(error, "there is no key '%1B[2J'")) << error;
}

TEST_F(VerbTest, ProgressHasRateAndTimeLeft) {
  using tools::Progress;
  EXPECT_EQ(Progress::Text("importing", Progress::Unit::kEntries, 1000, 5000, 2),
            "importing: 1000 of about 5000, 500 per second, 8 s left");
  EXPECT_EQ(Progress::Text("copying", Progress::Unit::kBytes, 2048, 0, 2), "copying: 2.0 KiB, 1.0 KiB per second");
  EXPECT_EQ(Progress::Text("copying", Progress::Unit::kBytes, 0, 1024, 2),
            "copying: 0 bytes of about 1.0 KiB, 0 bytes per second");
}

// Each pass has its name, rate and time left. The first second shows nothing.
TEST_F(VerbTest, PassesHaveTheirProgress) {
  using std::chrono::milliseconds;
  using tools::PassProgress;
  const PassProgress::Clock::time_point start;
  PassProgress progress({"reading", "sorting"}, start);
  EXPECT_EQ(progress.Line(0, 4096, start), std::nullopt);
  EXPECT_EQ(progress.Line(1024, 4096, start + milliseconds(999)), std::nullopt);
  EXPECT_EQ(progress.Line(2048, 4096, start + milliseconds(2000)),
            "reading: 2.0 KiB of about 4.0 KiB, 1.0 KiB per second, 2 s left");
  EXPECT_EQ(progress.Line(3072, 4096, start + milliseconds(2100)), std::nullopt);
  EXPECT_EQ(progress.Line(0, 4096, start + milliseconds(3000)), "sorting: 0 bytes of about 4.0 KiB, 0 bytes per second");
  EXPECT_EQ(progress.Line(1024, 4096, start + milliseconds(4000)),
            "sorting: 1.0 KiB of about 4.0 KiB, 1.0 KiB per second, 3 s left");
  EXPECT_EQ(progress.Line(0, 4096, start + milliseconds(5000)), "sorting: 0 bytes of about 4.0 KiB, 0 bytes per second");
}

// The job's child would never end.
TEST_F(VerbTest, StoppedJobsAreCleaned) {
  const std::string file = directory_.File("half");
  bool is_signalled = false;
  const tools::ChildJob job{"testing",
                            [&]() -> int {
                              WriteFileOrDie(file, "half");
                              for (;;) pause();
                            },
                            [&] { return fs::remove(file) ? Status::OK() : Status::NotFound(file); },
                            [&]() -> uint64_t {
                              if (fs::exists(file) && !is_signalled) is_signalled = raise(SIGINT) == 0;
                              return 0;
                            }};
  EXPECT_EQ(job.Run(), 2);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ((tools::ChildJob{"testing", [] { return 1; },
                             [] {
                               ADD_FAILURE();
                               return Status::OK();
                             },
                             [] { return uint64_t{0}; }}
                 .Run()),
            1);
}

// Sends SIGINT when a copy has begun: it is there complete or not at all, and the database that a restore replaces stays.
TEST_F(VerbTest, StoppedCopiesLeaveNothing) {
  {
    Options options;
    options.create_if_missing = true;
    auto db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < 2000; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 10'000)));
    ASSERT_OK(db->Close());
  }
  const std::string backups = directory_.File("backups");
  const std::string copy = directory_.File("copy");
  const std::string restored = directory_.File("restored");
  ASSERT_EQ(Run("backup " + path_ + " " + backups).exit_code, 0);
  ASSERT_EQ(Run("put --create " + restored + " old 1").exit_code, 0);
  // {arguments, what appears when the copy has begun}
  const std::string first = directory_.File("first");
  const std::pair<std::string, std::string> copies[] = {{"backup " + path_ + " " + backups, backups + "/2.backup.tmp"},
                                                        {"backup " + path_ + " " + first, first + "/1.backup.tmp"},
                                                        {"checkpoint " + path_ + " " + copy, copy + ".tmp"},
                                                        {"restore " + backups + " " + restored, restored + ".tmp"}};
  const char* signal = "INT";
  for (const auto& [arguments, sign] : copies) {
    // Twice, as timeout(1) signals a process and its group.
    const ToolResult result = RunCommand("(exec " + std::string(BRAIDDB_TOOL) + " " + arguments +
                                         ") & child=$!; while kill -0 $child 2>/dev/null && [ ! -e " + sign +
                                         " ]; do :; done; kill -" + signal + " $child $child; wait $child");
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << arguments << result.exit_code << result.error;
    EXPECT_FALSE(fs::exists(sign)) << arguments;
    EXPECT_FALSE(fs::exists(restored + ".old")) << arguments;
    signal = "HUP";
  }
  EXPECT_EQ(Run("restore --list " + backups).exit_code, 0);
  EXPECT_TRUE(!fs::exists(first) || fs::exists(first + "/1.backup")) << "the lock file of no backup";
  if (fs::exists(copy)) {
    EXPECT_EQ(Run("count " + copy).out, "keys: 2000\n");
  }
  const std::string count = Run("count " + restored).out;
  EXPECT_TRUE(count == "keys: 2000\n" || count == "keys: 1\n") << count;
}

// The table of verbs that the help prints is the one that the manual page and the completion have.
TEST_F(VerbTest, HelpManualAndCompletionAgree) {
  const std::string manual = ReadFileOrDie(std::string(BRAIDDB_SOURCE) + "/docs/man/braiddb.1");
  const std::string page = ReadFileOrDie(std::string(BRAIDDB_SOURCE) + "/docs/TOOLS.md");
  std::istringstream help(Run("--help").out);
  const auto complete = [this](const std::string& words, int position) {
    return RunCommand("bash -c 'PATH=\"$(dirname " + std::string(BRAIDDB_TOOL) + "):$PATH\"; . " + BRAIDDB_SOURCE +
                      "/tools/completion/braiddb; COMP_WORDS=(braiddb " + words + "); COMP_CWORD=" + std::to_string(position) +
                      "; _braiddb; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  };
  const std::string completed_verbs = "\n" + complete("\"\"", 1).out;
  int verbs = 0;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  braiddb ")) continue;
    std::istringstream words(line.substr(10));
    std::string verb;
    words >> verb;
    ++verbs;
    const ToolResult result = Run(verb + " --help");
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_TRUE(result.out.starts_with("usage: braiddb " + verb)) << result.out;
    std::string escaped = verb;
    for (size_t at = 0; (at = escaped.find('-', at)) != std::string::npos; at += 2) escaped.replace(at, 1, "\\-");
    EXPECT_TRUE(Has(manual, "\n.B " + escaped + "\n")) << verb << " is not in the manual page";
    EXPECT_TRUE(Has(page, "`" + verb + "`") || Has(page, "`" + verb + " ")) << verb << " is not in docs/TOOLS.md";
    EXPECT_TRUE(Has(completed_verbs, "\n" + verb + "\n")) << verb << " is not completed";
    const std::string completed = "\n" + complete(verb + " --", 2).out;
    std::istringstream options(result.out);
    for (std::string option; std::getline(options, option);) {
      if (!option.starts_with("  --")) continue;
      option = option.substr(2, option.find(' ', 2) - 2);
      EXPECT_TRUE(Has(completed, "\n" + option + "\n")) << verb << " " << option << " is not completed";
      for (size_t at = 0; (at = option.find('-', at)) != std::string::npos; at += 2) option.replace(at, 1, "\\-");
      EXPECT_TRUE(Has(manual, option)) << verb << " " << option << " is not in the manual page";
    }
  }
  EXPECT_GE(verbs, 28);
}

}  // namespace
}  // namespace braiddb::test
