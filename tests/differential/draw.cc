#include "tests/differential/draw.h"

#include <array>
#include <cstdio>

namespace braiddb::test {

namespace {

std::vector<std::string> MakeKeys() {
  using namespace std::string_literals;
  std::vector<std::string> keys = {""s,      "\0"s, "\0\0"s,     "\0a"s,        "a"s,         "a\0"s,     "a\0\0"s,  "a\0b"s,
                                   "a\xff"s, "aa"s, "aaa"s,      "ab"s,         "ab\0"s,      "ab\xff"s,  "aba"s,    "abb"s,
                                   "abc"s,   "b"s,  "ba"s,       "bb"s,         "c"s,         "\xff"s,    "\xff\0"s, "\xff\xff"s,
                                   "A"s,     "k"s,  "k0000000"s, "k0000000\0"s, "k00000000"s, "k0000001"s};
  keys.push_back("\xff\xff\xff\xff\xff\xff\xff\xff");
  keys.push_back("\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  for (int i = 0; i < 8; ++i) keys.push_back("commonprefix" + std::to_string(i));
  for (int i = 0; i < 12; ++i) keys.push_back("key" + std::to_string(i));
  keys.emplace_back(300, 'l');
  keys.push_back(std::string(300, 'l') + "m");
  return keys;
}

}  // namespace

const std::vector<std::string>& AllKeys() {
  static const std::vector<std::string> keys = MakeKeys();
  return keys;
}

uint64_t Draw::Next() {  // SplitMix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string_view Draw::Key() {
  const std::vector<std::string>& keys = AllKeys();
  for (;;) {
    // Half of all draws come from few keys, so that keys have several versions.
    const std::string& key = Chance(50) ? keys[Below(keys.size())] : keys[(Below(10) * 7 + 2) % keys.size()];
    if (key.size() >= min_key_length_) return key;
  }
}

std::vector<std::string_view> Draw::Keys(size_t count) {
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back(Key());
  return keys;
}

std::string Draw::Value() {
  const size_t kind = Below(100);
  if (kind < 5) return "";
  size_t length = Chance(30) ? 8 : 4 + Below(20);
  if (kind >= 80) length = 100 + Below(400);
  if (kind >= 94) length = 3000 + Below(6000);
  if (kind == 99) length = 70'000;
  std::array<char, 24> mark;
  std::snprintf(mark.data(), mark.size(), "%08llx", static_cast<unsigned long long>(Next() & 0xffffffff));
  std::string value = mark.data();
  value.resize(length, static_cast<char>('A' + Below(26)));
  return value;
}

std::string Quote(std::string_view bytes) {
  constexpr size_t kShown = 24;
  std::string text = "\"";
  for (const char byte : bytes.substr(0, kShown)) {
    const auto code = static_cast<unsigned char>(byte);
    std::array<char, 8> escape;
    std::snprintf(escape.data(), escape.size(), "\\x%02x", code);
    text += code >= 32 && code < 127 && byte != '"' && byte != '\\' ? std::string(1, byte) : escape.data();
  }
  text += '"';
  if (bytes.size() <= kShown) return text;
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return text + "…" + std::to_string(bytes.size()) + "#" + std::to_string(hash % 1'000'000);
}

}  // namespace braiddb::test
