// FuzzInput: turns the bytes of one fuzzer input into numbers, keys and choices.
//
// An input that is used up yields zeros, so every input, also the empty one, describes a whole run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braiddb::test {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  // In [0, n). REQUIRES: 0 < n <= 65536.
  uint32_t Below(uint32_t n) {
    const uint32_t low = Byte();
    return (n > 256 ? low << 8 | Byte() : low) % n;
  }
  bool Bool() { return (Byte() & 1) != 0; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  // At most `max` bytes, as the input has them.
  std::string Bytes(size_t max) {
    const size_t size = max == 0 ? 0 : Below(static_cast<uint32_t>(max < 65535 ? max + 1 : 65536));
    return Take(size);
  }
  std::string Take(size_t size) {
    const std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string Rest() { return Take(rest_.size()); }
  // One of few short keys, so that calls meet each other's keys; sometimes any bytes.
  std::string Key() {
    const uint8_t choice = Byte();
    if (choice >= 240) return Bytes(300);
    return std::string("kkkkkkkkkkkkkkkk").substr(0, choice % 5) + std::string(choice % 3, static_cast<char>(choice));
  }
  // A number that arithmetic goes wrong with: near zero, near the ends of 8 to 64 bits, or any.
  uint64_t OddNumber() {
    const uint8_t choice = Byte();
    const uint64_t near = static_cast<uint64_t>(static_cast<int64_t>(Byte() % 5) - 2);
    if (choice < 64) return near;
    if (choice < 192) return (uint64_t{1} << (choice % 64)) + near;
    return Word();
  }

 private:
  std::string_view rest_;
};

}  // namespace braiddb::test

// What each target defines and driver.cc calls, by the name that libFuzzer knows. Returns 0; a fault ends the process.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
