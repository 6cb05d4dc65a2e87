// Hands a crash point from the process that works with the database to the one that opens its images: libpmemobj does not open a
// pool and a copy of it in one process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/crash_image.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// A string of bytes, written and read in the same order by two copies of one program.
class WireWriter {
 public:
  void Number(uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), 8); }
  void String(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t Number() {
    uint64_t number;
    std::memcpy(&number, Take(8), 8);
    return number;
  }
  std::string String() {
    const uint64_t size = Number();
    return std::string(Take(size), size);
  }

 private:
  const char* Take(uint64_t size) {
    if (bytes_.size() - at_ < size) {
      std::fprintf(stderr, "wire: message too short\n");
      std::abort();
    }
    const char* begin = bytes_.data() + at_;
    at_ += size;
    return begin;
  }

  const std::string bytes_;
  size_t at_ = 0;
};

inline void SavePoint(const CrashPoint& point, const std::string& path) {
  WireWriter out;
  out.String(point.where);
  out.Number(point.small_files.size());
  for (const auto& [name, content] : point.small_files) {
    out.String(name);
    out.String(content);
  }
  out.Number(point.parts.size());
  for (size_t region = 0; region < point.parts.size(); ++region) {
    out.Number(point.parts[region].size());
    for (const auto& part : point.parts[region]) {
      out.String(part.path);
      out.Number(part.bytes);
      out.String(part.content);
    }
    out.Number(point.durable[region].size());
    crash_image_internal::WriteSparse(path + "-" + std::to_string(region), point.durable[region].data(),
                                      point.durable[region].size());
  }
  out.Number(point.dirty.size());
  for (const auto& line : point.dirty) out.String({reinterpret_cast<const char*>(&line), sizeof(line)});
  out.Number(point.allowed.size());
  for (const auto& states : point.allowed) {
    out.Number(states.size());
    for (const auto& state : states) {
      out.Number(state.size());
      for (const auto& [key, value] : state) {
        out.String(key);
        out.String(*value);
      }
    }
  }
  WriteFileOrDie(path, out.bytes());
}

inline CrashPoint LoadPoint(const std::string& path) {
  WireReader in(ReadFileOrDie(path));
  CrashPoint point;
  point.where = in.String();
  point.small_files.resize(in.Number());
  for (auto& [name, content] : point.small_files) {
    name = in.String();
    content = in.String();
  }
  point.parts.resize(in.Number());
  for (size_t region = 0; region < point.parts.size(); ++region) {
    point.parts[region].resize(in.Number());
    for (auto& part : point.parts[region]) {
      part.path = in.String();
      part.bytes = in.Number();
      part.content = in.String();
    }
    const std::string file = path + "-" + std::to_string(region);
    point.durable.emplace_back(in.Number());
    FILE* from = std::fopen(file.c_str(), "rb");
    if (from == nullptr ||
        std::fread(point.durable.back().data(), 1, point.durable.back().size(), from) != point.durable.back().size()) {
      crash_image_internal::DieOf(file);
    }
    std::fclose(from);
  }
  point.dirty.resize(in.Number());
  for (auto& line : point.dirty) std::memcpy(&line, in.String().data(), sizeof(line));
  point.allowed.resize(in.Number());
  for (auto& states : point.allowed) {
    states.resize(in.Number());
    for (auto& state : states) {
      for (uint64_t count = in.Number(); count > 0; --count) {
        std::string key = in.String();
        state[std::move(key)] = std::make_shared<const std::string>(in.String());
      }
    }
  }
  return point;
}

}  // namespace braiddb::test
