#include "tests/differential/child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tests/differential/known_differences.h"

namespace braiddb::test {

namespace {

constexpr unsigned kSecondsToHang = 120;
constexpr size_t kMostText = 1 << 16;
constexpr size_t kMostKnown = 64;

// What a child tells its parent, in memory that both see.
struct Message {
  size_t calls;
  size_t sequences;
  uint64_t known[kMostKnown];
  bool different;
  size_t at;
  char call[kMostText];
  char expected[kMostText];
  char found[kMostText];
};

void Copy(const std::string& from, char* to) {
  const size_t length = std::min(from.size(), kMostText - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

void Live(const Libraries& libraries, const Life& life, const std::string& directory, bool show, Message* message) {
  alarm(kSecondsToHang);
  const LifeResult result = RunLife(
      libraries.expected, libraries.tested, life, directory, [&](size_t at) { message->calls = at; },
      [&](const Step& expected, const Step& found) {
        if (!show) return;
        std::printf("  %s\n    = %.2000s\n", expected.call.c_str(), expected.result.c_str());
        if (expected.result != found.result) std::printf("    ≠ %.2000s\n", found.result.c_str());
        std::fflush(stdout);
      });
  message->calls = result.calls;
  message->sequences = result.sequences;
  std::copy_n(result.known.begin(), std::min(result.known.size(), kMostKnown), message->known);
  if (!result.difference) return;
  message->different = true;
  message->at = result.difference->at;
  Copy(result.difference->call, message->call);
  Copy(result.difference->expected, message->expected);
  Copy(result.difference->found, message->found);
}

}  // namespace

ChildResult RunInChild(const Libraries& libraries, const Life& life, const std::string& directory, bool show) {
  static auto* const message =
      static_cast<Message*>(mmap(nullptr, sizeof(Message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  message->different = false;
  message->calls = message->sequences = 0;
  std::fill_n(message->known, kMostKnown, 0);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Live(libraries, life, directory, show, message);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  ChildResult result;
  result.life.calls = message->calls;
  result.life.sequences = message->sequences;
  result.life.known.assign(message->known, message->known + KnownDifferences().size());
  if (WIFSIGNALED(status)) {
    result.crash = WTERMSIG(status) == SIGALRM ? "hang" : std::string("crash: ") + strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    result.crash = "exit code " + std::to_string(WEXITSTATUS(status));
  } else if (message->different) {
    result.life.difference = Difference{message->at, message->call, message->expected, message->found};
  }
  return result;
}

Life Shrink(const Libraries& libraries, const Life& life, const ChildResult& result, const std::string& directory) {
  Life shortest = life;
  const size_t end = std::min(result.failed_at() + 1, life.calls.size());
  shortest.calls.resize(end);
  const uint32_t failing = shortest.calls.back().operation;
  // Leaves out ranges of calls, shorter and shorter ones, as long as the last call fails.
  for (size_t length = std::max<size_t>(1, end / 2);; length /= 2) {
    for (size_t from = 0; from < shortest.calls.size();) {
      Life shorter = shortest;
      const size_t to = std::min(from + length, shorter.calls.size());
      shorter.calls.erase(shorter.calls.begin() + static_cast<std::ptrdiff_t>(from),
                          shorter.calls.begin() + static_cast<std::ptrdiff_t>(to));
      const ChildResult again = RunInChild(libraries, shorter, directory, false);
      if (again.failed() && again.crash == result.crash && again.failed_at() < shorter.calls.size() &&
          shorter.calls[again.failed_at()].operation == failing) {
        shorter.calls.resize(again.failed_at() + 1);
        shortest = shorter;
      } else {
        from += length;
      }
    }
    if (length == 1) return shortest;
  }
}

}  // namespace braiddb::test
