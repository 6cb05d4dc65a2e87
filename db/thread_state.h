// ThreadState: what one thread of the process keeps for one database.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/histograms.h"
#include "db/sampled_latencies.h"
#include "log/log_writer.h"
#include "lsm/memtable.h"
#include "util/announced_number.h"
#include "util/random.h"
#include "util/thread_counter.h"

namespace braiddb {

struct ThreadState {
  // While a write is under way: a number not larger than its first sequence number. See DBImpl::WaitPublished.
  AnnouncedNumber in_flight;
  // While an operation on several keys is under way: a number not larger than its position. See db/visibility.cc.
  AnnouncedNumber barrier;
  // The last sequence number of this thread's writes that GetUpdatesSince shows.
  std::atomic<uint64_t> last_update{0};
  // Where the open segment ended when somebody last looked for an idle thread. See DBImpl::IsIdle.
  std::atomic<uint64_t> last_look{0};

  // Used by the owning thread only.
  // Where a single update's entry is made before it is copied to the log.
  static constexpr uint64_t kMostStaged = 1024;  // bytes
  alignas(kCacheLine) uint8_t staged[kCacheLine + kMostStaged];
  // The last line of an entry that begins as late in a line as one may.
  static_assert((kLastStart + kMostStaged + kCacheLine - 1) / kCacheLine * kCacheLine <= sizeof(staged));
  LogWriter writer;
  Memtable::NodeBlock nodes;
  std::vector<Memtable::NodeBlock> family_nodes;  // of families other than the default one, by id
  std::shared_ptr<LogExtent> extent;              // the stretch being filled, of memtable extent_owner
  uint64_t extent_owner = 0;
  uint64_t uncharged_bytes = 0;
  uint64_t uncharged_entries = 0;
  uint64_t unpaced_entries = 0;  // charged, but not yet looked at by PaceWrites
  uint64_t owed_ns = 0;          // that this thread has to sleep yet
  std::unique_ptr<Random> random;
  std::vector<LogUpdate> updates;  // of the batch being written
  std::vector<Memtable::Insertion> insertions;

  std::atomic<uint64_t>* epoch_slot = nullptr;  // EpochManager::OwnSlot, once it was asked for
  ThreadCounter writes;
  ThreadCounter batches;
  ThreadCounter log_bytes;
  ThreadCounter plain_misses;   // gets that `gets` and `filter_negatives` do not count, and should
  ThreadCounter plain_hits;     // gets that the next four do not count, and each of them should
  uint32_t missing_streak = 0;  // how likely the next key is to be missing; see DBImpl::kMissesExpected
  ThreadCounter gets;
  ThreadCounter gets_found;
  ThreadCounter lookup_cache_hits;
  ThreadCounter local_visits;
  ThreadCounter filter_negatives;
  ThreadCounter remote_visits;
  ThreadCounter write_delays;
  ThreadCounter write_delay_us;
  LazyHistograms histograms;
  SampledLatencies sampled_gets;
  SampledLatencies sampled_writes;
};

}  // namespace braiddb
