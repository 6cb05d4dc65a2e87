// Reads that are measured for the PerfContext of their thread, or for histograms.
#include "db/read_path.h"

namespace braiddb {

template <class Deliver>
Status DBImpl::ObserveRead(const ReadOptions& options, const Family& family, Slice key, const Deliver& deliver) {
  // Another thread may end the sampling meanwhile.
  const bool is_timed = observes_.load(std::memory_order_relaxed);
  const uint64_t begin = is_timed ? perf::NowNs() : 0;
  const auto hand_over = [&](auto&& found, size_t bytes) {
    perf::Add(&PerfContext::get_read_bytes, bytes);
    Measure(HistogramKind::kBytesPerRead, bytes);
    const perf::Timer timed(&PerfContext::get_post_process_time);
    return deliver(std::forward<decltype(found)>(found));
  };
  const auto entry = [&](const LogEntry* found) {
    return found == nullptr ? deliver(found) : hand_over(found, found->value().size());
  };
  const auto merged = [&](std::string&& value) { return hand_over(std::move(value), value.size()); };
  // As ReadKey.
  ThreadState* const own = threads_.Find(PeekThreadIndex());
  const bool is_missing = IsPlainRead(options, family, own) && IsExpectedMiss(ObservedRead(), family, family.HashOf(key), own);
  Status status = is_missing ? deliver(static_cast<const LogEntry*>(nullptr))
                             : ReadKeyAs(ObservedRead(), options, family, key, Either{entry, merged});
  if (!is_timed) return status;
  const uint64_t end = perf::NowNs();
  if (ThreadState* const thread = threads_.Get()) Sample(&thread->sampled_gets, end, end - begin);
  Measure(HistogramKind::kGetMicros, end - begin);
  return status;
}

template Status DBImpl::ObserveRead(const ReadOptions&, const Family&, Slice, const AnyDelivery&);
template void DBImpl::ReadKeysAs(const ObservedRead&, const ReadOptions&, const AnyFamilies&, const std::vector<Slice>&,
                                 std::vector<std::string>*, std::vector<Status>*);

}  // namespace braiddb
