#include "db_stress/content.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "util/random.h"

namespace braiddb::stress {

namespace {

constexpr size_t kHeadSize = 8;

// Word `i` of a value. Word 0 is the head.
uint64_t WordOf(uint64_t head, uint64_t hash, size_t i) { return i == 0 ? head : Mix64(hash + i); }

std::string MakeValue(uint64_t head, uint64_t hash, size_t size) {
  std::string value(size, '\0');
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = WordOf(head, hash, at / 8);
    std::memcpy(value.data() + at, &word, std::min<size_t>(8, size - at));
  }
  return value;
}

bool IsValue(Slice value, uint64_t head, uint64_t hash, size_t size) {
  if (value.size() != size) return false;
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t word = WordOf(head, hash, at / 8);
    if (std::memcmp(value.data() + at, &word, std::min<size_t>(8, size - at)) != 0) return false;
  }
  return true;
}

size_t SizeOfTagged(uint64_t hash) { return kHeadSize + (hash >> 40) % ((hash >> 20) % 64 == 0 ? 4000 : 120); }

}  // namespace

Violation Judge(const Status& status, const char* what) {
  if (status.ok()) return std::nullopt;
  return std::string(what) + ": " + status.ToString();
}

uint64_t Content::HashOf(uint32_t key, uint32_t generation) const { return Mix64(seed_ ^ Mix64(MakeHead(key, generation))); }

// Mostly ten to two hundred bytes. Sometimes none, thousands, or more than a segment.
std::optional<size_t> Content::SizeOf(uint32_t key, uint32_t generation) const {
  const uint64_t hash = HashOf(key, generation);
  if (generation == 0 || hash % 8 == 0) return std::nullopt;
  const uint64_t kind = (hash >> 3) % 8192, size = hash >> 32;
  if (kind == 0) return 262'144 + size % 100'000;
  if (kind < 16) return 4096 + size % 60'000;
  if (kind < 128) return size % 5000;
  if (kind < 512) return size % kHeadSize;
  return kHeadSize + size % 200;
}

std::optional<std::string> Content::ValueOf(uint32_t key, uint32_t generation) const {
  const auto size = SizeOf(key, generation);
  if (!size) return std::nullopt;
  return MakeValue(MakeHead(key, generation), HashOf(key, generation), *size);
}

bool Content::Matches(uint32_t key, uint32_t generation, Slice value) const {
  const auto size = SizeOf(key, generation);
  return size && IsValue(value, MakeHead(key, generation), HashOf(key, generation), *size);
}

std::string Content::TaggedValue(uint64_t tag) const {
  const uint64_t hash = Mix64(seed_ ^ tag);
  return MakeValue(tag, hash, SizeOfTagged(hash));
}

std::optional<uint64_t> Content::TagOf(Slice value) const {
  if (value.size() < kHeadSize) return std::nullopt;
  const uint64_t tag = HeadOf(value), hash = Mix64(seed_ ^ tag);
  if (!IsValue(value, tag, hash, SizeOfTagged(hash))) return std::nullopt;
  return tag;
}

uint64_t HeadOf(Slice value) {
  uint64_t head;
  std::memcpy(&head, value.data(), kHeadSize);
  return head;
}

std::string Printable(Slice bytes) {
  constexpr size_t kShown = 40;
  std::string text = "'";
  for (const char c : bytes.substr(0, kShown)) {
    char escaped[8];
    const auto byte = static_cast<unsigned char>(c);
    std::snprintf(escaped, sizeof(escaped), byte >= 0x20 && byte < 0x7f ? "%c" : "\\x%02x", byte);
    text += escaped;
  }
  return text + "'" + (bytes.size() > kShown ? "… (" + std::to_string(bytes.size()) + " bytes)" : "");
}

}  // namespace braiddb::stress
