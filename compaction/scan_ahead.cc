#include "compaction/scan_ahead.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace braiddb {

ScanAhead::ScanAhead(const ChunkScanner& scanner, uint32_t threads)
    : scanner_(scanner), results_(scanner.chunks()), next_(scanner.chunks()), taken_(scanner.chunks()) {
  const auto helpers = static_cast<uint32_t>(std::min<size_t>(threads - 1, scanner.chunks() / 4));
  const size_t ahead = 4 * (helpers + 1);
  helpers_.reserve(helpers);
  try {
    for (uint32_t i = 0; i < helpers; ++i) helpers_.emplace_back([this, ahead] { Work(ahead); });
  } catch (const std::exception&) {  // no memory or no thread: continue with fewer helpers
  }
}

// Also runs if the merge was stopped or has failed. next_ = 0 tells the helpers that no chunk is left.
ScanAhead::~ScanAhead() {
  {
    std::lock_guard lock(mutex_);
    next_ = 0;
  }
  changed_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

// Claims the chunk if no helper has claimed it, and scans it. Otherwise waits for the helper. Setting taken_ lets waiting helpers
// claim further chunks.
std::unique_ptr<ScanResult> ScanAhead::Take(size_t chunk) {
  std::unique_lock lock(mutex_);
  taken_ = chunk;
  changed_.notify_all();
  if (next_ == chunk + 1) {  // no helper has claimed the chunk
    --next_;
    lock.unlock();
    return Scan(chunk);
  }
  changed_.wait(lock, [&] { return results_[chunk].done; });
  lock.unlock();
  // Null: the helper had no memory for the result. The chunk is then scanned here; it is not merged before Take returns.
  return results_[chunk].scan != nullptr ? std::move(results_[chunk].scan) : Scan(chunk);
}

std::unique_ptr<ScanResult> ScanAhead::Scan(size_t chunk) const {
  auto result = std::make_unique<ScanResult>();
  scanner_.Scan(chunk, result.get());
  return result;
}

// A helper must not throw. Null tells Take to scan the chunk itself.
std::unique_ptr<ScanResult> ScanAhead::ScanOrNull(size_t chunk) const {
  try {
    return Scan(chunk);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The destructor ends the loop by next_ = 0. A claimed chunk is always finished, so Take never waits forever.
void ScanAhead::Work(size_t ahead) {
  std::unique_lock lock(mutex_);
  while (next_ > 0) {
    if (next_ + ahead < taken_) {
      changed_.wait(lock);
      continue;
    }
    const size_t chunk = --next_;
    lock.unlock();
    auto scan = ScanOrNull(chunk);
    lock.lock();
    results_[chunk] = {std::move(scan), true};
    changed_.notify_all();
  }
}

}  // namespace braiddb
