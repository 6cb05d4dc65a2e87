#include "db_bench/rate.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace braiddb::bench {

namespace {

// A caller that is later than this does not catch up on the rest.
constexpr auto kMostArrears = std::chrono::milliseconds(100);

}  // namespace

double SineParameters::Rate(double seconds) const { return a * std::sin(b * seconds + c) + d; }

// A rate that is not positive keeps the previous rate, as in RocksDB.
double SineRate::At(Clock::time_point now) {
  if (!started()) start_ = next_change_ = now;
  if (now < next_change_) return rate_;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = parameters_.Rate(seconds);
  const double noise = (random_.NextDouble() - 0.5) * parameters_.a * parameters_.noise;
  const double wanted = rate + noise < 0 ? rate : rate + noise;
  if (wanted > 0) rate_ = wanted;
  demands_.push_back({seconds, rate_});
  next_change_ = now + std::chrono::milliseconds(parameters_.interval_ms);
  return rate_;
}

Clock::time_point RateLimiter::DueBySine(uint64_t units) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!sine_.started()) next_ = now;
  const double rate = sine_.At(now);
  if (rate <= 0) return now;
  const Clock::time_point due = std::max(next_, now - kMostArrears);
  next_ = due + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(units) / rate));
  return due;
}

Clock::time_point RateLimiter::Request(uint64_t units) {
  Clock::time_point due;
  if (sine_.active()) {
    due = DueBySine(units);
  } else {
    std::call_once(started_, [this] { start_ = Clock::now(); });
    const uint64_t before = used_.fetch_add(units, std::memory_order_relaxed);
    due =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(before) / rate_));
  }
  if (Clock::now() >= due) return due;
  std::this_thread::sleep_until(due);
  return Clock::now();
}

SinePace::SinePace(const SineParameters& parameters, const MixParameters& mix, uint64_t seed) : sine_(parameters, seed) {
  const double all = mix.get_ratio + mix.put_ratio + mix.seek_ratio;
  reads_ = {(mix.get_ratio + mix.seek_ratio) / all, {}};
  writes_ = {mix.put_ratio / all, {}};
}

void SinePace::Request(Queue* queue) {
  Clock::time_point due;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (!sine_.started()) reads_.next = writes_.next = now;
    const double rate = sine_.At(now);
    if (rate <= 0) return;
    due = std::max(queue->next, now - kMostArrears);
    const std::chrono::duration<double> taken(static_cast<double>(kOperations) / (rate * queue->share));
    queue->next = due + std::chrono::duration_cast<Clock::duration>(taken);
  }
  std::this_thread::sleep_until(due);
}

}  // namespace braiddb::bench
