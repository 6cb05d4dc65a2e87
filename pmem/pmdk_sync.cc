#include "pmem/pmdk_sync.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <vector>

#include "pmem/part_list.h"
#include "pmem/pmdk_imports.h"
#include "pmem/posix.h"
#include "util/check.h"

namespace braiddb {
namespace {

thread_local const PmdkSyncScope* current_scope = nullptr;

// ---- Mapping privately

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;
};

// Finds the shared mappings of a file in this process. They are compared by inode, and by device number or path: some file
// systems give their files other device numbers than their mappings.
std::vector<Mapping> SharedMappings(const std::string& path, const struct stat& file) {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char sharing[5] = {};
    unsigned major_number = 0, minor_number = 0;
    uint64_t inode = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping.begin, &mapping.end,
                    sharing, &mapping.offset, &major_number, &minor_number, &inode, &name) < 7) {
      continue;
    }
    const bool same_place = makedev(major_number, minor_number) == file.st_dev || line.compare(name, line.npos, path) == 0;
    if (sharing[3] == 's' && inode == file.st_ino && same_place) found.push_back(mapping);
  }
  return found;
}

// Replaces the shared mappings of a region's parts by private ones. Later stores stay in this process. A mapping that cannot be
// replaced stays shared; then stores of PMDK may still reach the disk, without any order.
void MapPrivately(const std::string& directory) {
  for (size_t part = 0;; ++part) {
    const std::string path = posix::JoinPath(directory, PartName(part));
    const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat file;
    if (!fd.valid() || fstat(fd.get(), &file) != 0) return;
    for (const Mapping& mapping : SharedMappings(path, file)) {
      (void)mmap(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd.get(), static_cast<off_t>(mapping.offset));
    }
  }
}

}  // namespace

class PmdkSync {
 public:
  // The replacement of pmem_msync for libpmemobj. Returns 0 in a scope, also if the sync has failed (STEPS, 4).
  static int Sync(const void* address, size_t bytes) {
    const PmdkSyncScope* const scope = current_scope;
    if (scope == nullptr) return pmem_msync(address, bytes);
    if (scope->kind_ == PmdkSyncScope::Kind::kNothing) return 0;
    scope->persistence_->Flush(address, bytes);
    if (scope->kind_ == PmdkSyncScope::Kind::kSyncs && !scope->persistence_->Drain())
      MapPrivately(scope->directory_);  // a second call finds no shared mapping
    return 0;
  }

  // Installs the replacement, once in the process.
  static void Install() {
    static const bool installed = [] {
      ReplaceImportOfLibpmemobj("pmem_msync", reinterpret_cast<void*>(&Sync));
      return true;
    }();
    (void)installed;
  }
};

PmdkSyncScope::PmdkSyncScope(Persistence* persistence, const std::string& directory, Kind kind)
    : persistence_(persistence), directory_(directory), kind_(kind), outer_(current_scope) {
  if (persistence_->mode() != PersistMode::kPage) return;
  PmdkSync::Install();
  current_scope = this;
}

PmdkSyncScope::~PmdkSyncScope() {
  BRAIDDB_DCHECK(current_scope == (persistence_->mode() == PersistMode::kPage ? this : outer_));
  current_scope = outer_;
}

}  // namespace braiddb
