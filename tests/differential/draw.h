// Draw: the random choices of one call. Both libraries draw from the same seed, so they get the same arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braiddb::test {

class Draw {
 public:
  // Keys have at least `min_key_length` bytes.
  explicit Draw(uint64_t seed, size_t min_key_length = 0) : state_(seed), min_key_length_(min_key_length) {}

  uint64_t Next();
  size_t Below(size_t count) { return static_cast<size_t>(Next() % count); }
  bool Chance(unsigned percent) { return Next() % 100 < percent; }
  // One of some sixty keys: empty ones, shared prefixes, bytes 0x00 and 0xff, a long one. It lives as long as the program.
  std::string_view Key();
  // `count` keys, with repetitions.
  std::vector<std::string_view> Keys(size_t count);
  // Mostly a few bytes; up to 70,000. Values of different calls differ.
  std::string Value();

 private:
  uint64_t state_;
  const size_t min_key_length_;
};

// Bytes for reports: printable, and short. Long ones are shown by their beginning, length and hash.
std::string Quote(std::string_view bytes);

// All keys that Draw::Key can give.
const std::vector<std::string>& AllKeys();

}  // namespace braiddb::test
