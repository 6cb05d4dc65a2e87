#include "db_bench/observation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace braiddb::bench {

namespace {

// Files may vanish during the walk. A file that cannot be read is skipped.
uint64_t BytesOfFiles(const std::string& path) {
  constexpr uint64_t kBlock = 512;  // unit of st_blocks, see stat(2)
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    struct stat status;
    if (lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<uint64_t>(status.st_blocks) * kBlock;
  }
  return bytes;
}

// proc(5), io. Returns 0 if the kernel does not count.
uint64_t WrittenBySystemCalls() {
  std::ifstream file("/proc/self/io");
  std::string name;
  for (uint64_t value = 0; file >> name >> value;) {
    if (name == "wchar:") return value;
  }
  return 0;
}

}  // namespace

// proc(5), statm: total pages, resident pages, and of these the pages of files or shared memory.
uint64_t AnonymousBytesOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t all = 0, resident = 0, shared = 0;
  file >> all >> resident >> shared;
  return (resident - std::min(shared, resident)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::vector<Figure> ObserveState(Engine* engine, const std::string& path) {
  std::vector<Figure> figures{{"process_dram_bytes", AnonymousBytesOf(getpid())}};
  if (engine == nullptr) return figures;
  figures.push_back({"file_bytes", BytesOfFiles(path)});
  for (Figure& figure : engine->State()) figures.push_back(std::move(figure));
  return figures;
}

// proc(5), smaps_rollup. Returns 0 if the kernel has no such file.
uint64_t BytesOnHugePages() {
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    for (const char* name : {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"}) {
      if (line.starts_with(name)) bytes += std::strtoull(line.c_str() + std::strlen(name), nullptr, 10) << 10;
    }
  }
  return bytes;
}

std::vector<Figure> ObserveCounters(Engine* engine) {
  std::vector<Figure> figures{{"file_written_bytes", WrittenBySystemCalls()}};
  if (engine == nullptr) return figures;
  for (Figure& figure : engine->Counters()) figures.push_back(std::move(figure));
  return figures;
}

std::vector<Figure> Increase(const std::vector<Figure>& before, const std::vector<Figure>& after) {
  std::vector<Figure> increase = after;
  for (Figure& figure : increase) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const Figure& other) { return other.name == figure.name; });
    if (same != before.end()) figure.value -= std::min(same->value, figure.value);
  }
  return increase;
}

}  // namespace braiddb::bench
