// BatchWriters: threads that write batches while their caller makes more.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "braiddb/db.h"

namespace braiddb::tools {

// CONCURRENCY  `mutex_` guards all fields below it. Writers wait in `work_` for batches. The caller waits in `done_` for room and
//              for the end of batches.
// Thread safety: one thread calls Submit and Drain.
class BatchWriters {
 public:
  BatchWriters(DB* db, size_t threads);
  // Waits for the batches under way.
  ~BatchWriters();
  BatchWriters(const BatchWriters&) = delete;
  BatchWriters& operator=(const BatchWriters&) = delete;

  // Hands over a batch. If `in_any_order`, it may be written beside others that are; otherwise it is written after all earlier
  // batches and before all later ones. Returns the first error of a batch; all later batches are dropped.
  Status Submit(WriteBatch batch, bool in_any_order);
  // Returns when no batch is under way.
  Status Drain();
  // In the batches that were written without an error.
  uint64_t records();

 private:
  void Run();
  void WaitUntilFewerThan(size_t batches, std::unique_lock<std::mutex>* lock);

  DB* const db_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<WriteBatch> queue_;
  size_t under_way_ = 0;  // queued or being written
  uint64_t records_ = 0;
  bool last_was_alone_ = false;
  bool ends_ = false;
  Status status_;
  std::vector<std::thread> threads_;
};

}  // namespace braiddb::tools
