// Environment: the machine and software of a measurement.
#pragma once

#include <cstdint>
#include <string>

namespace braiddb::bench {

struct Environment {
  std::string date;  // local time, as in RocksDB's header
  std::string cpu;
  uint32_t cpus = 0;
  std::string cpu_cache;
  uint32_t numa_nodes = 0;
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string huge_pages;   // kernel's setting for shared memory; empty if unknown
  std::string file_system;  // of the database's directory, such as "tmpfs"
  std::string device;       // the mounted device
  std::string version;      // of this program
  std::string commit;       // source commit, with "-dirty" after local changes; empty if unknown
  std::string compiler;
  std::string warnings;  // one per line: properties of the build that slow it down
};

// The path if it is an existing directory, else its nearest existing parent.
std::string NearestDirectory(const std::string& path);

// `path` need not exist: its nearest existing directory is examined.
Environment DescribeEnvironment(const std::string& path);

}  // namespace braiddb::bench
