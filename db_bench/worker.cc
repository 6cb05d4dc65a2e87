#include "db_bench/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "db_bench/zipf.h"

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

ValueMaker::ValueMaker(size_t size, Random* random) : size_(size) {
  constexpr size_t kBytes = 1 << 20;
  bytes_.resize(std::max(kBytes, size));
  for (size_t i = 0; i + 8 <= bytes_.size(); i += 8) {
    const uint64_t word = random->Next();
    std::memcpy(bytes_.data() + i, &word, 8);
  }
}

namespace {

constexpr uint64_t kMostDraws = 1 << 22;
constexpr uint64_t kMostDrawsOfAll = 1 << 25;

// As many as a thread does operations, within reason.
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
