// CrashWatch: what to do when looking at an image ends the process or never ends.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tests/crash/crash_image.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// Says what was being looked at when the process dies or hangs, and keeps the image.
class CrashWatch {
 public:
  CrashWatch() {
    current_ = this;
    previous_ = signal(SIGABRT, OnSignal);
#if !defined(__SANITIZE_ADDRESS__)
    previous_segv_ = signal(SIGSEGV, OnSignal);
#endif
    thread_ = std::thread([this] { Watch(); });
  }
  ~CrashWatch() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
    signal(SIGABRT, previous_);
#if !defined(__SANITIZE_ADDRESS__)
    signal(SIGSEGV, previous_segv_);
#endif
    current_ = nullptr;
  }

  void Set(std::string text, const CrashPoint* point, const CrashImage* image, bool keep) {
    std::lock_guard lock(mutex_);
    text_ = std::move(text);
    point_ = point;
    image_ = image;
    keep_ = keep;
    since_ = std::chrono::steady_clock::now();
  }

  // In a forked child, which has work of its own.
  static void Forget() {
    current_ = nullptr;
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
  }

  // Writes the image to a place where it stays; returns that.
  static std::string Keep(const CrashPoint& point, const CrashImage& image) {
    static std::atomic<int> number{0};
    const char* parent = std::getenv("TMPDIR");
    const std::string path = std::string(parent != nullptr ? parent : "/tmp") + "/braiddb-crash-" + std::to_string(getpid()) +
                             "-" + std::to_string(number++);
    WriteImage(point, image, path);
    return path;
  }

 private:
  void Watch() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      if (std::chrono::steady_clock::now() - since_ < std::chrono::seconds(100) * kSlowdown || point_ == nullptr) continue;
      std::fprintf(stderr, "hangs for 100 seconds\n");
      lock.unlock();
      std::abort();
    }
  }

  // Not async-signal-safe; the process is lost anyway, and what this prints is worth a try.
  static void OnSignal(int number) {
    signal(number, SIG_DFL);
    if (CrashWatch* watch = std::exchange(current_, nullptr)) {
      std::fprintf(stderr, "signal %d while looking at %s\n", number, watch->text_.c_str());
      if (watch->point_ != nullptr && watch->keep_)
        std::fprintf(stderr, "image kept in %s\n", Keep(*watch->point_, *watch->image_).c_str());
    }
    raise(number);
  }

  static inline CrashWatch* current_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::string text_ = "nothing yet";
  const CrashPoint* point_ = nullptr;
  const CrashImage* image_ = nullptr;
  bool keep_ = false;
  std::chrono::steady_clock::time_point since_;
  std::thread thread_;
  void (*previous_)(int) = nullptr;
#if !defined(__SANITIZE_ADDRESS__)
  void (*previous_segv_)(int) = nullptr;
#endif
};

}  // namespace braiddb::test
