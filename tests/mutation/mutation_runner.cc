#include "tests/mutation/mutation_runner.h"

#include <fcntl.h>
#include <libpmemobj.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

// An open takes milliseconds.
constexpr int kHangSeconds = 3 * kSlowdown;
constexpr int kAloneSeconds = 60 * kSlowdown;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "mutation_test: %s\n", what.c_str());
  std::abort();
}

bool IsPart(const std::string& file) { return file.ends_with(".pmem"); }

char* MapShared(const std::string& path, size_t bytes) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || memory == MAP_FAILED) Die("cannot map " + path);
  close(fd);
  return static_cast<char*>(memory);
}

// What a child says when it dies is of no use here, nor is its core.
void Quiet() {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_WRONLY);
  dup2(null, STDERR_FILENO);
  close(null);
}

}  // namespace

MutationRunner::MutationRunner(std::string work, const std::map<std::string, std::string>& files, Judging judge)
    : work_(std::move(work)), files_(files), judge_(std::move(judge)) {
  for (const auto& [file, content] : files_) {
    fs::create_directories(fs::path(PathOf(file)).parent_path());
    fs::create_directories(fs::path(AsideOf(file)).parent_path());
    WriteFileOrDie(PathOf(file), content);
    if (IsPart(file)) parts_[file] = {MapShared(PathOf(file), content.size()), &content};
  }
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  shared_ = new (memory) Shared();
}

MutationRunner::~MutationRunner() {
  for (const auto& [file, part] : parts_) munmap(part.memory, part.content->size());
  munmap(shared_, sizeof(Shared));
}

void MutationRunner::Run(uint64_t first, uint64_t end, const Drawing& draw, const Reporting& report) {
  while (first < end) {
    const uint64_t until = std::min(first + kPerChild, end);
    shared_->next = first;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) Die("cannot fork");
    if (child == 0) {
      Quiet();
      RunChild(first, until, draw);
      LeaveChild(0);
    }
    const End ended = Wait(child, kHangSeconds);
    uint64_t done = shared_->next;
    if (ended != End::kDone) {
      // It was at this one.
      if (done == until) Die("a child ended badly after all of its opens");
      shared_->results[done++ - first] = {ended == End::kKilled ? Outcome::kHang : Outcome::kCrash};
    }
    if (Result& last = shared_->results[done - 1 - first]; done > first && last.bad()) {
      const Mutation mutation = draw(done - 1);
      TakeBack(mutation);
      if (!PartsAreAsTheyWere()) Die("the files are not as they were");
      // Under load an open may take longer than it should.
      if (const Result alone = RunAlone(mutation); last.outcome == Outcome::kHang) last = alone;
    }
    for (uint64_t i = first; i < done; ++i) report(i, shared_->results[i - first]);
    if (done == first) Die("a child made no open; the control may have failed");
    first = done;
  }
}

void MutationRunner::RunChild(uint64_t first, uint64_t end, const Drawing& draw) {
  int copy_on_write = 1;
  if (pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &copy_on_write) != 0) _exit(3);
  for (uint64_t i = first; i < end; ++i) {
    if ((i - first) % kPerControl == 0) Control();
    const Mutation mutation = draw(i);
    Apply(mutation);
    const Result result = judge_(work_);
    shared_->results[i - first] = result;
    TakeBack(mutation);
    shared_->next = i + 1;
    if (result.bad()) LeaveChild(0);
  }
  Control();
}

void MutationRunner::Control() {
  if (!PartsAreAsTheyWere() || judge_(work_).outcome != Outcome::kRight) _exit(4);
  RestoreSmallFiles();
  ++shared_->controls;
}

MutationRunner::End MutationRunner::Wait(int child, int seconds) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (fd < 0) Die("no pidfd");
  uint64_t seen = UINT64_MAX;
  bool killed = false;
  pollfd wait = {fd, POLLIN, 0};
  while (poll(&wait, 1, seconds * 1000) == 0) {
    if (std::exchange(seen, shared_->next.load()) != shared_->next) continue;
    killed = true;
    kill(child, SIGKILL);
  }
  close(fd);
  int status = 0;
  if (waitpid(child, &status, 0) != child) Die("a child was lost");
  if (killed) return End::kKilled;
  if (WIFEXITED(status) && WEXITSTATUS(status) >= 3) Die("a child could not go on: the control failed, or a file");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? End::kDone : End::kDied;
}

Result MutationRunner::RunAlone(const Mutation& mutation) {
  Apply(mutation);
  const Result before = std::exchange(shared_->results[0], Result{});
  shared_->next = 0;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) Die("cannot fork");
  if (child == 0) {
    Quiet();
    int copy_on_write = 1;
    if (pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &copy_on_write) != 0) _exit(3);
    shared_->results[0] = judge_(work_);
    LeaveChild(0);
  }
  const End ended = Wait(child, kAloneSeconds);
  TakeBack(mutation);
  Result result = std::exchange(shared_->results[0], before);
  if (ended != End::kDone) result = {ended == End::kKilled ? Outcome::kHang : Outcome::kCrash};
  return result;
}

// ---- Files

// A whole file is put in the place of the one that is mapped here, which waits aside.
void MutationRunner::Apply(const Mutation& mutation) {
  const std::string path = PathOf(mutation.file);
  if (mutation.unit == Unit::kFile) {
    if (std::rename(path.c_str(), AsideOf(mutation.file).c_str()) != 0) _exit(9);
    if (!mutation.removes_file()) WriteFileOrDie(path, mutation.bytes);
    return;
  }
  std::memcpy(parts_.at(mutation.file).memory + mutation.offset, mutation.bytes.data(), mutation.bytes.size());
}

void MutationRunner::TakeBack(const Mutation& mutation) {
  if (mutation.unit == Unit::kFile) {
    const std::string aside = AsideOf(mutation.file);
    if (fs::exists(aside) && std::rename(aside.c_str(), PathOf(mutation.file).c_str()) != 0) _exit(9);
  } else {
    const Part& part = parts_.at(mutation.file);
    std::memcpy(part.memory + mutation.offset, part.content->data() + mutation.offset, mutation.bytes.size());
  }
  RestoreSmallFiles();
}

void MutationRunner::RestoreSmallFiles() {
  for (const std::string& file : ListFiles(work_)) {
    if (!files_.contains(file)) fs::remove(PathOf(file));
  }
  for (const auto& [file, content] : files_) {
    if (IsPart(file)) continue;
    if (!fs::exists(PathOf(file)) || ReadFileOrDie(PathOf(file)) != content) WriteFileOrDie(PathOf(file), content);
  }
}

bool MutationRunner::PartsAreAsTheyWere() const {
  for (const auto& [file, part] : parts_) {
    if (std::memcmp(part.memory, part.content->data(), part.content->size()) != 0) return false;
  }
  return true;
}

}  // namespace braiddb::test
