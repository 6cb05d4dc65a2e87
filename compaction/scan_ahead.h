// ScanAhead: scans the chunks of a merge on several threads, ahead of the merge, from the last chunk to the first.
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

// GOAL   The merging thread finds the scan of the next chunk finished.
// STEPS  Helper threads claim chunks in descending order and scan them. They stop about 4 chunks per thread ahead of the merge,
//        which bounds the DRAM of unmerged results. If no helper has claimed the next chunk, Take scans it.
// CRASH  A scan stores nothing to persistent memory.
// CONCURRENCY  The mutex guards all members but the scanner. A chunk is scanned without the mutex, by the thread that claimed it.
//              While chunk c is merged, only chunks below c are scanned. ScanChunk allows this (zipper_scan.h).
// Thread safety: Take may be called by one thread.
class ScanAhead {
 public:
  // `threads`: number of threads that scan, the calling thread included. The scanner must outlive this object.
  ScanAhead(const ChunkScanner& scanner, uint32_t threads);
  ~ScanAhead();

  // Waits for the scan of the chunk and returns it. Chunks must be taken in descending order.
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
  size_t next_;   // chunks below this number are not claimed yet
  size_t taken_;  // the chunk that was taken last
  std::vector<std::thread> helpers_;
};

}  // namespace braiddb
