// What a key holds after each of its writes: it follows from key and generation, so that any value says which write it is from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "braiddb/slice.h"

namespace braiddb::stress {

// Nothing, or what is wrong.
using Violation = std::optional<std::string>;

// Keys are known by number. Generation 0 is what is there before the first write: nothing.
// LAYOUT of a value: generation and number of the key, 4 bytes each (a tag has 8), then words that follow from these and the
// seed. Some values are shorter than that, or empty.
class Content {
 public:
  explicit Content(uint64_t seed) : seed_(seed) {}

  // Nothing: the key is deleted.
  std::optional<std::string> ValueOf(uint32_t key, uint32_t generation) const;
  bool IsDeleted(uint32_t key, uint32_t generation) const { return !SizeOf(key, generation).has_value(); }
  bool Matches(uint32_t key, uint32_t generation, Slice value) const;

  // Values of keys that several threads write: each is there once, by its tag.
  std::string TaggedValue(uint64_t tag) const;
  // Nothing: it is not exactly what some write wrote.
  std::optional<uint64_t> TagOf(Slice value) const;

 private:
  uint64_t HashOf(uint32_t key, uint32_t generation) const;
  std::optional<size_t> SizeOf(uint32_t key, uint32_t generation) const;

  const uint64_t seed_;
};

// The first 8 bytes of a value, as it is laid out above. REQUIRES: at least 8 bytes.
uint64_t HeadOf(Slice value);
inline uint64_t MakeHead(uint32_t key, uint32_t generation) { return uint64_t{key} << 32 | generation; }
inline uint32_t KeyOf(uint64_t head) { return static_cast<uint32_t>(head >> 32); }
inline uint32_t GenerationOf(uint64_t head) { return static_cast<uint32_t>(head); }

// Printable and short, for messages.
std::string Printable(Slice bytes);

}  // namespace braiddb::stress
