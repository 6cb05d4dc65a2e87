#include "db_bench/key_shape.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "braiddb/db.h"
#include "util/random.h"

namespace braiddb::bench {

namespace {

void AppendBigEndian(uint64_t number, size_t bytes, std::string* key) {
  const uint64_t big_endian = __builtin_bswap64(number);
  key->append(reinterpret_cast<const char*>(&big_endian) + (sizeof(big_endian) - bytes), bytes);
}

// Appends at least `digits` digits, padded with '0'.
void AppendDigits(uint64_t number, uint64_t base, size_t digits, std::string* key) {
  std::array<char, 20> reversed;
  size_t size = 0;
  for (; number != 0 || size < digits; number /= base) reversed[size++] = "0123456789abcdef"[number % base];
  key->append(std::make_reverse_iterator(reversed.begin() + size), reversed.rend());
}
void AppendDecimal(uint64_t number, size_t digits, std::string* key) { AppendDigits(number, 10, digits, key); }
void AppendHex(uint64_t number, size_t digits, std::string* key) { AppendDigits(number, 16, digits, key); }

void AppendRandom8(uint64_t number, std::string* key) { AppendBigEndian(Mix64(number), 8, key); }

void AppendRandom16(uint64_t number, std::string* key) {
  AppendRandom8(number, key);
  AppendBigEndian(Mix64(~number), 8, key);
}

void AppendDecimal16(uint64_t number, std::string* key) { AppendDecimal(number, 16, key); }

void AppendUser(uint64_t number, std::string* key) {
  key->append("user:");
  AppendDecimal(number, 12, key);
}

// A random UUID (version 4). The bits of the first half that the version replaces go into the second half, so all are different.
void AppendUuid(uint64_t number, std::string* key) {
  const uint64_t half = Mix64(number);
  AppendHex(half >> 32, 8, key);
  key->push_back('-');
  AppendHex(half >> 16 & 0xffff, 4, key);
  key->append("-4");
  AppendHex(half >> 4 & 0xfff, 3, key);
  key->push_back('-');
  const uint64_t other = Mix64(half);
  AppendHex(0x8000 | other >> 50, 4, key);
  key->push_back('-');
  AppendHex((half & 0xf) << 44 | (other & 0xfffffffffff), 12, key);
}

void AppendTenant(uint64_t number, std::string* key) {
  constexpr uint64_t kTenants = 1000;
  key->append("tenant-");
  AppendDecimal(number % kTenants, 4, key);
  key->append("/object/");
  AppendHex(number, 16, key);
}

void AppendComposite(uint64_t number, std::string* key) {
  constexpr uint64_t kTables = 16;
  AppendBigEndian(1 + number % kTables, 4, key);
  AppendBigEndian(number, 8, key);
}

// Pages in directories of a host. The page's number ends the key, so all keys are different.
void AppendUrl(uint64_t number, std::string* key) {
  constexpr std::array<std::string_view, 4> kDomains{"com", "org", "net", "de"};
  constexpr std::array<std::string_view, 8> kWords{"news", "shop", "articles", "wiki", "blog", "products", "forum", "images"};
  constexpr int kPagesOfDirectory = 6, kPagesOfHost = 12;  // bits
  const uint64_t host = number >> kPagesOfHost;
  const uint64_t host_bits = Mix64(host);
  uint64_t bits = Mix64(number >> kPagesOfDirectory);
  key->append(kDomains[host_bits % kDomains.size()]).append(".").append(kWords[host_bits / 4 % kWords.size()]);
  AppendDecimal(host, 1, key);
  key->append(".www");
  for (uint64_t directories = 1 + bits % 4; directories > 0; --directories) {
    bits >>= 3;
    key->append("/").append(kWords[bits % kWords.size()]);
  }
  key->append("/p");
  AppendDecimal(number, 4, key);
}

// The newest entry comes first, as in rows of Bigtable. Eight entries have the same millisecond.
void AppendReversedTime(uint64_t number, std::string* key) {
  constexpr uint64_t kFirst = 1'700'000'000'000;  // milliseconds
  AppendBigEndian(INT64_MAX - (kFirst + number / 8), 8, key);
  AppendBigEndian(Mix64(number) << 3 | number % 8, 4, key);
}

void AppendLate200(uint64_t number, std::string* key) {
  key->append(196, '0');
  AppendBigEndian(number, 4, key);
}

void AppendSequence8(uint64_t number, std::string* key) { AppendBigEndian(number, 8, key); }

}  // namespace

const std::vector<KeyShape>& KeyShapes() {
  static const auto* const kShapes = new std::vector<KeyShape>{
      {"random16", "16 random bytes", false, AppendRandom16},
      {"decimal16", "'%016d'", true, AppendDecimal16},
      {"user", "'user:%012d'", true, AppendUser},
      {"uuid", "text of random UUIDs", false, AppendUuid},
      {"tenant", "'tenant-%04d/object/%016x', 1000 tenants", false, AppendTenant},
      {"composite", "a table of 16 in 4 bytes, a number in 8 bytes, big-endian", false, AppendComposite},
      {"url", "reversed URLs, 20 to 80 bytes", false, AppendUrl},
      {"sequence8", "8 bytes, big-endian", true, AppendSequence8},
      {"random8", "8 random bytes", false, AppendRandom8},
      {"reversed_time", "a timestamp that descends in 8 bytes, a suffix of 4 bytes", false, AppendReversedTime},
      {"late200", "200 bytes, of which the last 4 differ", true, AppendLate200, uint64_t{1} << 32},
  };
  return *kShapes;
}

std::shared_ptr<const ShapedKeys> ShapedKeys::OfShape(const std::string& name) {
  std::string names;
  for (const KeyShape& shape : KeyShapes()) {
    if (name == shape.name) return std::shared_ptr<const ShapedKeys>(new ShapedKeys(&shape));
    names.append(names.empty() ? "" : ", ").append(shape.name);
  }
  throw std::invalid_argument("--key_shape=" + name + " is none of " + names);
}

std::shared_ptr<const ShapedKeys> ShapedKeys::OfFile(const std::string& path) {
  std::shared_ptr<ShapedKeys> keys(new ShapedKeys(nullptr));
  keys->ReadFile(path);
  return keys;
}

void ShapedKeys::ReadFile(const std::string& path) {
  const std::string flag = "--key_file=" + path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw std::invalid_argument(flag + " is a directory");
  std::ifstream file(path, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad()) throw std::invalid_argument(flag + " cannot be read");
  if (bytes_.empty()) throw std::invalid_argument(flag + " has no keys");
  if (bytes_.back() != '\n') bytes_.push_back('\n');
  for (size_t end = bytes_.find('\n'); end != std::string::npos; end = bytes_.find('\n', end + 1)) ends_.push_back(end);
  std::unordered_map<std::string_view, size_t> lines(ends_.size());
  for (size_t i = 0; i < ends_.size(); ++i) {
    const std::string line = flag + ": line " + std::to_string(i + 1);
    const std::string_view key = LineAt(i);
    if (key.empty()) throw std::invalid_argument(line + " is empty");
    if (key.size() >= kMaxKeySize) throw std::invalid_argument(line + " is longer than a key may be");
    const auto [first, is_new] = lines.emplace(key, i);
    if (!is_new) throw std::invalid_argument(line + " repeats the key of line " + std::to_string(first->second + 1));
  }
}

// No line has a newline, so keys of larger numbers are not in the file.
void ShapedKeys::Append(uint64_t number, std::string* key) const {
  if (shape_ != nullptr) return shape_->append(number, key);
  key->append(LineAt(number % count()));
  if (number < count()) return;
  key->push_back('\n');
  AppendDecimal(number / count(), 1, key);
}

uint64_t ShapedKeys::AverageSize(uint64_t num) const {
  constexpr uint64_t kMostSampled = 1000;
  const uint64_t sampled = is_file() ? num : std::min(num, kMostSampled);
  std::string keys;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < sampled; ++i, keys.clear()) {
    Append(is_file() ? i : i * (num / sampled), &keys);
    bytes += keys.size();
  }
  return (bytes + sampled - 1) / sampled;
}

}  // namespace braiddb::bench
