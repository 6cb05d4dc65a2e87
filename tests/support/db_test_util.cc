#include "tests/support/db_test_util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "braiddb/check.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"

namespace braiddb::test {

namespace fs = std::filesystem;

uint64_t EnvNumber(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : otherwise;
}

testing::AssertionResult IsOk(const char* expression, const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << expression << " is not OK: " << status.ToString();
}

testing::AssertionResult HasCode(const char* expression, const char* code_text, const Status& status, Status::Code code) {
  if (status.code() != code) {
    return testing::AssertionFailure() << expression << " gave \"" << status.ToString() << "\", wanted " << code_text;
  }
  if (!status.ok() && code != Status::Code::kNotFound && status.message().empty()) {
    return testing::AssertionFailure() << expression << " has the right code, but no message";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult ChecksAsSound(const std::string& path) {
  CheckReport report;
  const Status status = CheckDatabase({}, path, &report);
  if (!status.ok()) return testing::AssertionFailure() << "cannot check " << path << ": " << status.ToString();
  if (report.sound()) return testing::AssertionSuccess();
  testing::AssertionResult failure = testing::AssertionFailure() << path << " is damaged:";
  for (const CheckFinding& finding : report.findings) failure << "\n  " << finding.what << " (" << finding.where << ")";
  return failure << "\n  and " << report.more_findings << " more";
}

// ---- Directories

namespace {

std::string ParentFor(TestDirectory::Medium medium) {
  const char* temporary = std::getenv("TMPDIR");
  if (medium == TestDirectory::Medium::kMemory) {
    if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
    return temporary != nullptr ? temporary : "/tmp";
  }
  if (const char* disk = std::getenv("BRAIDDB_TEST_DISK")) return disk;
  return temporary != nullptr ? temporary : "/var/tmp";
}

}  // namespace

TestDirectory::TestDirectory(Medium medium) {
  std::string pattern = ParentFor(medium) + "/braiddb-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    std::perror(pattern.c_str());
    std::abort();
  }
  path_ = pattern;
}

TestDirectory::~TestDirectory() {
  if (std::getenv("BRAIDDB_KEEP_TEST_DIRS") != nullptr) {
    std::printf("kept %s\n", path_.c_str());
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> ListFiles(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), directory).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> RegionFiles(const std::string& database) {
  std::vector<std::string> files = ListFiles(database);
  std::erase_if(files, [](const std::string& file) { return !file.starts_with("region-"); });
  return files;
}

std::string ReadFileOrDie(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) {
    std::perror(path.c_str());
    std::abort();
  }
  return std::move(content).str();
}

void WriteFileOrDie(const std::string& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    std::perror(path.c_str());
    std::abort();
  }
}

// ---- Options

Options TinyOptions(uint32_t regions) {
  Options options;
  options.create_if_missing = true;
  options.regions = regions;
  options.max_region_size = 256ull << 20;
  options.segment_size = 256ull << 10;
  options.memtable_size = 32ull << 10;
  options.memtable = regions == 1 ? MemtableKind::kHash : MemtableKind::kSkipList;
  options.checkpoint_tables = 2;
  options.lookup_cache_size = 256;  // most gets miss it
  options.max_space_amplification = 1.1;
  options.space_slack = 256 << 10;
  options.compaction_threads = 2;
  options.recovery_threads = 2;
  options.info_log = [](std::string_view) {};
  options.l1 = TestedL1();
  options.nv_leaf_size = 512;
  return options;
}

L1Kind TestedL1() {
  const char* const name = std::getenv("BRAIDDB_TEST_L1");
  if (name == nullptr) return Options().l1;
  if (const LevelKind* const kind = FindLevelKind(std::string_view(name)); kind != nullptr) return kind->id;
  std::fprintf(stderr, "BRAIDDB_TEST_L1=%s is neither %s\n", name, LevelKindNames(" nor ").c_str());
  std::abort();
}

void CopyDatabase(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (entry.is_socket()) continue;
    std::filesystem::copy(entry.path(), std::filesystem::path(to) / entry.path().filename(),
                          std::filesystem::copy_options::recursive);
  }
}

std::unique_ptr<DB> OpenOrFail(const Options& options, const std::string& path) {
  std::unique_ptr<DB> db;
  const Status status = DB::Open(options, path, &db);
  EXPECT_OK(status) << "opening " << path;
  EXPECT_EQ(status.ok(), db != nullptr);
  return db;
}

// ---- Random material

std::string Random::Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = Next();
    for (size_t j = 0; j < 8 && i + j < size; ++j) bytes[i + j] = static_cast<char>(word >> (8 * j));
  }
  return bytes;
}

namespace {

std::string RandomKey(Random* random, bool huge) {
  static const std::string kLongPrefix = std::string(300, 'p') + std::string("\0/shared/", 9);
  switch (random->Uniform(10)) {
    case 0:
      return random->Bytes(random->Range(1, 3));
    case 1:
      return std::string(random->Range(1, 24), random->OneIn(2) ? '\0' : '\xff');
    case 2:
      return kLongPrefix + NumberedKey(random->Uniform(1000));
    case 3:
      return kLongPrefix + std::string(random->Uniform(40), '\0');  // differ in length only
    case 4:
      return random->Bytes(random->Range(4, 64));
    case 5:
      return "same8byt" + random->Bytes(random->Uniform(3));  // first eight bytes equal
    case 6:
      return random->Bytes(random->Range(65, 1500));
    case 7:
      if (huge && random->OneIn(20)) {
        return std::string(kMaxKeySize - 2, 'h') + random->Bytes(random->Range(1, 2));
      }
      [[fallthrough]];
    default:
      return NumberedKey(random->Uniform(100'000));
  }
}

}  // namespace

std::vector<std::string> MakeKeyUniverse(Random* random, size_t count, bool huge) {
  std::set<std::string> keys = {"", std::string(1, '\0'), std::string(2, '\0'), "\xff", std::string(kMaxKeySize / 64, '\xff')};
  if (huge) keys.insert(std::string(kMaxKeySize, 'M'));
  while (keys.size() < count) keys.insert(RandomKey(random, huge));
  std::vector<std::string> shuffled(keys.begin(), keys.end());
  for (size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[random->Uniform(i)]);
  return shuffled;
}

size_t RandomValueSize(Random* random, uint64_t segment_size, bool huge) {
  if (huge && random->OneIn(400)) {
    return random->OneIn(2) ? segment_size - 512 + random->Uniform(1024) : segment_size + random->Uniform(2 * segment_size);
  }
  switch (random->Uniform(16)) {
    case 0:
      return 0;
    case 1:
      return random->Range(1, 8);
    case 2:
      return random->Range(1000, 5000);
    default:
      return random->Range(8, 120);
  }
}

std::string RandomValue(Random* random, uint64_t segment_size, bool huge) {
  const size_t size = RandomValueSize(random, segment_size, huge);
  return PatternedValue(random->Next(), size);
}

std::string EightByteKey(uint64_t number) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (56 - 8 * i));
  return bytes;
}

std::string NumberedKey(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "key%06llu", static_cast<unsigned long long>(number));
  return text;
}

std::string PatternedValue(uint64_t tag, size_t size) {
  std::string value(size, '\0');
  uint64_t state = tag + 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    value[i] = static_cast<char>(state >> (8 * (i % 8)));
  }
  return value;
}

// ---- Looking at a database

Pairs ScanForward(DB* db, const ReadOptions& options) {
  Pairs pairs;
  auto iterator = db->NewIterator(options);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) pairs.emplace_back(iterator->key(), iterator->value());
  EXPECT_OK(iterator->status());
  return pairs;
}

Pairs ScanBackward(DB* db, const ReadOptions& options) {
  Pairs pairs;
  auto iterator = db->NewIterator(options);
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) pairs.emplace_back(iterator->key(), iterator->value());
  EXPECT_OK(iterator->status());
  return pairs;
}

std::string GetOrText(DB* db, Slice key, const ReadOptions& options) {
  std::string value;
  const Status status = db->Get(options, key, &value);
  if (status.IsNotFound()) return "<not found>";
  if (!status.ok()) return "<" + status.ToString() + ">";
  return value;
}

uint64_t IntProperty(DB* db, const std::string& name) {
  uint64_t value = 0;
  EXPECT_TRUE(db->GetIntProperty(name, &value)) << name;
  return value;
}

std::string Printable(Slice bytes) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 40); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      text += static_cast<char>(c);
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
      text += escaped;
    }
  }
  if (bytes.size() > 40) {
    text += "… (" + std::to_string(bytes.size()) + " bytes, hash " +
            std::to_string(std::hash<std::string_view>()(bytes) % 100'000) + ")";
  }
  return text;
}

namespace {

// The first place where the scan differs from what is expected.
testing::AssertionResult SamePairs(const char* what, const Pairs& expected, const Pairs& actual) {
  const size_t common = std::min(expected.size(), actual.size());
  for (size_t i = 0; i < common; ++i) {
    if (expected[i] != actual[i]) {
      return testing::AssertionFailure() << what << " position " << i << ": expected " << Printable(expected[i].first) << " = "
                                         << Printable(expected[i].second) << ", got " << Printable(actual[i].first) << " = "
                                         << Printable(actual[i].second) << " (sizes " << expected.size() << ", " << actual.size()
                                         << ")";
    }
  }
  if (expected.size() == actual.size()) return testing::AssertionSuccess();
  const auto& longer = expected.size() > actual.size() ? expected : actual;
  return testing::AssertionFailure() << what << ": expected " << expected.size() << " pairs, got " << actual.size()
                                     << "; first extra in " << (&longer == &expected ? "expected" : "actual") << ": "
                                     << Printable(longer[common].first);
}

}  // namespace

testing::AssertionResult HoldsExactly(DB* db, const Pairs& expected, const ReadOptions& options) {
  if (auto result = SamePairs("forward scan", expected, ScanForward(db, options)); !result) return result;
  Pairs backward = ScanBackward(db, options);
  std::reverse(backward.begin(), backward.end());
  if (auto result = SamePairs("backward scan", expected, backward); !result) return result;
  for (const auto& [key, value] : expected) {
    const std::string got = GetOrText(db, key, options);
    if (got != value) {
      return testing::AssertionFailure() << "Get(" << Printable(key) << "): expected " << Printable(value) << ", got "
                                         << Printable(got);
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult HoldsExactly(DB* db, const std::map<std::string, std::string>& expected, const ReadOptions& options) {
  return HoldsExactly(db, Pairs(expected.begin(), expected.end()), options);
}

void Accumulate(Statistics* total, const Statistics& more) {
  static constexpr uint64_t Statistics::*kCounters[] = {
      &Statistics::writes,
      &Statistics::batches,
      &Statistics::log_bytes,
      &Statistics::gets,
      &Statistics::gets_found,
      &Statistics::lookup_cache_hits,
      &Statistics::filter_negatives,
      &Statistics::write_delays,
      &Statistics::rotations,
      &Statistics::flushes,
      &Statistics::flushed_entries,
      &Statistics::checkpoints,
      &Statistics::compactions,
      &Statistics::merged_entries,
      &Statistics::dropped_entries,
      &Statistics::relocated_entries,
      &Statistics::collapsed_keys,
      &Statistics::relocated_bytes,
      &Statistics::segments_allocated,
      &Statistics::segments_recycled,
      &Statistics::flushed_lines,
      &Statistics::pm_written_lines,
      &Statistics::pm_written_xplines,
      &Statistics::pm_fences,
      &Statistics::replayed_entries,
  };
  for (auto counter : kCounters) total->*counter += more.*counter;
}

int RunInChild(const std::function<int()>& body, uint64_t timeout_ms) {
  std::fflush(nullptr);
  const pid_t child = ForkChild();
  if (child == 0) {
    const rlimit no_core = {0, 0};  // of a child that is expected to crash
    setrlimit(RLIMIT_CORE, &no_core);
    LeaveChild(body());
  }
  EXPECT_GT(child, 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

}  // namespace braiddb::test
