// FileCut: the power fails between two operations on files, and directories forget what was not synced.
//
// A test that uses it defines the C library's functions itself and calls this from them (see db_create_crash_test.cc), so that it
// sees what BraidDB and PMDK do.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/db_test_util.h"

namespace braiddb::test {

// MODEL  A name that was made, renamed or removed is durable when its directory has been synced since; before, it is or is not.
//        What a file contains is durable when the file has been synced since the cut began; before, it is cut off somewhere. A
//        file that was synced once counts as durable for ever: ours are replaced, or their pages are synced.
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
    synced_.clear();
    active_ = true;
  }

  // What is there was made by a process that was killed, and nobody has synced it.
  void ForgetSyncs() {
    std::vector<std::string> names;
    const std::filesystem::path parent = std::filesystem::path(directory_).parent_path();
    for (const auto& found : std::filesystem::recursive_directory_iterator(parent)) names.push_back(found.path());
    std::sort(names.begin(), names.end());  // a directory before what is in it
    for (const std::string& name : names) Made(name);
  }
  // The process that made what is there was killed when it had synced what files contain.
  void RememberContents() {
    struct stat file;
    const std::filesystem::path parent = std::filesystem::path(directory_).parent_path();
    for (const auto& found : std::filesystem::recursive_directory_iterator(parent)) {
      if (lstat(found.path().c_str(), &file) == 0) synced_.insert({file.st_dev, file.st_ino});
    }
  }
  // The file that is mapped at `address` was synced.
  void SyncedMapping(const void* address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; active_ && std::getline(maps, line);) {
      unsigned long begin = 0, end = 0;
      int name = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &name) != 2 || name == 0) continue;
      const auto at = reinterpret_cast<unsigned long>(address);
      struct stat file;
      if (at >= begin && at < end && stat(line.c_str() + name, &file) == 0) synced_.insert({file.st_dev, file.st_ino});
    }
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
    if (!active_ || fstat(fd, &synced) != 0) return;
    if (!S_ISDIR(synced.st_mode)) synced_.insert({synced.st_dev, synced.st_ino});
    if (!S_ISDIR(synced.st_mode)) return;
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
    LoseContents();
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
  // Of files that were never synced.
  void LoseContents() {
    std::error_code ignored;
    const std::filesystem::path parent = std::filesystem::path(directory_).parent_path();
    for (const auto& found : std::filesystem::recursive_directory_iterator(parent, ignored)) {
      struct stat file;
      const std::string path = found.path();
      if (!Concerns(path) || lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
      if (synced_.contains({file.st_dev, file.st_ino}) || !random_.Percent(percent_lost_)) continue;
      const auto bytes = static_cast<off_t>(file.st_size);
      (void)!truncate(path.c_str(), random_.Percent(50) ? 0 : static_cast<off_t>(random_.Uniform(file.st_size + 1)));
      if (random_.Percent(50)) (void)!truncate(path.c_str(), bytes);  // zeros
    }
  }
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
  std::set<std::pair<dev_t, ino_t>> synced_;  // files
  std::vector<Change> unsynced_;              // in their order
};

}  // namespace braiddb::test
