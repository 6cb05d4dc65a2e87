#include "db_bench/rate.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace braiddb::bench {

namespace {

// Who was late by more than this does not make up for the rest.
constexpr auto kMostArrears = std::chrono::milliseconds(100);

}  // namespace

void RateLimiter::Request(uint64_t units) {
  const uint64_t before = used_.fetch_add(units, std::memory_order_relaxed);
  const std::chrono::duration<double> due(static_cast<double>(before) / rate_);
  std::this_thread::sleep_until(start_ + std::chrono::duration_cast<Clock::duration>(due));
}

double SineParameters::Rate(double seconds) const { return a * std::sin(b * seconds + c) + d; }

SinePace::SinePace(const SineParameters& parameters, const MixParameters& mix, uint64_t seed)
    : parameters_(parameters), random_(seed) {
  const double all = mix.get_ratio + mix.put_ratio + mix.seek_ratio;
  reads_ = {(mix.get_ratio + mix.seek_ratio) / all, start_};
  writes_ = {mix.put_ratio / all, start_};
}

// A rate that is not positive leaves the one before it, as in RocksDB.
void SinePace::Adjust(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = parameters_.Rate(seconds);
  const double noise = (random_.NextDouble() - 0.5) * parameters_.a * parameters_.noise;
  const double wanted = rate + noise < 0 ? rate : rate + noise;
  if (wanted > 0) rate_ = wanted;
  demands_.push_back({seconds, rate_});
  next_change_ = now + std::chrono::milliseconds(parameters_.interval_ms);
}

void SinePace::Request(Queue* queue) {
  Clock::time_point due;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (now >= next_change_) Adjust(now);
    if (rate_ <= 0) return;
    due = std::max(queue->next, now - kMostArrears);
    const std::chrono::duration<double> taken(static_cast<double>(kOperations) / (rate_ * queue->share));
    queue->next = due + std::chrono::duration_cast<Clock::duration>(taken);
  }
  std::this_thread::sleep_until(due);
}

}  // namespace braiddb::bench
