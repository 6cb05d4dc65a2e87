// RunParallel: runs one task on several threads.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace braiddb {

// Runs `work(i)` for each i in [0, threads), each in its own thread if the system has that many. Rethrows one of the exceptions.
template <class Work>
void RunParallel(uint32_t threads, const Work& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto run = [&](uint32_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.emplace_back(run, static_cast<uint32_t>(others.size()) + 1);
  } catch (const std::exception&) {  // no memory or no thread: the calling thread does the rest
    for (uint32_t i = static_cast<uint32_t>(others.size()) + 1; i < threads; ++i) run(i);
  }
  run(0);
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace braiddb
