// PoolHeader: the first two pages of a pool file, changed by tests as PMDK would have written them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "pmem/pool_format.h"

namespace braiddb::test {

class PoolHeader {
 public:
  static constexpr size_t kBytes = 8192;

  explicit PoolHeader(const std::string& part) : path_(part), bytes_(kBytes, '\0') {
    std::ifstream(path_, std::ios::binary).read(bytes_.data(), kBytes);
    read_ = bytes_;
  }
  // Of the second page only the words that were changed here: the pool may have grown, which changes others.
  void Write() const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.write(bytes_.data(), kPoolHeaderBytes);
    for (size_t at = kPoolHeaderBytes; at < kBytes; at += 8) {
      if (bytes_.compare(at, 8, read_, at, 8) == 0) continue;
      file.seekp(static_cast<std::streamoff>(at));
      file.write(&bytes_[at], 8);
    }
    ASSERT_TRUE(file.flush().good());
  }

  PoolView view() const { return PoolView(reinterpret_cast<const uint8_t*>(bytes_.data()), kBytes); }
  const std::string& bytes() const { return bytes_; }
  template <class T = uint64_t>
  T Get(uint64_t offset) const {
    T value;
    std::memcpy(&value, &bytes_[offset], sizeof(value));
    return value;
  }
  template <class T>
  void Set(uint64_t offset, T value) {
    std::memcpy(&bytes_[offset], &value, sizeof(value));
  }
  // Gives these bytes what they have in `other`.
  void Take(const PoolHeader& other, uint64_t offset, uint64_t bytes) {
    std::memcpy(&bytes_[offset], &other.bytes_[offset], bytes);
  }

  // A shutdown state as a killed process leaves it, on devices with these sums. PMDK refuses the pool if the devices behind its
  // parts have other sums.
  void SetShutdownState(uint64_t counts, uint64_t identities) {
    Set(kPoolFeaturesOffset, view().features() | kPoolHasShutdownState);
    Set(kPoolHeaderChecksumOffset, view().HeaderChecksum(view().features()));
    const uint64_t state = kPoolShutdownStateOffset;
    std::memset(&bytes_[state], 0, kPoolShutdownStateBytes);
    Set(state, counts);
    Set(state + 8, identities);
    Set(state + 16, uint8_t{1});  // in use
    uint32_t low = 0, high = 0;
    for (uint64_t at = 0; at < kPoolShutdownStateBytes; at += 4) high += low += Get<uint32_t>(state + at);
    Set(state + kPoolShutdownStateBytes - 8, uint64_t{high} << 32 | low);
  }

 private:
  const std::string path_;
  std::string bytes_;
  std::string read_;  // as the file had them
};

}  // namespace braiddb::test
