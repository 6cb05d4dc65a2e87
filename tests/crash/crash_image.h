// What the files of a database could hold after a power cut at one instant, and how to lay them out as a database again.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/crash_oracle.h"
#include "tests/crash/tracked_ranges.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

inline constexpr uint64_t kLine = 64;

// A cache line (the part of it that BraidDB owns) whose content is not what is guaranteed to be on media.
struct DirtyLine {
  uint32_t region;
  uint64_t offset;  // of the line
  RangeKind kind;
  uint8_t words;  // bit i: the i-th 8-byte word differs
  uint64_t current[8];
};

// All regions and files at one instant.
struct CrashPoint {
  struct Part {
    std::string path;  // relative to the database
    uint64_t bytes;
    std::string content;  // of a part that is being added and not mapped yet

    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<std::pair<std::string, std::string>> small_files;  // path and content
  std::vector<std::vector<Part>> parts;                          // of each region, in the order in which they are mapped
  std::vector<std::vector<uint8_t>> durable;                     // of each region: what is guaranteed to be on media
  std::vector<DirtyLine> dirty;
  CrashOracle::Allowed allowed;  // what the database may hold, by writer
  std::string where;             // for messages
};

enum class ImageKind : uint8_t { kGuaranteed, kEverything, kOneLine, kAllButOneLine, kLines, kWords, kCount };

inline const char* NameOf(ImageKind kind) {
  static constexpr const char* kNames[] = {"guaranteed only",  "everything",   "one line",
                                           "all but one line", "random lines", "random words"};
  return kNames[static_cast<int>(kind)];
}

// One image: the guaranteed content and, of each dirty line, these words.
struct CrashImage {
  ImageKind kind = ImageKind::kGuaranteed;
  std::vector<uint8_t> words;  // per dirty line a mask; bits of words that do not differ do not matter
};

inline CrashImage DrawImage(const CrashPoint& point, ImageKind kind, Random* random) {
  CrashImage image{kind, std::vector<uint8_t>(point.dirty.size(), 0)};
  if (point.dirty.empty()) return image;
  const uint64_t percent = random->OneIn(3) ? 50 : random->OneIn(2) ? 10 : 90;
  const size_t chosen = random->Uniform(point.dirty.size());
  for (size_t i = 0; i < point.dirty.size(); ++i) {
    switch (kind) {
      case ImageKind::kEverything:
        image.words[i] = 0xff;
        break;
      case ImageKind::kOneLine:
        image.words[i] = i == chosen ? 0xff : 0;
        break;
      case ImageKind::kAllButOneLine:
        image.words[i] = i == chosen ? 0 : 0xff;
        break;
      case ImageKind::kLines:
        image.words[i] = random->Percent(percent) ? 0xff : 0;
        break;
      case ImageKind::kWords:
        for (int word = 0; word < 8; ++word) image.words[i] |= static_cast<uint8_t>(random->Percent(percent) << word);
        break;
      default:
        break;
    }
  }
  return image;
}

namespace crash_image_internal {

inline void DieOf(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

// Writes the pages that hold anything; the others stay holes.
inline void WriteSparse(const std::string& path, const uint8_t* data, uint64_t bytes) {
  static constexpr uint64_t kPage = 4096;
  static constexpr uint8_t kZeros[kPage] = {};
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) DieOf(path);
  const auto is_hole = [&](uint64_t page) { return std::memcmp(data + page, kZeros, std::min(kPage, bytes - page)) == 0; };
  for (uint64_t begin = 0; begin < bytes;) {
    if (is_hole(begin)) {
      begin += kPage;
      continue;
    }
    uint64_t end = begin + kPage;
    while (end < bytes && !is_hole(end)) end += kPage;
    end = std::min(end, bytes);
    if (pwrite(fd, data + begin, end - begin, static_cast<off_t>(begin)) != static_cast<ssize_t>(end - begin)) DieOf(path);
    begin = end;
  }
  close(fd);
}

}  // namespace crash_image_internal

// Makes `directory` the database as it is in this image.
inline void WriteImage(const CrashPoint& point, const CrashImage& image, const std::string& directory) {
  namespace fs = std::filesystem;
  fs::remove_all(directory);
  fs::create_directories(directory);
  for (const auto& [path, content] : point.small_files) {
    fs::create_directories(fs::path(directory + "/" + path).parent_path());
    WriteFileOrDie(directory + "/" + path, content);
  }
  for (uint32_t region = 0; region < point.durable.size(); ++region) {
    std::vector<uint8_t> bytes = point.durable[region];
    for (size_t i = 0; i < point.dirty.size(); ++i) {
      const DirtyLine& line = point.dirty[i];
      if (line.region != region) continue;
      for (int word = 0; word < 8; ++word) {
        if ((line.words & image.words[i]) >> word & 1) std::memcpy(&bytes[line.offset + 8 * word], &line.current[word], 8);
      }
    }
    uint64_t begin = 0;
    for (const auto& part : point.parts[region]) {
      fs::create_directories(fs::path(directory + "/" + part.path).parent_path());
      const auto* unmapped = reinterpret_cast<const uint8_t*>(part.content.data());
      crash_image_internal::WriteSparse(directory + "/" + part.path, part.content.empty() ? &bytes[begin] : unmapped, part.bytes);
      begin += part.bytes;
    }
  }
}

}  // namespace braiddb::test
