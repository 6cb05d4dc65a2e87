#include "tests/crash_test/image_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tests/crash_test/store_tracer.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

void DieOf(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

ImageFiles::ImageFiles(std::string directory, const CrashRecord& record) : directory_(std::move(directory)), record_(record) {
  fs::remove_all(directory_);
  fs::remove_all(PartLink(""));
  fs::create_directories(directory_);
  fs::create_directories(PartLink(""));
  parts_.resize(record.initial.size());
}

ImageFiles::~ImageFiles() {
  for (const auto& parts : parts_) {
    for (const Part& part : parts) munmap(part.memory, part.bytes);
  }
}

void ImageFiles::GoTo(const CrashPoint& point) {
  if (point.files != files_) LayOut(*point.files);
  files_ = point.files;
  for (; media_lines_ < point.media_lines; ++media_lines_) {
    const MediaLine& line = record_.media[media_lines_];
    uint8_t* memory = At(line.region, line.offset);
    if (memory != nullptr) std::memcpy(memory, line.words, kLine);
  }
}

std::vector<MediaLine> ImageFiles::GuaranteedOf(const CrashPoint& point) const {
  std::vector<MediaLine> lines;
  for (const DirtyLine& dirty : point.dirty) {
    MediaLine line{dirty.region, dirty.offset, {}};
    if (const uint8_t* memory = At(dirty.region, dirty.offset)) std::memcpy(line.words, memory, kLine);
    lines.push_back(line);
  }
  return lines;
}

void ImageFiles::Apply(const CrashImage& image) {
  for (const ImageWord& word : image) {
    uint8_t* memory = At(word.region, word.offset);
    if (memory == nullptr) continue;
    taken_.push_back({word.region, word.offset, 0});
    std::memcpy(&taken_.back().value, memory, 8);
    std::memcpy(memory, &word.value, 8);
  }
}

void ImageFiles::TakeBack() {
  for (auto word = taken_.rbegin(); word != taken_.rend(); ++word) std::memcpy(At(word->region, word->offset), &word->value, 8);
  taken_.clear();
  if (StoreTracer::file_changes() != file_changes_) RestoreFiles(*files_);
}

// Null: in a part that is not there (yet).
uint8_t* ImageFiles::At(uint32_t region, uint64_t offset) const {
  for (const Part& part : parts_[region]) {
    if (offset - part.begin < part.bytes) return part.memory + (offset - part.begin);
  }
  return nullptr;
}

void ImageFiles::LayOut(const CrashFiles& files) {
  for (uint32_t region = 0; region < files.parts.size(); ++region) {
    for (size_t i = parts_[region].size(); i < files.parts[region].size(); ++i) AddPart(region, files.parts[region][i]);
  }
  RestoreFiles(files);
}

void ImageFiles::AddPart(uint32_t region, const CrashFiles::Part& part) {
  const std::string path = directory_ + "/" + part.path;
  fs::create_directories(fs::path(path).parent_path());
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(part.bytes)) != 0) DieOf(path);
  void* memory = mmap(nullptr, part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) DieOf(path);
  const std::string link = PartLink(part.path);
  fs::create_directories(fs::path(link).parent_path());
  fs::create_hard_link(path, link);
  const uint64_t begin = parts_[region].empty() ? 0 : parts_[region].back().begin + parts_[region].back().bytes;
  parts_[region].push_back({path, begin, part.bytes, static_cast<uint8_t*>(memory)});
  const PoolBytes& initial = record_.initial[region];
  for (size_t i = 0; i < initial.offsets.size(); ++i) {
    if (initial.offsets[i] - begin >= part.bytes) continue;
    std::memcpy(parts_[region].back().memory + (initial.offsets[i] - begin), &initial.content[i * PoolBytes::kPage],
                PoolBytes::kPage);
  }
}

void ImageFiles::RestoreFiles(const CrashFiles& files) {
  std::vector<std::string> expected;
  for (const auto& parts : files.parts) {
    for (const auto& part : parts) {
      expected.push_back(part.path);
      const std::string full = directory_ + "/" + part.path;
      if (fs::exists(full) && fs::equivalent(PartLink(part.path), full)) continue;
      fs::remove(full);  // of a database that was created anew
      fs::create_directories(fs::path(full).parent_path());
      fs::create_hard_link(PartLink(part.path), full);
    }
  }
  for (const auto& [path, content] : files.small_files) {
    fs::create_directories(fs::path(directory_ + "/" + path).parent_path());
    expected.push_back(path);
    const std::string full = directory_ + "/" + path;
    if (!fs::exists(full) || ReadFileOrDie(full) != content) WriteFileOrDie(full, content);
  }
  for (const auto& path : ListFiles(directory_)) {
    if (path.ends_with("LOCK") || path.ends_with("region.set")) continue;
    if (std::find(expected.begin(), expected.end(), path) == expected.end()) fs::remove(directory_ + "/" + path);
  }
  file_changes_ = StoreTracer::file_changes();
}

}  // namespace braiddb::test
