// librocksdb.so.7.8 and libleveldb.so.1d: what they export is the list and nothing else, and one process may use both.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {
namespace {

const std::string kRocksDB = std::string(BRAIDDB_DROPINS) + "/librocksdb.so.7.8";
const std::string kLevelDB = std::string(BRAIDDB_DROPINS) + "/libleveldb.so.1d";

// The names in capi/functions.txt that a library has.
std::set<std::string> Listed(const std::string& prefix) {
  std::set<std::string> names;
  std::ifstream file(BRAIDDB_FUNCTIONS);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::string library; words >> library;) {
      if (library == prefix || library == prefix + "*") names.insert(prefix + "_" + name);
    }
  }
  return names;
}

// What a command prints, by line.
std::set<std::string> Lines(const std::string& command) {
  std::set<std::string> lines;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    std::string text = line.data();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    lines.insert(text);
  }
  pclose(pipe);
  return lines;
}

TEST(CApiDropinTest, ListIsThatOfTheOriginals) {
#define FUNCTION(name, ...) prefix + #name,
#define OWN_FUNCTION(name, ...) prefix + #name,
  std::string prefix = "rocksdb_";
  const std::set<std::string> rocksdb{
#include "tests/capi/rocksdb_7_8_3_functions.inc"
  };
  prefix = "leveldb_";
  const std::set<std::string> leveldb{
#include "tests/capi/leveldb_1_23_functions.inc"
  };
#undef FUNCTION
#undef OWN_FUNCTION
  EXPECT_EQ(783u, rocksdb.size());
  EXPECT_EQ(68u, leveldb.size());
  EXPECT_EQ(rocksdb, Listed("rocksdb"));
  EXPECT_EQ(leveldb, Listed("leveldb"));
}

TEST(CApiDropinTest, ExportsTheListAndNothingElse) {
  // Of type FUNC, or profilers and debuggers do not see them: the letter is T.
  EXPECT_EQ(Listed("rocksdb"), Lines("nm -D --defined-only " + kRocksDB + " | awk '$2 == \"T\" {print $3} $2 != \"T\" {print}'"));
  EXPECT_EQ(Listed("leveldb"), Lines("nm -D --defined-only " + kLevelDB + " | awk '$2 == \"T\" {print $3} $2 != \"T\" {print}'"));
}

TEST(CApiDropinTest, HaveTheNamesThatProgramsAskFor) {
  EXPECT_EQ(1u, Lines("readelf -d " + kRocksDB + " | grep SONAME | grep -F '[librocksdb.so.7.8]'").size());
  EXPECT_EQ(1u, Lines("readelf -d " + kLevelDB + " | grep SONAME | grep -F '[libleveldb.so.1d]'").size());
}

// A library as a program would see it that knows its header.
class Library {
 public:
  Library(const std::string& file, std::string prefix) : prefix_(std::move(prefix)), handle_(dlopen(file.c_str(), RTLD_NOW)) {
    EXPECT_NE(nullptr, handle_) << dlerror();
  }

  template <class Function>
  Function* Find(const std::string& name) const {
    void* const found = dlsym(handle_, (prefix_ + "_" + name).c_str());
    EXPECT_NE(nullptr, found) << name;
    return reinterpret_cast<Function*>(found);
  }

  // REQUIRES: no thread that used it is alive.
  void Unload() const { EXPECT_EQ(0, dlclose(handle_)); }

  // Opens a database, puts and gets a key, closes it.
  void Work(const std::string& path) const {
    void* const options = Find<void*()>("options_create")();
    void* const read = Find<void*()>("readoptions_create")();
    void* const write = Find<void*()>("writeoptions_create")();
    Find<void(void*, unsigned char)>("options_set_create_if_missing")(options, 1);
    char* error = nullptr;
    void* const db = Find<void*(void*, const char*, char**)>("open")(options, path.c_str(), &error);
    ASSERT_EQ(nullptr, error) << error;
    Find<void(void*, void*, const char*, size_t, const char*, size_t, char**)>("put")(db, write, "key", 3, path.data(),
                                                                                      path.size(), &error);
    ASSERT_EQ(nullptr, error) << error;
    size_t length = 0;
    char* const value =
        Find<char*(void*, void*, const char*, size_t, size_t*, char**)>("get")(db, read, "key", 3, &length, &error);
    ASSERT_EQ(nullptr, error) << error;
    EXPECT_EQ(path, std::string(value, length));
    Find<void(void*)>("free")(value);
    Find<void(void*)>("close")(db);
    Find<void(void*, const char*, char**)>("destroy_db")(options, path.c_str(), &error);
    EXPECT_EQ(nullptr, error) << error;
    Find<void(void*)>("options_destroy")(options);
    Find<void(void*)>("readoptions_destroy")(read);
    Find<void(void*)>("writeoptions_destroy")(write);
  }

  // Threads of which each takes space from the pool of one database.
  void WorkWithThreads(const std::string& path) const {
    void* const options = Find<void*()>("options_create")();
    void* const write = Find<void*()>("writeoptions_create")();
    Find<void(void*, unsigned char)>("options_set_create_if_missing")(options, 1);
    char* error = nullptr;
    void* const db = Find<void*(void*, const char*, char**)>("open")(options, path.c_str(), &error);
    ASSERT_EQ(nullptr, error) << error;
    auto* const put = Find<void(void*, void*, const char*, size_t, const char*, size_t, char**)>("put");
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        const std::string key = std::to_string(i);
        const std::string value(600 << 10, 'v');
        char* failed = nullptr;
        put(db, write, key.data(), key.size(), value.data(), value.size(), &failed);
        EXPECT_EQ(nullptr, failed) << failed;
      });
    }
    for (std::thread& thread : threads) thread.join();
    Find<void(void*)>("close")(db);
    Find<void(void*, const char*, char**)>("destroy_db")(options, path.c_str(), &error);
    EXPECT_EQ(nullptr, error) << error;
    Find<void(void*)>("options_destroy")(options);
    Find<void(void*)>("writeoptions_destroy")(write);
  }

 private:
  const std::string prefix_;
  void* const handle_;  // closed by Unload only
};

TEST(CApiDropinTest, OneProcessUsesBoth) {
  const PmemTempDir directory;
  const Library rocksdb(kRocksDB, "rocksdb");
  const Library leveldb(kLevelDB, "leveldb");
  rocksdb.Work(directory.Sub("rocksdb"));
  leveldb.Work(directory.Sub("leveldb"));
  EXPECT_EQ(1, leveldb.Find<int()>("major_version")());
  EXPECT_EQ(23, leveldb.Find<int()>("minor_version")());
}

// Each copy tells libpmemobj how many lanes the pools have that it opens, also when another copy came later.
TEST(CApiDropinTest, ThreadsOfBothUseThePoolsOfEach) {
  const PmemTempDir directory;
  const Library rocksdb(kRocksDB, "rocksdb");
  const Library leveldb(kLevelDB, "leveldb");
  for (int i = 0; i < 2; ++i) {
    rocksdb.WorkWithThreads(directory.Sub("rocksdb"));
    leveldb.WorkWithThreads(directory.Sub("leveldb"));
  }
}

// libpmemobj keeps addresses of functions of the copy that used it last.
TEST(CApiDropinTest, AnUnloadedLibraryLeavesTheOtherWorking) {
  const PmemTempDir directory;
  const Library rocksdb(kRocksDB, "rocksdb");
  for (int i = 0; i < 2; ++i) {
    rocksdb.Work(directory.Sub("rocksdb"));
    std::thread([&directory] {
      const Library leveldb(kLevelDB, "leveldb");
      leveldb.Work(directory.Sub("leveldb"));
      leveldb.Unload();
    }).join();
    rocksdb.Work(directory.Sub("rocksdb"));
  }
}

}  // namespace
}  // namespace braiddb::test
