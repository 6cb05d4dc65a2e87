// Figures that the documents give, measured: a row for each. A row fails if its document does not say so any more, or if what is
// said is not so.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/db.h"
#include "braiddb/options_file.h"
#include "capi/result.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

uint64_t Property(DB* db, const char* name) {
  uint64_t value = 0;
  EXPECT_TRUE(db->GetIntProperty(name, &value)) << name;
  return value;
}

// As a user opens it: all defaults.
class Measured {
 public:
  explicit Measured(const std::function<void(Options*)>& change = nullptr) {
    options_.create_if_missing = true;
    if (change) change(&options_);
    Reopen();
  }
  void Reopen() {
    db.reset();
    EXPECT_OK(DB::Open(options_, path_, &db));
  }
  double FileMiB() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      struct stat status;
      if (lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
        bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    }
    return static_cast<double>(bytes) / (1 << 20);
  }
  void Put(uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t key = i * 0x9e3779b97f4a7c15;
      ASSERT_OK(db->Put({}, Slice(reinterpret_cast<const char*>(&key), 8), "12345678"));
    }
  }

 private:
  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_;

 public:
  std::unique_ptr<DB> db;
};

double FilesOfANewDatabase() { return Measured().FileMiB(); }

double FilesBehindAReopen() {
  Measured measured;
  measured.Put(0, 100);
  measured.Reopen();
  return measured.FileMiB();
}

// Of a memtable that is full.
double MemtableBytesPerEntry(MemtableKind kind) {
  constexpr uint64_t kEntries = 65000;
  Measured measured([kind](Options* options) { options->memtable = kind; });
  const uint64_t before = Property(measured.db.get(), "braiddb.cur-size-all-mem-tables");
  measured.Put(0, kEntries);
  const uint64_t after = Property(measured.db.get(), "braiddb.cur-size-all-mem-tables");
  return static_cast<double>(after - before) / kEntries;
}

// Millions of keys for which the filter of a database with few has room.
double FilterRoom() {
  Measured measured;
  measured.Put(0, 100000);
  EXPECT_OK(measured.db->CompactRange({}, nullptr, nullptr));
  // The filter of a database with few keys is there until the background has made this one.
  constexpr uint64_t kSmallBytes = 1 << 20;
  uint64_t bytes = 0;
  EXPECT_TRUE(WaitUntil([&] { return (bytes = Property(measured.db.get(), "braiddb.filter-bytes")) > kSmallBytes; }));
  return static_cast<double>(bytes) * 8 / Options().filter_bits_per_key / 1e6;
}

// Beside the default one.
double FamiliesOfTheUsers() {
  Measured measured;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  Status status;
  while (status.ok()) {
    std::unique_ptr<ColumnFamilyHandle> handle;
    status = measured.db->CreateColumnFamily(ColumnFamilyOptions(), "family" + std::to_string(handles.size()), &handle);
    if (status.ok()) handles.push_back(std::move(handle));
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_OK(measured.db->Put({}, "a", "1"));
  EXPECT_OK(measured.db->DeleteRange({}, "a", "b"));
  return static_cast<double>(handles.size());
}

// Of a disk, without sync: what wal.synced counts (capi/statistics.cc).
double SyncedCountOfAWriteThatIsNotSynced() {
  Measured measured([](Options* options) { options->persist_mode = PersistMode::kPage; });
  WriteOptions unsynced;
  unsynced.sync = false;
  const uint64_t before = measured.db->GetStatistics().batches;
  EXPECT_OK(measured.db->Put(unsynced, "a", "1"));
  return static_cast<double>(measured.db->GetStatistics().batches - before);
}

std::string ReadSource(const std::string& file) { return ReadFileOrDie(std::string(BRAIDDB_SOURCE) + "/" + file); }

// The number behind the name in a source file.
double ConstantIn(const std::string& file, const std::string& name) {
  const std::string text = ReadSource(file);
  const size_t at = text.find(name + " = ");
  if (at == std::string::npos) {
    ADD_FAILURE() << file << " has no " << name;
    return 0;
  }
  std::string digits;
  for (size_t i = at + name.size() + 3; text[i] != ';'; ++i) {
    if (text[i] != '\'') digits += text[i];
  }
  return std::stod(digits);
}

// Comment signs and line ends are not what is said.
std::string Prose(const std::string& text) {
  std::istringstream words(text);
  std::string prose;
  for (std::string word; words >> word;) {
    if (word != "//") prose += (prose.empty() ? "" : " ") + word;
  }
  return prose;
}

TEST(DocsFigures, AreSo) {
  // What several documents say is measured once.
  const double new_files_mib = FilesOfANewDatabase(), filter_room = FilterRoom(), families = FamiliesOfTheUsers();
  const auto filter_bits = [&] { return Options().filter_bits_per_key * filter_room; };
  const auto is = [](double measured) { return [measured] { return measured; }; };
  const struct {
    const char* document;
    const char* says;
    std::function<double()> measure;
    double least, most;
  } figures[] = {
      {"README.md", "a new database takes 0.8 MiB of files", is(new_files_mib), 0.7, 0.9},
      {"docs/FROM_ROCKSDB.md", "A new database takes 0.8 MiB of files", is(new_files_mib), 0.7, 0.9},
      {"docs/FROM_ROCKSDB.md", "A database with 100 keys takes 1.6 MiB of files", FilesBehindAReopen, 1.4, 2},
      {"include/braiddb/options.h", "A full memtable takes 26 (kSkipList)",
       [] { return MemtableBytesPerEntry(MemtableKind::kSkipList); }, 25, 27},
      {"include/braiddb/options.h", "or 75 (kHash) bytes of DRAM per entry",
       [] { return MemtableBytesPerEntry(MemtableKind::kHash); }, 72, 78},
      {"include/braiddb/options.h", "From 8,193 keys on it has room for 4 million or more, by default", is(filter_room), 4, 4.5},
      {"include/braiddb/options.h", "with 10, a million keys get 42 bits each", filter_bits, 41.5, 42.5},
      {"include/braiddb/column_family.h", "users have at most 1,020 families beside the default", is(families), 1020, 1020},
      {"docs/FROM_ROCKSDB.md", "at most 1,020 column families of the user's beside the default one", is(families), 1020, 1020},
      {"docs/FROM_ROCKSDB.md", "sleeps of 0.2 to 20 ms", [] { return ConstantIn("db/pace.cc", "kMinSleepNs") / 1e6; }, 0.2, 0.2},
      {"docs/FROM_ROCKSDB.md", "sleeps of 0.2 to 20 ms", [] { return ConstantIn("db/pace.cc", "kMaxSleepNs") / 1e6; }, 20, 20},
      {"docs/C_API.md", "on a disk those without `sync` count too, and are not", SyncedCountOfAWriteThatIsNotSynced, 1, 1},
      {"docs/FROM_ROCKSDB.md", "Keys have at most 64 KiB", [] { return static_cast<double>(kMaxKeySize) / 1024; }, 63.9, 64},
      {"docs/FROM_ROCKSDB.md", "and values 1 GiB", [] { return static_cast<double>(kMaxValueSize) / (1 << 30); }, 1, 1},
  };
  for (const auto& figure : figures) {
    SCOPED_TRACE(std::string(figure.document) + ": " + figure.says);
    EXPECT_NE(Prose(ReadSource(figure.document)).find(figure.says), std::string::npos) << "the document does not say so";
    const double measured = figure.measure();
    EXPECT_GE(measured, figure.least);
    EXPECT_LE(measured, figure.most);
  }
}

// A number as comments have it, "65,536", "8 MiB"; or as code has it, "8ull << 20".
std::optional<double> NumberOf(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  const std::string unit = text.substr(end);
  for (const auto& [name, bits] : std::map<std::string, int>{{" KiB", 10}, {" MiB", 20}, {" GiB", 30}}) {
    if (unit.starts_with(name)) return std::ldexp(number, bits);
  }
  int shift = 0;
  if (std::sscanf(unit.c_str(), "ull << %d", &shift) == 1) return std::ldexp(number, shift);
  return number;
}

// Each field states its default, and numbers are those of the code.
TEST(DocsFigures, EveryOptionStatesItsDefault) {
  const std::regex begin(R"(struct (\w+) \{)"), field(R"(  [\w:<>,\s*()]+?(\w+)(?: = ([^;]+))?;(.*))");
  std::istringstream lines(ReadSource("include/braiddb/options.h"));
  std::string owner, comment;
  bool behind_field = false;
  int fields = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    const size_t text = line.find_first_not_of(' ');
    if (std::regex_match(line, match, begin)) owner = match[1];
    if (line == "};") owner.clear();
    // The fields of ChangedOptions change nothing unless they are given. L1KindName is a result.
    if (owner.empty() || owner == "ChangedOptions" || owner == "L1KindName") continue;
    if (text == std::string::npos) {
      comment.clear();
    } else if (line.compare(text, 2, "//") == 0) {
      if (behind_field) comment.clear();
      behind_field = false;
      comment += line.substr(text + 2);
    } else if (std::regex_match(line, match, field)) {
      ++fields;
      behind_field = true;
      const std::string said = comment + match[3].str(), code = match[2];
      const size_t at = said.rfind("Default: ");
      EXPECT_NE(at, std::string::npos) << owner << "::" << match[1];
      const std::optional<double> number = NumberOf(code);
      if (at == std::string::npos || !number) continue;
      EXPECT_EQ(NumberOf(said.substr(at + 9)), number) << owner << "::" << match[1];
    }
  }
  EXPECT_GT(fields, 60);
}

// Every field of Options has a row in a table of db/options_file.cc, or a reason here why the options file does not have it.
TEST(DocsFigures, EveryOptionIsInTheOptionsFile) {
  std::map<std::string, std::string> not_written{
      {"merge_operator", "an object of the program"},
      {"lookup_cache_limit", "an object of the program"},
      {"compaction_filter", "an object of the program"},
      {"compaction_filter_factory", "an object of the program"},
      {"info_log", "an object of the program"},
      {"listeners", "objects of the program"},
      {"foreign_options", "the lines of DBOptions that have other names"},
      {"foreign_family_options", "the lines of CFOptions that have other names"},
      {"foreign_table_options", "the lines of TableOptions/BlockBasedTable"},
  };
  const std::string text = OptionsToText(Options());
  const std::regex field(R"(  [\w:<>,\s*()]+?(\w+)(?: = ([^;]+))?;(.*))");
  std::istringstream lines(ReadSource("include/braiddb/options.h"));
  bool is_inside = false;
  int written = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line == "struct Options {") is_inside = true;
    if (line == "};") is_inside = false;
    if (!is_inside || line.starts_with("  //") || !std::regex_match(line, match, field)) continue;
    const std::string name = match[1];
    const bool is_written =
        text.find("\n  " + name + "=") != std::string::npos || text.find("\n  " + name + ".") != std::string::npos;
    const bool is_left_out = not_written.erase(name) != 0;
    EXPECT_NE(is_written, is_left_out) << "Options::" << name;
    written += is_written ? 1 : 0;
  }
  EXPECT_GT(written, 35);
  for (const auto& [name, reason] : not_written) ADD_FAILURE() << "Options has no field " << name << " (" << reason << ")";
}

// The database has every property that db.h lists, under both prefixes.
TEST(DocsFigures, EveryPropertyIsAnswered) {
  Measured measured;
  const std::string header = ReadSource("include/braiddb/db.h");
  const size_t begin = header.find("//   name   ");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream lines(header.substr(begin, header.find("virtual bool GetProperty(std::string_view", begin) - begin));
  const std::regex row(R"(  //   ([a-z0-9-]+)  +(.*))");
  int properties = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    ++properties;
    for (const std::string prefix : {"braiddb.", "rocksdb."}) {
      std::string text;
      uint64_t number = 0;
      EXPECT_TRUE(measured.db->GetProperty(prefix + match[1].str(), &text)) << line;
      EXPECT_EQ(measured.db->GetIntProperty(prefix + match[1].str(), &number), !match[2].str().starts_with("text")) << line;
    }
  }
  EXPECT_GT(properties, 30);
  uint64_t number = 0;
  EXPECT_FALSE(measured.db->GetIntProperty("num-l0-tables", &number));
  EXPECT_FALSE(measured.db->GetIntProperty("braiddb.no-such-property", &number));
}

// c.h names all beginnings that texts of errors have.
TEST(DocsFigures, ErrorTextsOfCAreNamed) {
  const std::string header = Prose(ReadSource("include/braiddb/c.h").substr(0, 2000));
  for (const Status& status :
       {Status::NotFound("X"), Status::Corruption("X"), Status::NotSupported("X"), Status::InvalidArgument("X"),
        Status::IOError("X"), Status::Busy("X"), Status::NoSpace("X"), Status::ReadOnly("X"), Status::Aborted("X"),
        Status::MemoryLimit("X"), Status::TimedOut("X"), Status::Expired("X"), Status::Incomplete("X")}) {
    char* error = nullptr;
    capi::ReplaceError(&error, status);
    std::string text = error;
    std::free(error);
    ASSERT_TRUE(text.ends_with(": X")) << text;
    for (size_t end; (end = text.find(": ")) != std::string::npos; text.erase(0, end + 2))
      EXPECT_NE(header.find("\"" + text.substr(0, end + 2) + "\""), std::string::npos) << text;
  }
  for (const char* gone : {"\"No space left: \"", "\"Read only: \""}) EXPECT_EQ(header.find(gone), std::string::npos) << gone;
}

}  // namespace
}  // namespace braiddb::test
