// Worker: the context of a benchmark's body in each of its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/flags.h"
#include "db_bench/key_shape.h"
#include "db_bench/mixgraph.h"
#include "db_bench/rate.h"
#include "db_bench/stats.h"
#include "util/random.h"

namespace braiddb::bench {

// Ends the process with a message. Runs no destructors, because other threads may be inside the database.
[[noreturn]] void ExitWithError(const Status& status, const char* what);
// The same, if the status is not OK.
inline void ExitOnError(const Status& status, const char* what) {
  if (!status.ok()) ExitWithError(status, what);
}

// Counts operations. With --duration checks the clock every thousand operations instead.
class OpLimit {
 public:
  // REQUIRES: max_ops < UINT64_MAX.
  OpLimit(int64_t seconds, uint64_t max_ops) : timed_(seconds > 0), decides_at_(timed_ ? kStride : max_ops + 1) {
    if (timed_) deadline_ = Clock::now() + std::chrono::seconds(seconds);
  }

  // Call before each step of `count` operations.
  bool Done(uint64_t count = 1) {
    ops_ += count;
    return __builtin_expect(ops_ >= decides_at_, 0) && IsOver();
  }

 private:
  static constexpr uint64_t kStride = 1000;

  bool IsOver() {
    if (!timed_) return true;
    decides_at_ = (ops_ / kStride + 1) * kStride;
    return Clock::now() >= deadline_;
  }

  uint64_t ops_ = 0;
  const bool timed_;
  uint64_t decides_at_;  // below this count no decision is needed
  Clock::time_point deadline_;
};

// Keys as in RocksDB's db_bench: the number big-endian in up to 8 bytes, padded with '0' to the key size. With --key_shape or
// --key_file: keys of Flags::shaped_keys.
class KeyMaker {
 public:
  explicit KeyMaker(size_t size) : key_(size, '0'), number_bytes_(size < 8 ? size : 8) {}
  // The flags must outlive the object.
  explicit KeyMaker(const Flags& flags) : KeyMaker(flags.shaped_keys == nullptr ? flags.key_size : 0) {
    shaped_ = flags.shaped_keys.get();
    is_longer_ = flags.longer_keys;
  }

  // Later keys have a prefix that no other key has. REQUIRES: keys of more than 8 bytes, without --key_shape and --key_file.
  void MarkMissing() { key_[8] = '1'; }

  // Valid until the next call.
  Slice Make(uint64_t number) {
    if (__builtin_expect(number_bytes_ < 8, 0)) return shaped_ == nullptr ? MakeShort(number) : MakeShaped(number);
    const uint64_t big_endian = __builtin_bswap64(number);
    std::memcpy(key_.data(), &big_endian, 8);
    return key_;
  }

 private:
  Slice MakeShort(uint64_t number);
  Slice MakeShaped(uint64_t number);

  std::string key_;
  const size_t number_bytes_;  // 0: the key is of *shaped_
  const ShapedKeys* shaped_ = nullptr;
  bool is_longer_ = false;
};

// Whether ValueMaker made the value for the key, with --verify. All bytes depend on the key, the size, and, for values of at
// least 16 bytes, on the number in the first 8 bytes. The function cannot tell which of two values of a key is newer.
bool IsValueOf(Slice key, Slice value);

// Values: parts of a buffer of random bytes. With --verify they are derived from their keys.
class ValueMaker {
 public:
  // Without --verify, values are valid as long as the maker. With --verify only the last --batch_size values are.
  ValueMaker(const Flags& flags, Random* random);

  Slice Make(Slice key) { return Make(key, size_); }
  // REQUIRES: size <= 1 MiB.
  Slice Make(Slice key, size_t size) {
    if (position_ + size > bytes_.size()) position_ = 0;
    const Slice value(bytes_.data() + position_, size);
    if (__builtin_expect(verifiable_, 0)) MakeVerifiable(key, size);
    position_ += size;
    return value;
  }

 private:
  // Writes the value at position_.
  void MakeVerifiable(Slice key, size_t size);

  std::string bytes_;
  const size_t size_;
  const bool verifiable_;
  uint64_t next_number_;
  size_t position_ = 0;
};

// The records of the ycsb benchmarks since the load.
struct YcsbRecords {
  std::atomic<uint64_t> count{0};  // all smaller numbers exist; 0: this process has loaded no records
};

// Objects that the threads of one benchmark share.
struct Shared {
  Shared(const Flags& flags, YcsbRecords* ycsb_records)
      : write_rate(flags.benchmark_write_rate_limit, flags.write_sine),
        read_rate(flags.benchmark_read_rate_limit),
        ycsb_rate(flags.ycsb_target),
        sine(flags.sine, flags.mix, flags.seed),
        ycsb(ycsb_records),
        ycsb_inserted(flags.threads) {}

  RateLimiter write_rate;
  RateLimiter read_rate;
  RateLimiter ycsb_rate;
  SinePace sine;
  YcsbRecords* const ycsb;
  std::vector<std::atomic<uint64_t>> ycsb_inserted;  // by thread
  std::atomic<uint32_t> finished{0};                 // number of threads whose body has ended
};

// Random draws for the operations of a thread. They are made before the clock starts, so their cost is not measured. If a thread
// does more operations, it reuses them from the start. Unused members are empty.
struct Draws {
  std::vector<uint64_t> keys;     // numbers of keys, or as a draw function below describes
  std::vector<uint8_t> percents;  // of ycsb: one per key, in [0, 100); selects the kind of operation
  std::vector<MixQuery> queries;  // of mixgraph

  uint64_t bytes() const { return keys.size() * sizeof keys[0] + percents.size() + queries.size() * sizeof queries[0]; }
};

// For a benchmark that draws its keys by `zipf`. Empty if `zipf` is 0.
Draws DrawKeys(const Flags& flags, uint64_t seed);
Draws DrawMixQueries(const Flags& flags, uint64_t seed);
// Draws ranks of records by popularity, from 0, instead of keys.
Draws DrawYcsbRanks(const Flags& flags, uint64_t seed);
// Draws keys of records. Records of neighbouring popularity were not loaded one after the other.
Draws DrawYcsbKeys(const Flags& flags, uint64_t seed);

// The key number of a record. For keys of eight bytes a bijection, so no two records share a key. Shorter keys are in order. With
// --key_shape or --key_file the number is the record's.
inline uint64_t YcsbKey(const Flags& flags, uint64_t record) {
  return flags.key_size < 8 || flags.shaped_keys != nullptr ? record : Mix64(record);
}

struct Worker {
  Worker(const Flags& run_flags, uint32_t thread, uint64_t seed, Draws drawn, Engine* of, std::unique_ptr<Session> session,
         Shared* with)
      : flags(run_flags),
        id(thread),
        random(seed),
        engine(of),
        db(std::move(session)),
        shared(with),
        stats(run_flags, thread),
        keys(run_flags),
        values(run_flags, &random),
        draws(std::move(drawn)),
        next_key(draws.keys.begin()) {}

  // The end of a benchmark whose progress is reported.
  OpLimit Limit(uint64_t max_ops) {
    stats.Expect(max_ops, flags.duration);
    return OpLimit(flags.duration, max_ops);
  }
  // The end of a benchmark that ignores --duration.
  OpLimit CountedLimit(uint64_t max_ops) {
    stats.Expect(max_ops, 0);
    return OpLimit(0, max_ops);
  }
  void Pace(RateLimiter* limiter, uint64_t units) {
    if (!limiter->active()) return;
    limiter->Request(units);
    stats.ResetLastOpTime();
  }
  // Follows a schedule. The latency of the next operation counts from the time when it was due. So a slow operation also shows in
  // the latencies of the operations that it delays.
  void KeepSchedule(RateLimiter* limiter) {
    if (limiter->active()) stats.StartNextOpAt(limiter->Request(1));
  }
  // The number of a key, drawn by --zipf.
  uint64_t RandomNumber() {
    if (next_key == draws.keys.end()) {
      if (draws.keys.empty()) return random.Uniform(static_cast<uint64_t>(flags.num));
      next_key = draws.keys.begin();
    }
    return *next_key++;
  }
  // With --verify, ends the process if the value was never put with the key.
  void Verify(Slice key, Slice value) {
    if (__builtin_expect(flags.verify, 0)) VerifyOrExit(key, value);
  }
  Slice RandomKey() { return keys.Make(RandomNumber()); }

  const Flags& flags;
  const uint32_t id;
  Random random;
  Engine* const engine;               // null for the benchmarks of the memory itself
  const std::unique_ptr<Session> db;  // null as well
  Shared* const shared;
  Stats stats;
  bool exclude_from_report = false;
  KeyMaker keys;
  ValueMaker values;
  const Draws draws;
  std::vector<uint64_t>::const_iterator next_key;

 private:
  void VerifyOrExit(Slice key, Slice value);
};

}  // namespace braiddb::bench
