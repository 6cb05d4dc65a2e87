// ScanAhead: scans the chunks of a merge ahead of it, from the last to the first, on several threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "compaction/chunk_scanner.h"

namespace braiddb {

// Thread safety: Take by one thread.
class ScanAhead {
 public:
  // `threads`: that scan, the one that takes included. The scanner must outlive it.
  ScanAhead(const ChunkScanner& scanner, uint32_t threads);
  ~ScanAhead();

  // Chunks must be taken in descending order.
  std::unique_ptr<ScanResult> Take(size_t chunk);

 private:
  struct Result {
    std::unique_ptr<ScanResult> scan;
    bool done = false;
  };

  std::unique_ptr<ScanResult> Scan(size_t chunk) const;
  std::unique_ptr<ScanResult> ScanOrNull(size_t chunk) const;
  void Work(size_t ahead);

  const ChunkScanner& scanner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result> results_;
  size_t next_;   // chunks below this one have not been begun
  size_t taken_;  // the merge is here
  std::vector<std::thread> helpers_;
};

}  // namespace braiddb
