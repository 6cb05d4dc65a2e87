#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tools/command.h"
#include "util/format.h"

namespace braiddb::tools {

Progress::Progress(std::string action, Unit unit, uint64_t total)
    : action_(std::move(action)), unit_(unit), total_(total), is_shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_shown_) EndProgress();
}

std::string Progress::Text(const std::string& action, Unit unit, uint64_t done, uint64_t total, double seconds) {
  const auto text_of = [unit](uint64_t amount) { return unit == Unit::kBytes ? BytesText(amount) : std::to_string(amount); };
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = action + ": " + text_of(done);
  if (total > done) text += " of about " + text_of(total);
  text += ", " + text_of(static_cast<uint64_t>(rate)) + " per second";
  if (total > done && rate > 0) text += Format(", %.0f s left", static_cast<double>(total - done) / rate);
  return text;
}

void Progress::Show(uint64_t done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  const std::string text = Text(action_, unit_, done, total_, std::chrono::duration<double>(now - start_).count());
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
}

std::optional<std::string> PassProgress::Line(uint64_t done, uint64_t total, Clock::time_point now) {
  if (done == 0 || passes_ == 0) {
    ++passes_;
    pass_start_ = now;
  }
  if (now < next_) return std::nullopt;
  next_ = now + std::chrono::milliseconds(200);
  const std::string& action = actions_[std::min(passes_, actions_.size()) - 1];
  return Progress::Text(action, Progress::Unit::kBytes, done, total, std::chrono::duration<double>(now - pass_start_).count());
}

PolledProgress::PolledProgress(std::string action, Progress::Unit unit, uint64_t total, std::function<uint64_t()> done) {
  if (isatty(STDERR_FILENO) == 0) return;
  thread_ = std::thread([this, action = std::move(action), unit, total, done = std::move(done)] {
    Progress progress(action, unit, total);
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, std::chrono::milliseconds(200), [this] { return is_ending_; })) progress.UpdateNow(done());
  });
}

PolledProgress::~PolledProgress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

}  // namespace braiddb::tools
