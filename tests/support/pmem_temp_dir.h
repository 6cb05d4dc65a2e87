// Test support: a directory of its own on tmpfs, and small steps that every pmem test takes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "pmem/region_set.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"

namespace braiddb::test {

// Made on construction under /dev/shm, or under $TMPDIR or /tmp if that cannot be written; removed with all that is in it.
class PmemTempDir {
 public:
  PmemTempDir() : PmemTempDir(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : DiskParent()) {}
  explicit PmemTempDir(const std::string& parent) : path_(parent + "/braiddb_pmem_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~PmemTempDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  PmemTempDir(const PmemTempDir&) = delete;
  PmemTempDir& operator=(const PmemTempDir&) = delete;

  // A parent that is no tmpfs on most machines.
  static std::string DiskParent() {
    const char* parent = std::getenv("TMPDIR");
    return parent != nullptr && *parent != '\0' ? parent : "/tmp";
  }

  const std::string& path() const { return path_; }
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline RegionSetOptions PmemOptions(const std::string& path, uint32_t regions = 1, uint64_t max_region_size = 256ull << 20) {
  RegionSetOptions options;
  options.database_path = path;
  options.regions = regions;
  options.max_region_size = max_region_size;
  return options;
}

// Runs `body` in a forked process that ends with its result, and without destructors, as a killed process would. Returns the exit
// code, or 1000 and the signal.
inline int RunInChild(const std::function<int()>& body) {
  const pid_t child = ForkChild();
  if (child == 0) LeaveChild(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Ends the process in place of the drain number `at`, counted from 0.
class ExitAtDrain : public PersistObserver {
 public:
  static constexpr int kExitCode = 42;
  explicit ExitAtDrain(int at) : left_(at) {}
  void OnFlush(const void*, size_t) override {}
  void OnDrain() override {
    if (left_.fetch_sub(1) == 0) LeaveChild(kExitCode);
  }

 private:
  std::atomic<int> left_;
};

// Whether `pmempool check` finds the pool consistent; true if the tool is not installed.
inline bool PoolIsConsistent(const std::string& set_path) {
  if (std::system("command -v pmempool >/dev/null 2>&1") != 0) return true;
  return std::system(("pmempool check '" + set_path + "' >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace braiddb::test
