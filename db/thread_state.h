// ThreadState: the state of one thread for one database.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/histograms.h"
#include "db/live_board.h"
#include "db/sampled_latencies.h"
#include "log/log_writer.h"
#include "lsm/memtable.h"
#include "util/random.h"
#include "util/thread_counter.h"

namespace braiddb {

struct ThreadState {
  Announcements* announced = nullptr;  // in the LiveBoard
  // The end of the open segment at the last search for idle threads. See DBImpl::IsIdle.
  std::atomic<uint64_t> last_look{0};

  // The owning thread alone uses the members below.
  // The buffer in which the entry of a single update is built before it is copied to the log.
  static constexpr uint64_t kMaxStagedBytes = 1024;  // bytes
  alignas(kCacheLine) uint8_t staged[kCacheLine + kMaxStagedBytes];
  // Room for the last line of an entry that begins at the latest possible offset in a line.
  static_assert((kLastStart + kMaxStagedBytes + kCacheLine - 1) / kCacheLine * kCacheLine <= sizeof(staged));
  LogWriter writer;
  Memtable::NodeBlock nodes;
  std::vector<Memtable::NodeBlock> family_nodes;  // of families other than the default one, by id
  std::shared_ptr<LogExtent> extent;              // the extent that is being filled, of memtable extent_owner
  uint64_t extent_owner = 0;
  uint64_t uncharged_bytes = 0;
  ThreadCounter uncharged_entries;  // of all families
  ThreadCounter uncharged_owner;    // the id of their memtable
  uint64_t unpaced_entries = 0;     // charged, but not yet counted by PaceWrites
  uint64_t owed_ns = 0;             // delay that the thread has still to sleep
  std::unique_ptr<Random> random;
  std::vector<LogUpdate> updates;  // of the batch being written
  std::vector<Memtable::Insertion> insertions;

  std::atomic<uint64_t>* epoch_slot = nullptr;  // EpochManager::OwnSlot; null until the first read
  ThreadCounter writes;
  ThreadCounter batches;
  ThreadCounter log_bytes;
  ThreadCounter plain_misses;   // gets that are to be added to `gets` and `filter_negatives`
  ThreadCounter plain_hits;     // gets that are to be added to each of the next four counters
  uint32_t missing_streak = 0;  // a measure of how likely the next key is absent; see DBImpl::kMissesExpected
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
