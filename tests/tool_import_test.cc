// braiddb import, export and load: formats against the tools of other stores, broken records, stopped imports.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "braiddb/options_file.h"
#include "tests/support/fork_child.h"
#include "tests/support/hostile_data.h"
#include "tests/support/tool_fixture.h"
#include "tools/formats/line_reader.h"
#include "tools/importer.h"
#include "tools/interrupt.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;
using Data = std::map<std::string, std::string>;
using Json = nlohmann::json;

class ImportTest : public ToolRunner {
 protected:
  void Write(const std::map<std::string, Data>& families) {
    auto db = OpenOrFail(TinyOptions(1), path_);
    for (const auto& [name, data] : families) {
      std::unique_ptr<ColumnFamilyHandle> handle;
      if (name != "default") {
        ASSERT_OK(db->CreateColumnFamily({}, name, &handle));
      }
      for (const auto& [key, value] : data) ASSERT_OK(db->Put({}, handle ? handle.get() : db->DefaultColumnFamily(), key, value));
    }
    ASSERT_OK(db->Close());
  }
  static std::map<std::string, Data> Read(const std::string& path) {
    std::map<std::string, Data> families;
    tools::Session session;
    EXPECT_OK(session.Open(path, {}));
    for (const auto& family : session.families) {
      const auto iterator = session.db->NewIterator({}, family.get());
      Data& data = families[family->GetName()];
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) data[std::string(iterator->key())] = iterator->value();
    }
    return families;
  }
  // LMDB takes keys of 1 to 511 bytes.
  static Data LmdbData() {
    Data data = HostileData();
    std::erase_if(data, [](const auto& entry) { return entry.first.empty() || entry.first.size() > 511; });
    return data;
  }
  std::string file_ = directory_.File("file");
  std::string target_ = directory_.File("target");
};

TEST_F(ImportTest, EveryFormatGoesRound) {
  const std::map<std::string, Data> one{{"default", HostileData()}};
  Write(one);
  for (const std::string format :
       {"csv", "tsv", "jsonl", "mdb", "db", "ldb", "csv --hex", "csv --escape", "tsv --hex", "tsv --escape"}) {
    SCOPED_TRACE(format);
    fs::remove(file_);
    fs::remove_all(target_);
    const ToolResult exported = Run("export --format " + format + " " + path_ + " " + file_);
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    const ToolResult imported = Run("import --json --format " + format + " " + target_ + " " + file_);
    ASSERT_EQ(imported.exit_code, 0) << imported.error;
    const Json report = Json::parse(imported.out, nullptr, false);
    EXPECT_EQ(report["records"], one.at("default").size());
    EXPECT_EQ(report["sorted"], true);
    EXPECT_EQ(report["complete"], true);
    EXPECT_TRUE(Read(target_) == one);
    EXPECT_FALSE(fs::exists(target_ + ".import"));
  }
}

// A file whose name an import uses for its state.
TEST_F(ImportTest, FilesOfOthersStay) {
  const std::string state = target_ + ".import";
  WriteFileOrDie(state, "k1,v1\nk2,v2\n");
  WriteFileOrDie(file_, "k1,v1\nbroken\n");
  const ToolResult own = Run("import --format csv " + target_ + " " + state);
  EXPECT_EQ(own.exit_code, 2);
  EXPECT_TRUE(Has(own.error, "in the way")) << own.error;
  EXPECT_EQ(Run("import --format csv " + target_ + " /dev/null").exit_code, 0);
  EXPECT_EQ(Run("import --format csv --skip-errors " + state + " " + target_ + " " + file_).exit_code, 2);
  EXPECT_EQ(Run("put " + target_ + " a 1").exit_code, 0);
  EXPECT_EQ(Run("destroy --yes " + target_).exit_code, 0);
  EXPECT_EQ(ReadFileOrDie(state), "k1,v1\nk2,v2\n");
}

// The name of a family is a part of the record.
TEST_F(ImportTest, LongNamesOfFamiliesAreBrokenRecords) {
  const std::string skipped = directory_.File("skipped");
  WriteFileOrDie(file_, "{\"key\":\"a\",\"value\":\"1\"}\n{\"family\":\"" + std::string(300, 'f') +
                            "\",\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"c\",\"value\":\"3\"}\n");
  const ToolResult stopped = Run("import --format jsonl " + target_ + " " + file_);
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_TRUE(Has(stopped.error, "line 2")) << stopped.error;
  const ToolResult result = Run("import --format jsonl --skip-errors " + skipped + " " + target_ + " " + file_);
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_EQ(Run("scan --keys-only " + target_).out, "a\nc\n");
  EXPECT_TRUE(Has(ReadFileOrDie(skipped), "\"b\"")) << ReadFileOrDie(skipped);
}

TEST_F(ImportTest, ThePipesFormatIsGuessedByItsFirstBytes) {
  for (const Data& data : {Data{{"a", "1"}, {"b", "2"}}, Data{{std::string(5000, 'k'), std::string(400'000, 'v')}}}) {
    fs::remove_all(path_);
    Write({{"default", data}});
    for (const std::string format : {"jsonl", "mdb", "ldb"}) {
      SCOPED_TRACE(format);
      fs::remove_all(target_);
      const ToolResult piped = RunCommand(std::string(BRAIDDB_TOOL) + " export --format " + format + " " + path_ + " | " +
                                          BRAIDDB_TOOL + " import " + target_);
      EXPECT_EQ(piped.exit_code, 0) << piped.error;
      EXPECT_TRUE(Read(target_)["default"] == data);
    }
  }
  for (const std::string text : {"", "a,1", "a,1\nb,2\n"}) {
    const ToolResult unknown = RunCommand("printf '" + text + "' | " + BRAIDDB_TOOL + " import " + directory_.File("unknown"));
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_TRUE(Has(unknown.error, "standard input: the format is not known; choose it by --format")) << unknown.error;
    EXPECT_FALSE(fs::exists(directory_.File("unknown")));
  }
}

TEST_F(ImportTest, FamiliesAreKept) {
  const std::map<std::string, Data> families{{"default", HostileData()}, {"other", {{"a", "1"}}}, {"empty", {}}};
  Write(families);
  for (const std::string format : {"jsonl", "mdb", "db"}) {
    SCOPED_TRACE(format);
    fs::remove_all(target_);
    const ToolResult piped = RunCommand(std::string(BRAIDDB_TOOL) + " export --format " + format + " " + path_ + " | " +
                                        BRAIDDB_TOOL + " import --format " + format + " " + target_);
    EXPECT_EQ(piped.exit_code, 0) << piped.error;
    std::map<std::string, Data> read = Read(target_);
    read["empty"];  // a family without keys has no record
    EXPECT_TRUE(read == families);
  }
  const ToolResult csv = Run("export --format csv " + path_);
  EXPECT_EQ(csv.exit_code, 2);
  EXPECT_TRUE(Has(csv.error, "--family")) << csv.error;
  EXPECT_EQ(Run("export --format csv --family other " + path_).out, "a,1\n");
  fs::remove_all(target_);
  EXPECT_EQ(RunCommand("echo b,2 | " + std::string(BRAIDDB_TOOL) + " import --format csv --family new " + target_).exit_code, 0);
  EXPECT_EQ(Read(target_)["new"], (Data{{"b", "2"}}));
}

TEST_F(ImportTest, ExportsTouchNoOtherFile) {
  Write({{"default", {{"a", "1"}}}});
  const std::string other = directory_.File("other");
  WriteFileOrDie(other, "other");
  WriteFileOrDie(file_ + ".tmp", "of another program");
  fs::create_symlink(other, file_ + ".0.tmp");
  EXPECT_EQ(Run("export --format csv " + path_ + " " + file_).exit_code, 0);
  EXPECT_EQ(ReadFileOrDie(file_), "a,1\n");
  EXPECT_EQ(ReadFileOrDie(other), "other");
  EXPECT_EQ(ReadFileOrDie(file_ + ".tmp"), "of another program");
  EXPECT_TRUE(fs::is_symlink(file_ + ".0.tmp"));
  EXPECT_FALSE(fs::exists(file_ + ".1.tmp"));
  // Only the rename sees a link to a file that does not exist.
  const std::string link = directory_.File("link");
  fs::create_symlink(directory_.File("nowhere"), link);
  EXPECT_EQ(Run("export --format csv " + path_ + " " + link).exit_code, 2);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::exists(link + ".0.tmp"));
}

TEST_F(ImportTest, DumpsRefuseNewlinesInNamesOfFamilies) {
  Write({{"default", {}}, {"a\nb", {{"k", "v"}}}});
  for (const std::string format : {"mdb", "db"}) {
    for (const std::string family : {"", "--family 'a\nb' "}) {
      const ToolResult refused = Run("export --format " + format + " " + family + path_);
      EXPECT_EQ(refused.exit_code, 2) << family;
      EXPECT_TRUE(Has(refused.error, "no place for a newline")) << refused.error;
    }
    EXPECT_EQ(Run("export --format " + format + " --family default " + path_).exit_code, 0);
  }
}

TEST_F(ImportTest, ADirectoryIsNoInput) {
  fs::create_directory(file_);
  for (const std::string format : {"", "--format csv "}) {
    const ToolResult refused = Run("import " + format + target_ + " " + file_);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.error.find("is a directory"), std::string::npos) << refused.error;
    EXPECT_FALSE(fs::exists(target_));
  }
}

// A database of RocksDB or LevelDB, which such a file shows, is neither written to nor removed.
TEST_F(ImportTest, DirectoriesOfOtherStoresAreLeftAlone) {
  fs::create_directory(target_);
  std::ofstream(target_ + "/CURRENT") << "MANIFEST-000001\n";
  std::ofstream(target_ + "/LOG") << "its log\n";
  EXPECT_EQ(Run("put --create " + target_ + " key value").exit_code, 2);
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(TinyOptions(1), target_, &db), kInvalidArgument);
  (void)Run("destroy --yes " + target_);
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(target_)) names.insert(file.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"CURRENT", "LOG"}));
  EXPECT_EQ(ReadFileOrDie(target_ + "/LOG"), "its log\n");
}

TEST_F(ImportTest, BrokenRecordsStopOrAreSkipped) {
  WriteFileOrDie(file_, "a,1\nb,2\nbroken\nc,3\nalso,broken,!\nd,4\n");
  const ToolResult stopped = Run("import --format csv " + target_ + " " + file_);
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_TRUE(Has(stopped.error, file_ + ": line 3: there is no comma")) << stopped.error;
  EXPECT_EQ(Read(target_)["default"], (Data{{"a", "1"}, {"b", "2"}}));
  // The corrected file goes on at that line: an update behind the import of its start stays.
  ASSERT_EQ(Run("put " + target_ + " a later").exit_code, 0);
  WriteFileOrDie(file_, "a,1\nb,2\nfixed,!\nc,3\nalso,broken,!\nd,4\n");
  const std::string skipped = directory_.File("skipped");
  const ToolResult resumed = Run("import --format csv --resume --skip-errors " + skipped + " " + target_ + " " + file_);
  EXPECT_EQ(resumed.exit_code, 1) << resumed.error;
  EXPECT_TRUE(Has(resumed.error, file_ + ": line 5: there are more than two fields")) << resumed.error;
  EXPECT_EQ(ReadFileOrDie(skipped), "also,broken,!\n");
  EXPECT_EQ(Read(target_)["default"], (Data{{"a", "later"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"fixed", "!"}}));
  EXPECT_FALSE(fs::exists(target_ + ".import"));
}

TEST_F(ImportTest, TheInputTakesNoBrokenRecords) {
  WriteFileOrDie(file_, "broken\n");
  const std::string link = directory_.File("link");
  fs::create_symlink(file_, link);
  const std::string import = "import --format csv --skip-errors " + link + " " + target_;
  for (const std::string& input : {" " + file_, " <" + file_}) {
    const ToolResult refused = Run(import + input);
    EXPECT_EQ(refused.exit_code, 2) << input;
    EXPECT_TRUE(Has(refused.error, "is the input")) << refused.error;
  }
  EXPECT_EQ(ReadFileOrDie(file_), "broken\n");
}

TEST_F(ImportTest, OnlyTheSameFileIsResumed) {
  WriteFileOrDie(file_, "a,1\nb,2\nbroken\n");
  EXPECT_EQ(Run("import --format csv --resume " + target_ + " " + file_).exit_code, 2) << "nothing was stopped";
  EXPECT_EQ(Run("import --format csv " + target_ + " " + file_).exit_code, 2);
  const std::string other = directory_.File("other");
  WriteFileOrDie(other, "a,1\nb,2\nc,3\n");
  EXPECT_EQ(Run("import --format csv --resume " + target_ + " " + other).exit_code, 2);
  WriteFileOrDie(file_, "a,1\nb,3\nc,3\n");
  const ToolResult changed = Run("import --format csv --resume " + target_ + " " + file_);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_TRUE(Has(changed.error, "has changed")) << changed.error;
  WriteFileOrDie(file_, "a,1\n");
  EXPECT_EQ(Run("import --format csv --resume " + target_ + " " + file_).exit_code, 2) << "shorter";
  EXPECT_EQ(RunCommand("cat " + file_ + " | " + BRAIDDB_TOOL + " import --format csv --resume " + target_).exit_code, 2);
  WriteFileOrDie(target_ + ".import", "{}");
  EXPECT_EQ(Run("import --format csv --resume " + target_ + " " + file_).exit_code, 2);
  EXPECT_EQ(Run("import --format csv " + target_ + " " + file_).exit_code, 2) << "no import wrote this";
  fs::remove(target_ + ".import");
  EXPECT_EQ(Run("import --format csv " + target_ + " " + file_).exit_code, 0);
}

// The state of a database that was replaced would skip the first records.
TEST_F(ImportTest, OnlyTheSameDatabaseIsResumed) {
  const std::string state = target_ + ".import";
  const std::string import = "import --format csv " + target_ + " " + file_;
  const std::string resume = "import --format csv --resume " + target_ + " " + file_;
  WriteFileOrDie(file_, "a,1\nb,2\nbroken\n");
  ASSERT_EQ(Run(import).exit_code, 2);
  const std::string saved = ReadFileOrDie(state);
  ASSERT_EQ(Run("destroy --yes " + target_).exit_code, 0);
  EXPECT_FALSE(fs::exists(state));
  EXPECT_EQ(Run(resume).exit_code, 2);
  EXPECT_FALSE(fs::exists(target_)) << "--resume creates no database";
  ASSERT_EQ(Run("put --create " + target_ + " other 1").exit_code, 0);
  WriteFileOrDie(state, saved);
  const ToolResult replaced = Run(resume);
  EXPECT_EQ(replaced.exit_code, 2);
  EXPECT_TRUE(Has(replaced.error, "another database")) << replaced.error;
  const std::string backups = directory_.File("backups");
  ASSERT_EQ(Run("backup " + target_ + " " + backups).exit_code, 0);
  ASSERT_EQ(Run("restore " + backups + " " + target_).exit_code, 0);
  EXPECT_FALSE(fs::exists(state));
  // A pipe saves no state, and takes away the one of the import before it.
  ASSERT_EQ(Run(import).exit_code, 2);
  ASSERT_TRUE(fs::exists(state));
  EXPECT_EQ(RunCommand("echo broken | " + std::string(BRAIDDB_TOOL) + " import --format csv " + target_).exit_code, 2);
  EXPECT_FALSE(fs::exists(state));
}

TEST_F(ImportTest, ARecordThatCannotBeWrittenIsReadAgain) {
  const auto text = [](const std::string& family) {
    return "{\"key\":\"a\",\"value\":\"1\"}\n{\"family\":\"" + family +
           "\",\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"c\",\"value\":\"3\"}\n";
  };
  WriteFileOrDie(file_, text(std::string(70'000, 'f')));
  EXPECT_EQ(Run("import --format jsonl " + target_ + " " + file_).exit_code, 2);
  EXPECT_EQ(Run("import --format jsonl --resume " + target_ + " " + file_).exit_code, 2);
  WriteFileOrDie(file_, text("short"));
  EXPECT_EQ(Run("import --format jsonl --resume " + target_ + " " + file_).exit_code, 0);
  EXPECT_TRUE(Read(target_) == (std::map<std::string, Data>{{"default", {{"a", "1"}, {"c", "3"}}}, {"short", {{"b", "2"}}}}));
}

TEST_F(ImportTest, ADumpThatEndedEarlyGoesOn) {
  const std::string begin = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n 6b31\n 7631\n 6b32\n";
  const std::string import = "import --format mdb " + target_ + " " + file_;
  WriteFileOrDie(file_, begin);
  EXPECT_EQ(Run(import).exit_code, 2);
  WriteFileOrDie(file_, begin + " 76");
  EXPECT_EQ(Run(import + " --resume").exit_code, 2);
  WriteFileOrDie(file_, begin + " 7632\n 6b33\n 7633\nDATA=END\n");
  EXPECT_EQ(Run(import + " --resume").exit_code, 0);
  EXPECT_EQ(Read(target_)["default"], (Data{{"k1", "v1"}, {"k2", "v2"}, {"k3", "v3"}}));
}

TEST_F(ImportTest, OnlyTheSameArgumentsAreResumed) {
  WriteFileOrDie(file_, "61,31\nbroken\n");
  ASSERT_EQ(Run("import --format csv " + target_ + " " + file_).exit_code, 2);
  for (const std::string other : {"--format tsv", "--format csv --hex", "--format csv --family f"}) {
    const ToolResult refused = Run("import --resume " + other + " " + target_ + " " + file_);
    EXPECT_EQ(refused.exit_code, 2) << other;
    EXPECT_TRUE(Has(refused.error, "the stopped import had another format")) << refused.error;
  }
  WriteFileOrDie(file_, "61,31\n62,32\n");
  EXPECT_EQ(Run("import --resume --format csv " + target_ + " " + file_).exit_code, 0);
}

TEST_F(ImportTest, TheLastOfEqualKeysWins) {
  std::string text;
  Data expected;
  for (int i = 0; i < 60'000; ++i) {
    const std::string key = NumberedKey(i < 30'000 ? i : (i * 7) % 30'000);
    expected[key] = std::to_string(i) + std::string(80, 'v');
    text += key + "," + expected[key] + "\n";
  }
  WriteFileOrDie(file_, text);
  const ToolResult result = Run("import --json --format csv " + target_ + " " + file_);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(Has(result.out, "\"sorted\":false")) << result.out;
  EXPECT_TRUE(Read(target_)["default"] == expected);
}

// A database that is open for reading refuses all writes, as a full disk does.
TEST_F(ImportTest, RecordsThatWereNotWrittenAreNotCounted) {
  Write({{"default", {}}});
  tools::Session session;
  ASSERT_OK(session.Open(path_, {}));
  const auto reader =
      tools::MakeCsvReader(std::make_unique<tools::LineInput>(std::string_view("a,1\nb,2\n")), tools::ByteForm::kRaw);
  std::vector<std::string> states;
  tools::ImportJob job;
  job.session = &session;
  job.reader = reader.get();
  job.save_state = [&states](const std::string& saved) { return states.push_back(saved), Status::OK(); };
  tools::ImportReport report;
  EXPECT_FALSE(tools::Import(job, &report).ok());
  EXPECT_EQ(report.records, 0u);
  EXPECT_EQ(states, std::vector<std::string>{"0 0\n"});
}

// The reader interrupts the import of its own process.
TEST_F(ImportTest, InterruptedImportsGoOn) {
  tools::Session session;
  tools::OpenSettings settings;
  settings.access = tools::Access::kCreate;
  ASSERT_OK(session.Open(target_, settings));
  class Interrupting final : public tools::RecordReader {
   public:
    std::string Position() const override { return std::to_string(at_); }
    uint64_t Done() const override { return at_; }
    std::string SaveState() const override { return std::to_string(at_); }
    Status RestoreState(std::string_view state) override { return at_ = std::stoul(std::string(state)), Status::OK(); }
    uint64_t interrupt_at_ = 0;

   protected:
    Result ReadNext(tools::Record* record) override {
      if (at_ == 50'000) return Result::kEnd;
      if (at_ == interrupt_at_) raise(SIGINT);
      record->family.clear();
      record->key = NumberedKey(static_cast<int>(at_++));
      record->value = std::string(100, 'v');
      return Result::kRecord;
    }

   private:
    uint64_t at_ = 0;
  };
  std::string state;
  tools::ImportJob job;
  job.session = &session;
  job.threads = 2;
  job.save_state = [&state](const std::string& saved) { return state = saved, Status::OK(); };
  tools::ImportReport report;
  {
    const tools::InterruptGuard guard;
    Interrupting reader;
    reader.interrupt_at_ = 30'000;
    job.reader = &reader;
    ASSERT_OK(tools::Import(job, &report));
  }
  EXPECT_FALSE(report.is_complete);
  EXPECT_EQ(state, std::to_string(report.records));
  EXPECT_EQ(report.records, 30'001u);
  {
    const tools::InterruptGuard guard;
    Interrupting reader;
    reader.interrupt_at_ = ~uint64_t{0};
    ASSERT_OK(reader.RestoreState(state));
    job.reader = &reader;
    ASSERT_OK(tools::Import(job, &report));
  }
  EXPECT_TRUE(report.is_complete);
  EXPECT_EQ(report.records, 50'000u - 30'001u);
  ASSERT_OK(session.Close());
  EXPECT_EQ(Read(target_)["default"].size(), 50'000u);
}

// The import of a pipe that stays open until the signal was sent.
TEST_F(ImportTest, CtrlCEndsAnImport) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string errors = directory_.File("errors");
  const pid_t child = ForkChild();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (std::freopen(errors.c_str(), "w", stderr) == nullptr) _exit(99);
    execl(BRAIDDB_TOOL, BRAIDDB_TOOL, "import", "--format", "csv", target_.c_str(), nullptr);
    _exit(99);
  }
  close(ends[0]);
  ASSERT_EQ(write(ends[1], "a,1\n", 4), 4);
  while (!fs::exists(target_ + "/OPTIONS")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, SIGINT);
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_TRUE(Has(ReadFileOrDie(errors), "stopped after ")) << ReadFileOrDie(errors);
  EXPECT_EQ(Run("check " + target_).exit_code, 0);
}

TEST_F(ImportTest, MdbDumpAndMdbLoadAgree) {
  if (!IsInstalled("mdb_dump") || !IsInstalled("mdb_load")) GTEST_SKIP() << "lmdb-utils are not installed";
  const std::map<std::string, Data> families{{"default", LmdbData()}, {"named", LmdbData()}};
  Write(families);
  const std::string lmdb = directory_.File("lmdb");
  fs::create_directory(lmdb);
  ASSERT_EQ(Run("export --format mdb " + path_ + " " + file_).exit_code, 0);
  const ToolResult loaded = RunCommand("mdb_load -f " + file_ + " " + lmdb);
  ASSERT_EQ(loaded.exit_code, 0) << loaded.error;
  // mdb_dump -p writes a backslash as it is (LMDB 0.9.24), so that a reader takes it for an escape.
  Data printable = LmdbData();
  std::erase_if(printable, [](const auto& entry) { return Has(entry.first + entry.second, "\\"); });
  const std::string printed = directory_.File("printed");
  fs::create_directory(printed);
  fs::remove_all(path_);
  Write({{"default", {}}, {"named", printable}});
  ASSERT_EQ(RunCommand(std::string(BRAIDDB_TOOL) + " export --format mdb " + path_ + " | mdb_load " + printed).exit_code, 0);
  for (const std::string& option : {"-s named " + lmdb, "-p -s named " + printed}) {
    fs::remove_all(target_);
    const ToolResult imported = RunCommand("mdb_dump " + option + " | " + BRAIDDB_TOOL + " import --format mdb " + target_);
    EXPECT_EQ(imported.exit_code, 0) << imported.error;
    EXPECT_TRUE(Read(target_)["named"] == (option[1] == 'p' ? printable : families.at("named"))) << option;
  }
  fs::remove_all(target_);
  const ToolResult direct = Run("import --from lmdb " + target_ + " " + lmdb);
  if (direct.exit_code == 2 && Has(direct.error, "there is no library")) GTEST_SKIP() << direct.error;
  EXPECT_EQ(direct.exit_code, 0) << direct.error;
  EXPECT_TRUE(Read(target_) == families);
}

TEST_F(ImportTest, DbDumpAndDbLoadAgree) {
  const std::string version = IsInstalled("db_dump") ? "db" : "db5.3";
  if (!IsInstalled(version + "_dump") || !IsInstalled(version + "_load")) GTEST_SKIP() << "db-util is not installed";
  for (const std::map<std::string, Data>& families :
       {std::map<std::string, Data>{{"default", HostileData()}}, {{"default", HostileData()}, {"other", {{"a", "1"}}}}}) {
    fs::remove_all(path_);
    fs::remove(file_);
    Write(families);
    ASSERT_EQ(Run("export --format db " + path_ + " " + file_).exit_code, 0);
    const std::string berkeley = directory_.File("berkeley" + std::to_string(families.size()));
    const ToolResult loaded = RunCommand(version + "_load -f " + file_ + " " + berkeley);
    ASSERT_EQ(loaded.exit_code, 0) << loaded.error;
    for (const std::string option : {"", "-p"}) {
      fs::remove_all(target_);
      const ToolResult imported =
          RunCommand(version + "_dump " + option + " " + berkeley + " | " + BRAIDDB_TOOL + " import --format db " + target_);
      EXPECT_EQ(imported.exit_code, 0) << imported.error;
      EXPECT_TRUE(Read(target_) == families) << option;
    }
  }
}

TEST_F(ImportTest, LdbAgrees) {
  if (!IsInstalled("ldb")) GTEST_SKIP() << "rocksdb-tools are not installed";
  const std::map<std::string, Data> families{{"default", HostileData()}};
  Write(families);
  ASSERT_EQ(Run("export --format ldb " + path_ + " " + file_).exit_code, 0);
  const std::string rocksdb = directory_.File("rocksdb");
  const ToolResult loaded = RunCommand("ldb --db=" + rocksdb + " --hex --create_if_missing load <" + file_);
  ASSERT_EQ(loaded.exit_code, 0) << loaded.error << loaded.out;
  for (const std::string verb : {"dump", "scan"}) {
    fs::remove_all(target_);
    const ToolResult imported = RunCommand("ldb --db=" + rocksdb + " --hex " + verb + " | " + BRAIDDB_TOOL + " load " + target_);
    EXPECT_EQ(imported.exit_code, 0) << imported.error;
    EXPECT_TRUE(Read(target_) == families) << verb;
  }
  RunCommand("ldb --db=" + rocksdb + " create_column_family other");
  RunCommand("ldb --db=" + rocksdb + " --column_family=other put a 1");
  fs::remove_all(target_);
  const ToolResult direct = Run("import --from rocksdb " + target_ + " " + rocksdb);
  if (direct.exit_code == 2 && Has(direct.error, "there is no library")) GTEST_SKIP() << direct.error;
  EXPECT_EQ(direct.exit_code, 0) << direct.error;
  std::map<std::string, Data> expected = families;
  expected["other"]["a"] = "1";
  EXPECT_TRUE(Read(target_) == expected);
}

TEST_F(ImportTest, StoresThatAreNotThereAreNamed) {
  const ToolResult unknown = Run("import --from nothing " + target_ + " " + directory_.path());
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(Has(unknown.error, "none of rocksdb, leveldb, lmdb")) << unknown.error;
  const ToolResult library = Run("import --from rocksdb --library /nothing.so " + target_ + " " + directory_.path());
  EXPECT_EQ(library.exit_code, 2);
  EXPECT_TRUE(Has(library.error, "/nothing.so")) << library.error;
  EXPECT_EQ(Run("import --from lmdb " + target_ + " " + directory_.File("none")).exit_code, 2);
  EXPECT_EQ(Run("import --from lmdb " + target_).exit_code, 2);
  EXPECT_EQ(Run("import --format odd " + target_ + " " + file_).exit_code, 2);
  WriteFileOrDie(file_, "a,1\n");
  const ToolResult format = Run("import " + target_ + " " + file_);
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_TRUE(Has(format.error, "--format")) << format.error;
  EXPECT_FALSE(fs::exists(target_));
}

}  // namespace
}  // namespace braiddb::test
