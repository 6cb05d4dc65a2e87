// FileCut: the power fails between two operations on files, and directories forget what was not synced.
//
// A test that uses it defines the C library's functions itself and calls this from them (see db_create_crash_test.cc), so that it
// sees what BraidDB and PMDK do.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/db_test_util.h"

namespace braiddb::test {

// MODEL  A name that was made, renamed or removed is durable when its directory has been synced since; before, it is or is not.
//        What files contain counts as durable.
// Thread safety: none; in the process that is cut one thread works with files.
class FileCut {
 public:
  static constexpr int kExitCode = 42;
  static constexpr int64_t kNever = INT64_MAX;

  // From now on, of paths that begin with `directory`; the process ends before operation number `at`. `scratch`: a directory of
  // its own on the same file system.
  void Begin(const std::string& directory, const std::string& scratch, int64_t at, uint32_t percent_lost, uint64_t seed) {
    directory_ = directory;
    scratch_ = scratch;
    std::filesystem::remove_all(scratch_);
    std::filesystem::create_directories(scratch_);
    left_ = at;
    percent_lost_ = percent_lost;
    random_ = Random(seed);
    active_ = true;
  }

  // Before an operation on `path`.
  void Before(const std::string& path) {
    if (active_ && Concerns(path) && left_-- == 0) FailNow();
  }
  // Keeps what is about to be removed or replaced, for the case that it is not. Returns its place, "" if there is nothing.
  std::string Keep(const std::string& path) {
    if (!active_ || !Concerns(path) || access(path.c_str(), F_OK) != 0) return "";
    std::string kept = scratch_ + "/" + std::to_string(kept_++);
    if (link(path.c_str(), kept.c_str()) != 0) {
      std::perror(kept.c_str());
      std::abort();
    }
    return kept;
  }
  void Made(const std::string& path) { Note({path, "", ""}); }
  void Removed(const std::string& path, const std::string& kept) { Note({path, "", kept}); }
  void Renamed(const std::string& from, const std::string& to, const std::string& kept) { Note({to, from, kept}); }
  void Synced(int fd) {
    struct stat synced, parent;
    if (!active_ || fstat(fd, &synced) != 0 || !S_ISDIR(synced.st_mode)) return;
    std::erase_if(unsynced_, [&](const Change& change) {
      const std::string directory = std::filesystem::path(change.path).parent_path();
      return stat(directory.c_str(), &parent) == 0 && parent.st_ino == synced.st_ino && parent.st_dev == synced.st_dev;
    });
  }

  [[noreturn]] void FailNow() {
    active_ = false;
    for (; !unsynced_.empty(); unsynced_.pop_back()) {
      const Change& change = unsynced_.back();
      if (!random_.Percent(percent_lost_)) continue;
      std::error_code ignored;
      if (!change.from.empty()) {
        std::filesystem::rename(change.path, change.from, ignored);
      } else if (change.kept.empty()) {
        std::filesystem::remove_all(change.path, ignored);
      }
      if (!change.kept.empty()) std::filesystem::rename(change.kept, change.path, ignored);
    }
    _exit(kExitCode);
  }

  static std::string PathOf(int fd) {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored).string();
  }

 private:
  // `path` appeared, or went, or another file took its place.
  struct Change {
    std::string path;
    std::string from;  // its name before, if it was renamed
    std::string kept;  // what was at `path`
  };
  void Note(Change change) {
    if (active_ && Concerns(change.path)) unsynced_.push_back(std::move(change));
  }
  bool Concerns(const std::string& path) const { return path.starts_with(directory_); }

  bool active_ = false;
  std::string directory_;
  std::string scratch_;
  int64_t left_ = kNever;
  uint32_t percent_lost_ = 0;
  Random random_{0};
  uint64_t kept_ = 0;
  std::vector<Change> unsynced_;  // in their order
};

}  // namespace braiddb::test
