#include "tests/crash_test/campaign.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "tests/crash_test/campaign_report.h"
#include "tests/support/db_test_util.h"
#include "util/mutant.h"

namespace braiddb::test {
namespace {

constexpr auto kHangAfter = std::chrono::seconds(120);

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), counters_(NewCounters()), start_(std::chrono::steady_clock::now()) {
    mutant_hits = &counters_->mutant_hits;
    if (!options_.mutant.empty()) live_mutant = options_.mutant.c_str();
  }
  ~Campaign() { munmap(counters_, sizeof(CampaignCounters)); }

  int Run() {
    uint64_t database = options_.first_database;
    for (; !Done(database - options_.first_database); ++database) {
      if (!RunOne(database)) break;
    }
    const bool violated = counters_->violation[0] != '\0';
    ClearProgress();
    PrintReport(*counters_, Seconds());
    if (!violated) return options_.expect_violation ? 1 : 0;
    std::printf("violation: database %llu, image %llu (%s): %s\n", static_cast<unsigned long long>(database),
                static_cast<unsigned long long>(counters_->image), counters_->doing, counters_->violation);
    PrintReplay(options_, database, counters_->image);
    Keep();
    if (!options_.expect_violation) return 1;
    return options_.mutant.empty() || counters_->mutant_hits > 0 ? 0 : 1;
  }

 private:
  static CampaignCounters* NewCounters() {
    void* memory = mmap(nullptr, sizeof(CampaignCounters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return new (memory) CampaignCounters();
  }

  bool Done(uint64_t databases) const {
    if (options_.only_image != 0) return databases == 1;
    if (options_.databases != 0) return databases == options_.databases;
    return counters_->first_images >= options_.images && (options_.depth < 2 || counters_->second_images >= options_.images);
  }

  // In a child: each database meets the same process, and what a broken one does to it does not end the campaign's.
  bool RunOne(uint64_t database) {
    counters_->image = 0;
    counters_->doing[0] = '\0';
    std::filesystem::remove_all(directory_.File("run"));
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) RunDatabase(options_, database, directory_.File("run"), counters_);
    const int status = Await(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kDatabaseFine) return true;
    if (counters_->violation[0] == '\0') {
      const std::string how =
          WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit code " + std::to_string(WEXITSTATUS(status));
      std::snprintf(counters_->violation, sizeof(counters_->violation), "the process died: %s", how.c_str());
    }
    return false;
  }

  int Await(pid_t child) {
    uint64_t seen = UINT64_MAX;
    auto since = std::chrono::steady_clock::now();
    for (;;) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return status;
      usleep(20'000);
      const auto now = std::chrono::steady_clock::now();
      if (seen != counters_->images() + counters_->databases) {
        seen = counters_->images() + counters_->databases;
        since = now;
      } else if (now - since > kHangAfter) {
        std::snprintf(counters_->violation, sizeof(counters_->violation), "hangs");
        kill(child, SIGKILL);
      }
      ShowProgress(now);
    }
  }

  void ShowProgress(std::chrono::steady_clock::time_point now) {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (now - shown_ < std::chrono::milliseconds(terminal ? 500 : 10'000)) return;
    shown_ = now;
    std::fprintf(stderr, "%s%llu databases, %llu first and %llu second images, %.0f/s, %.0f s%s", terminal ? "\r" : "",
                 static_cast<unsigned long long>(counters_->databases), static_cast<unsigned long long>(counters_->first_images),
                 static_cast<unsigned long long>(counters_->second_images), static_cast<double>(counters_->images()) / Seconds(),
                 Seconds(), terminal ? " \033[K" : "\n");
  }
  void ClearProgress() const {
    if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
  }

  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void Keep() const {
    namespace fs = std::filesystem;
    if (options_.keep.empty()) return;
    std::error_code error;
    if (fs::exists(options_.keep, error) && !fs::is_empty(options_.keep, error)) {
      std::printf("no files are kept: %s is not empty; name another directory\n", options_.keep.c_str());
      return;
    }
    fs::copy(directory_.File("run"), options_.keep, fs::copy_options::recursive, error);
    std::printf("files kept in %s%s\n", options_.keep.c_str(), error ? " (not all)" : "");
  }

  const CampaignOptions options_;
  TestDirectory directory_;
  CampaignCounters* const counters_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_ = start_;
};

}  // namespace

int RunCampaign(const CampaignOptions& options) { return Campaign(options).Run(); }

}  // namespace braiddb::test
