#include "db_bench/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "braiddb_commit.h"
#include "util/numa_topology.h"

namespace braiddb::bench {

namespace {

void DescribeCpu(Environment* environment) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) {
      ++environment->cpus;
      environment->cpu = line.substr(colon + 2);
    } else if (line.starts_with("cache size")) {
      environment->cpu_cache = line.substr(colon + 2);
    }
  }
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool IsBelow(const std::string& path, const std::string& mount) {
  if (mount == "/") return true;
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

// Finds the file system by the longest mount point above the path; of equal ones the last. See proc(5), mountinfo.
void DescribeFileSystem(const std::string& path, Environment* environment) {
  const std::string directory = NearestDirectory(path);
  std::ifstream file("/proc/self/mountinfo");
  size_t longest = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line), behind(line.substr(separator + 3));
    std::string skipped, mount, type, source;
    before >> skipped >> skipped >> skipped >> skipped >> mount;
    behind >> type >> source;
    if (!IsBelow(directory, mount) || mount.size() < longest) continue;
    longest = mount.size();
    environment->file_system = type;
    environment->device = source;
  }
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  char date[64];
  std::tm local;
  localtime_r(&now, &local);
  std::strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &local);
  return date;
}

std::string BuildWarnings() {
  std::string warnings;
#ifndef NDEBUG
  warnings += "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n";
#endif
#ifndef __OPTIMIZE__
  warnings += "WARNING: Optimization is disabled: benchmarks unnecessarily slow\n";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  warnings += "WARNING: A sanitizer is on; benchmarks unnecessarily slow\n";
#endif
  return warnings;
}

}  // namespace

std::string NearestDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::path directory = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(directory, error) && directory.has_relative_path()) directory = directory.parent_path();
  const std::filesystem::path real = std::filesystem::canonical(directory, error);
  return error ? directory.string() : real.string();
}

Environment DescribeEnvironment(const std::string& path) {
  Environment environment;
  environment.date = Now();
  DescribeCpu(&environment);
  environment.numa_nodes = NumaNodeCount();
  environment.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  utsname system;
  if (uname(&system) == 0) environment.kernel = std::string(system.sysname) + " " + system.release;
  environment.huge_pages = FirstLine("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  DescribeFileSystem(path, &environment);
  environment.version = BRAIDDB_VERSION;
  environment.commit = kBraidDbCommit;
  environment.compiler = __VERSION__;
  environment.warnings = BuildWarnings();
  return environment;
}

}  // namespace braiddb::bench
