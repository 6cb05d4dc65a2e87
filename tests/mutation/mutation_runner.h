// Opens and reads a database once for each mutation of its files, in child processes: one that dies or hangs is a finding.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/mutation/word_map.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

struct Mutation {
  Word word;
  uint64_t value;  // that is put there
  const char* how;
};

enum class Outcome : uint8_t { kNotTried, kRight, kRefused, kReadError, kWrong, kHang, kCrash, kCount };

inline const char* NameOf(Outcome outcome) {
  static constexpr const char* kNames[] = {"not tried", "right data", "refused", "read error", "WRONG DATA", "HANG", "CRASH"};
  return kNames[static_cast<int>(outcome)];
}
inline bool IsBad(Outcome outcome) { return outcome >= Outcome::kWrong || outcome == Outcome::kNotTried; }

class MutationRunner {
 public:
  // `open_and_read` judges the database in the directory that it gets; it may die or hang.
  using Judge = std::function<Outcome(const std::string& path)>;

  MutationRunner(const std::string& pristine, const std::string& work, const std::vector<std::string>& files, Judge judge)
      : work_(work), files_(files), judge_(std::move(judge)) {
    for (const std::string& file : ListFiles(pristine)) pristine_[file] = ReadFileOrDie(pristine + "/" + file);
    std::filesystem::copy(pristine, work, std::filesystem::copy_options::recursive);
  }

  const std::string& pristine(const std::string& file) const { return pristine_.at(file); }

  // One outcome for each mutation.
  std::vector<Outcome> Run(const std::vector<Mutation>& mutations) {
    const size_t bytes = sizeof(Shared) + mutations.size();
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* shared = new (memory) Shared();
    auto* outcomes = reinterpret_cast<Outcome*>(shared + 1);
    const auto start = std::chrono::steady_clock::now();
    while (shared->next < mutations.size()) RunWorker(mutations, shared, outcomes, start);
    std::vector<Outcome> result(outcomes, outcomes + mutations.size());
    munmap(memory, bytes);
    return result;
  }

 private:
  struct Shared {
    std::atomic<uint64_t> next{0};  // of the mutations, the one that is being tried
  };
  static constexpr uint64_t kPerWorker = 500;
  static constexpr int kHangSeconds = 20 * kSlowdown;
  static constexpr uint64_t kShowEvery = 5000;

  void RunWorker(const std::vector<Mutation>& mutations, Shared* shared, Outcome* outcomes,
                 std::chrono::steady_clock::time_point start) {
    const uint64_t first = shared->next;
    const uint64_t end = std::min<uint64_t>(first + kPerWorker, mutations.size());
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      Quiet();
      while (shared->next < end) {
        const uint64_t i = shared->next;
        Restore();
        Apply(mutations[i]);
        outcomes[i] = judge_(work_);
        ++shared->next;
      }
      _exit(0);
    }
    int status = 0;
    uint64_t seen = first;
    auto since = std::chrono::steady_clock::now();
    bool killed = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto now = std::chrono::steady_clock::now();
      if (shared->next != seen) {
        seen = shared->next;
        since = now;
      } else if (now - since > std::chrono::seconds(kHangSeconds) && !killed) {
        killed = true;
        kill(child, SIGKILL);
      }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) outcomes[shared->next++] = killed ? Outcome::kHang : Outcome::kCrash;
    if (first / kShowEvery != shared->next / kShowEvery) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("  %llu of %zu mutations, %.0f s\n", static_cast<unsigned long long>(shared->next), mutations.size(), seconds);
      std::fflush(stdout);
    }
  }

  // What a child says when it dies is of no use here, nor is its core.
  static void Quiet() {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    close(null);
  }

  // Brings every file back to what it was, writing only the pages that changed.
  void Restore() {
    for (const std::string& file : ListFiles(work_)) {
      if (!pristine_.contains(file)) std::filesystem::remove(work_ + "/" + file);
    }
    for (const auto& [file, content] : pristine_) {
      const std::string path = work_ + "/" + file;
      if (!std::filesystem::exists(path) || std::filesystem::file_size(path) != content.size() || content.size() < kPage) {
        WriteFileOrDie(path, content);
        continue;
      }
      const int fd = open(path.c_str(), O_RDWR);
      auto* memory = static_cast<char*>(mmap(nullptr, content.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
      close(fd);
      for (size_t at = 0; at < content.size(); at += kPage) {
        if (std::memcmp(memory + at, content.data() + at, kPage) != 0) std::memcpy(memory + at, content.data() + at, kPage);
      }
      munmap(memory, content.size());
    }
  }

  void Apply(const Mutation& mutation) const {
    const int fd = open((work_ + "/" + files_[mutation.word.file]).c_str(), O_WRONLY);
    if (pwrite(fd, &mutation.value, sizeof(mutation.value), mutation.word.offset) != sizeof(mutation.value)) _exit(9);
    close(fd);
  }

  static constexpr size_t kPage = 4096;

  const std::string work_;
  const std::vector<std::string> files_;
  const Judge judge_;
  std::map<std::string, std::string> pristine_;
};

}  // namespace braiddb::test
