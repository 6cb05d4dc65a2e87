// RegionSetTest: creates and opens sets of regions in a directory of its own, and looks into their files.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "pmem/part_list.h"
#include "pmem/region_set.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {

namespace fs = std::filesystem;

inline constexpr uint64_t kMiB = 1ull << 20;

class RegionSetTest : public testing::Test {
 protected:
  std::unique_ptr<RegionSet> Create(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Create(options, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  std::unique_ptr<RegionSet> Open(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    const Status status = RegionSet::Open(options, &set);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  static Status TryOpen(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    return RegionSet::Open(options, &set);
  }
  static Status TryCreate(const RegionSetOptions& options) {
    std::unique_ptr<RegionSet> set;
    return RegionSet::Create(options, &set);
  }
  // Names of all files under `path`, relative to it.
  static std::set<std::string> FilesUnder(const std::string& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) names.insert(fs::relative(entry.path(), path));
    return names;
  }
  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void Overwrite(const std::string& path, uint64_t offset, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  static uint64_t BytesUnder(const std::string& path) {
    uint64_t total = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      struct stat st;
      if (entry.is_regular_file() && stat(entry.path().c_str(), &st) == 0) total += static_cast<uint64_t>(st.st_blocks) * 512;
    }
    return total;
  }
  std::string RegionPath(uint32_t region) const { return dir_.Sub("db/region-" + std::to_string(region)); }
  std::string PartPath(uint32_t region, int part) const { return RegionPath(region) + "/" + PartName(part); }

  PmemTempDir dir_;
  RegionSetOptions options_ = PmemOptions(dir_.Sub("db"), 2);
};

}  // namespace braiddb::test
