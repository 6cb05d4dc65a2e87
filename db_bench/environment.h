// Environment: what a result was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace braiddb::bench {

struct Environment {
  std::string date;  // local, as in RocksDB's header
  std::string cpu;
  uint32_t cpus = 0;
  std::string cpu_cache;
  uint32_t numa_nodes = 0;
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string huge_pages;   // of shared memory, as the kernel words it; empty if it does not tell
  std::string file_system;  // that the database's directory is on, as "tmpfs"
  std::string device;       // … and what is mounted there
  std::string version;      // of this program
  std::string commit;       // … and what it was built from, with "-dirty" if there was more; empty if it is not known
  std::string compiler;
  std::string warnings;  // lines: what makes this build slower than it should be
};

// The nearest directory above the path, or the path itself, that exists.
std::string NearestDirectory(const std::string& path);

// `path` need not exist: its nearest directory that does is looked at.
Environment DescribeEnvironment(const std::string& path);

}  // namespace braiddb::bench
