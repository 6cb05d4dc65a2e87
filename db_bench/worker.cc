#include "db_bench/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "db_bench/zipf.h"
#include "index/key_hash.h"
#include "util/format.h"

namespace braiddb::bench {

void ExitWithError(const Status& status, const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s error: %s\n", what, status.ToString().c_str());
  _exit(1);
}

Slice KeyMaker::MakeShort(uint64_t number) {
  const uint64_t big_endian = __builtin_bswap64(number);
  std::memcpy(key_.data(), reinterpret_cast<const char*>(&big_endian) + (8 - number_bytes_), number_bytes_);
  return key_;
}

// No key of a shape or a file ends with a newline, so longer keys are missing.
Slice KeyMaker::MakeShaped(uint64_t number) {
  key_.clear();
  shaped_->Append(number, &key_);
  if (is_longer_) key_.push_back('\n');
  return key_;
}

namespace {

constexpr size_t kNumberedBytes = 16;  // values of at least this size begin with their number

uint64_t WordOf(uint64_t seed, size_t index) { return Mix64(seed + index); }

uint64_t SeedOf(Slice key, size_t size, uint64_t number) { return Mix64(KeyHash(key) ^ Mix64(number ^ Mix64(size))); }

}  // namespace

ValueMaker::ValueMaker(const Flags& flags, Random* random) : size_(flags.value_size), verifiable_(flags.verify) {
  constexpr size_t kBytes = 1 << 20;
  bytes_.resize(std::max(kBytes, size_ * (verifiable_ ? 2 * flags.batch_size : 1)));
  next_number_ = random->Next();
  for (size_t i = 0; i + 8 <= bytes_.size(); i += 8) {
    const uint64_t word = random->Next();
    std::memcpy(bytes_.data() + i, &word, 8);
  }
}

void ValueMaker::MakeVerifiable(Slice key, size_t size) {
  char* const out = bytes_.data() + position_;
  const uint64_t number = size < kNumberedBytes ? 0 : next_number_++;
  const uint64_t seed = SeedOf(key, size, number);
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = at == 0 && size >= kNumberedBytes ? number : WordOf(seed, at);
    std::memcpy(out + at, &word, std::min<size_t>(8, size - at));
  }
}

bool IsValueOf(Slice key, Slice value) {
  uint64_t number = 0;
  if (value.size() >= kNumberedBytes) std::memcpy(&number, value.data(), 8);
  const uint64_t seed = SeedOf(key, value.size(), number);
  for (size_t at = value.size() < kNumberedBytes ? 0 : 8; at < value.size(); at += 8) {
    const uint64_t word = WordOf(seed, at);
    if (std::memcmp(value.data() + at, &word, std::min<size_t>(8, value.size() - at)) != 0) return false;
  }
  return true;
}

void Worker::VerifyOrExit(Slice key, Slice value) {
  stats.AddVerified();
  if (IsValueOf(key, value)) return;
  std::string hex;
  for (const char c : key) hex += Format("%02x", static_cast<unsigned char>(c));
  ExitWithError(Status::Corruption("the value of key " + hex + ", " + std::to_string(value.size()) +
                                   " bytes, is not what was put (--verify needs a database that was filled with --verify)"),
                "verify");
}

namespace {

constexpr uint64_t kMostDraws = 1 << 22;
constexpr uint64_t kMostDrawsOfAll = 1 << 25;

// The number of draws of a thread: one per operation, up to a limit.
uint64_t DrawCount(const Flags& flags, uint64_t operations) {
  const uint64_t most = std::min(kMostDraws, kMostDrawsOfAll / flags.threads);
  return flags.duration > 0 ? most : std::clamp<uint64_t>(operations, 1, most);
}

}  // namespace

Draws DrawKeys(const Flags& flags, uint64_t seed) {
  Draws draws;
  if (flags.zipf == 0) return draws;
  const ZipfDistribution zipf(static_cast<uint64_t>(flags.num), flags.zipf);
  const uint64_t counted = std::max(flags.Reads(), flags.Writes());
  draws.keys.resize(DrawCount(flags, counted > kMostDraws / flags.batch_size ? kMostDraws : counted * flags.batch_size));
  Random random(seed);
  for (uint64_t& draw : draws.keys) draw = zipf.Draw(&random);
  return draws;
}

Draws DrawMixQueries(const Flags& flags, uint64_t seed) {
  Draws draws;
  const auto num = static_cast<uint64_t>(flags.num);
  const MixGenerator generator(flags.mix, num);
  draws.queries.resize(DrawCount(flags, flags.Reads()));
  Random random(seed);
  for (MixQuery& query : draws.queries) query = generator.Make(random.Uniform(num));
  return draws;
}

namespace {

template <class DrawOne>
Draws DrawYcsb(const Flags& flags, uint64_t seed, const DrawOne& draw_one) {
  Draws draws;
  const uint64_t count = DrawCount(flags, flags.Reads());
  draws.keys.reserve(count);
  draws.percents.reserve(count);
  Random random(seed);
  for (uint64_t i = 0; i < count; ++i) {
    draws.keys.push_back(draw_one(&random));
    draws.percents.push_back(static_cast<uint8_t>(random.Uniform(100)));
  }
  return draws;
}

}  // namespace

Draws DrawYcsbRanks(const Flags& flags, uint64_t seed) {
  const ZipfDistribution zipf(static_cast<uint64_t>(flags.num), flags.zipf);
  return DrawYcsb(flags, seed, [&zipf](Random* random) { return zipf.DrawRank(random) - 1; });
}

Draws DrawYcsbKeys(const Flags& flags, uint64_t seed) {
  const auto records = static_cast<uint64_t>(flags.num);
  if (flags.ycsb_scrambled) {
    const ScrambledZipf zipf(records, flags.zipf);
    return DrawYcsb(flags, seed, [&](Random* random) { return YcsbKey(flags, zipf.Draw(random)); });
  }
  const ZipfDistribution zipf(records, flags.zipf);
  return DrawYcsb(flags, seed, [&](Random* random) { return YcsbKey(flags, zipf.Draw(random)); });
}

}  // namespace braiddb::bench
