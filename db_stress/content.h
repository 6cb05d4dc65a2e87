// Content: the value of a key after each of its writes. It follows from key and generation, so each value identifies its write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "braiddb/slice.h"
#include "braiddb/status.h"

namespace braiddb::stress {

// A description of the violation, or nothing.
using Violation = std::optional<std::string>;

// The violation that a call should have succeeded; nothing if it did. `what`: the name of the call.
Violation Judge(const Status& status, const char* what);

// Keys are identified by number. Generation 0 is the state before the first write: the key does not exist.
// LAYOUT of a value: generation and number of the key, 4 bytes each (or a tag of 8 bytes), then words that follow from these and
// the seed. Some values are shorter, or empty.
class Content {
 public:
  explicit Content(uint64_t seed) : seed_(seed) {}

  // Nothing: the key is deleted.
  std::optional<std::string> ValueOf(uint32_t key, uint32_t generation) const;
  bool IsDeleted(uint32_t key, uint32_t generation) const { return !SizeOf(key, generation).has_value(); }
  bool Matches(uint32_t key, uint32_t generation, Slice value) const;

  // Values of keys that several threads write. Each value occurs once, identified by its tag.
  std::string TaggedValue(uint64_t tag) const;
  // Nothing: no write wrote exactly this value.
  std::optional<uint64_t> TagOf(Slice value) const;

 private:
  uint64_t HashOf(uint32_t key, uint32_t generation) const;
  std::optional<size_t> SizeOf(uint32_t key, uint32_t generation) const;

  const uint64_t seed_;
};

// The first 8 bytes of a value, as described above. REQUIRES: at least 8 bytes.
uint64_t HeadOf(Slice value);
inline uint64_t MakeHead(uint32_t key, uint32_t generation) { return uint64_t{key} << 32 | generation; }
inline uint32_t KeyOf(uint64_t head) { return static_cast<uint32_t>(head >> 32); }
inline uint32_t GenerationOf(uint64_t head) { return static_cast<uint32_t>(head); }

// Short and printable, for messages.
std::string Printable(Slice bytes);

}  // namespace braiddb::stress
