#include "tools/batch_writers.h"

namespace braiddb::tools {

BatchWriters::BatchWriters(DB* db, size_t threads) : db_(db) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

BatchWriters::~BatchWriters() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BatchWriters::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const WriteBatch batch = std::move(queue_.front());
    queue_.pop_front();
    const bool has_failed = !status_.ok();
    lock.unlock();
    const Status status = has_failed ? Status::OK() : db_->Write({}, batch);
    lock.lock();
    if (!has_failed && status.ok()) records_ += batch.Count();
    if (status_.ok()) status_ = status;
    --under_way_;
    done_.notify_one();
  }
}

void BatchWriters::WaitUntilFewerThan(size_t batches, std::unique_lock<std::mutex>* lock) {
  done_.wait(*lock, [&] { return under_way_ < batches; });
}

Status BatchWriters::Submit(WriteBatch batch, bool in_any_order) {
  std::unique_lock lock(mutex_);
  WaitUntilFewerThan(in_any_order && !last_was_alone_ ? threads_.size() + 2 : 1, &lock);
  last_was_alone_ = !in_any_order;
  ++under_way_;
  queue_.push_back(std::move(batch));
  work_.notify_one();
  return status_;
}

uint64_t BatchWriters::records() {
  const std::lock_guard lock(mutex_);
  return records_;
}

Status BatchWriters::Drain() {
  std::unique_lock lock(mutex_);
  WaitUntilFewerThan(1, &lock);
  return status_;
}

}  // namespace braiddb::tools
