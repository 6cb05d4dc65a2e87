#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "util/long_hash.h"
#include "util/long_hash_avx2.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

std::string RandomBytes(size_t bytes) {
  Random random(301);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random.Next());
  return text;
}

// XXH3 has other branches up to 16, 128, 240 and 1024 bytes.
TEST(LongHashTest, IsXxh3) {
  const std::string text = RandomBytes(300'000);
  for (const size_t bytes : {0, 1, 16, 17, 128, 129, 240, 241, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 65'537, 299'990}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      for (size_t shift = 0; shift < 3; ++shift) {
        const uint64_t wanted = XXH3_64bits_withSeed(&text[shift], bytes, seed);
        EXPECT_EQ(HashLong(&text[shift], bytes, seed), wanted) << bytes;
        if (__builtin_cpu_supports("avx2")) {
          EXPECT_EQ(HashLongAvx2(&text[shift], bytes, seed), wanted) << bytes;
        }
        LongHash whole(seed);
        whole.Add(&text[shift], bytes);
        EXPECT_EQ(whole.Result(), wanted) << bytes;
      }
    }
  }
}

TEST(LongHashTest, PiecesAreOneInput) {
  const std::string text = RandomBytes(20'000);
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    const size_t bytes = random.Uniform(text.size() + 1);
    LongHash hash(static_cast<uint64_t>(round));
    hash.Add(nullptr, 0);
    for (size_t at = 0; at < bytes;) {
      const size_t piece = std::min<size_t>(bytes - at, random.Uniform(random.Uniform(2) == 0 ? 101 : 5001));
      hash.Add(&text[at], piece);
      at += piece;
    }
    EXPECT_EQ(hash.Result(), XXH3_64bits_withSeed(text.data(), bytes, static_cast<uint64_t>(round))) << bytes;
  }
}

}  // namespace
}  // namespace braiddb::test
