#include "pmem/pmdk_sync.h"

#include <elf.h>
#include <fcntl.h>
#include <libpmem.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {
namespace {

thread_local const PmdkSyncScope* current_scope = nullptr;

// ---- The table of imported functions of a library

struct Imports {
  const ElfW(Rela) * entries = nullptr;
  size_t count = 0;
};

struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Imports functions;  // called
  Imports others;     // whose address is taken, among other things
  uintptr_t read_only_begin = 0;
  uintptr_t read_only_end = 0;
};

// glibc has stored addresses in the entries that are one.
Library Examine(const dl_phdr_info& info) {
  Library library;
  library.base = info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_GNU_RELRO) {
      library.read_only_begin = info.dlpi_addr + header.p_vaddr;
      library.read_only_end = library.read_only_begin + header.p_memsz;
    }
    if (header.p_type != PT_DYNAMIC) continue;
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr); entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) library.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) library.names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_JMPREL) library.functions.entries = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) library.functions.count = entry->d_un.d_val / sizeof(ElfW(Rela));
      if (entry->d_tag == DT_RELA) library.others.entries = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELASZ) library.others.count = entry->d_un.d_val / sizeof(ElfW(Rela));
    }
  }
  return library;
}

void StoreImport(const Library& library, uintptr_t place, void* function) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const first = reinterpret_cast<void*>(place & ~(page - 1));
  const bool read_only = place >= library.read_only_begin && place < library.read_only_end;
  if (read_only && mprotect(first, page, PROT_READ | PROT_WRITE) != 0) return;
  // relaxed: the function was there before, and other threads may call the old one a little longer.
  __atomic_store_n(reinterpret_cast<void**>(place), function, __ATOMIC_RELAXED);
  if (read_only) (void)mprotect(first, page, PROT_READ);
}

struct Replacement {
  const char* name;
  void* function;
};

int ReplaceInLibpmemobj(dl_phdr_info* info, size_t, void* argument) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libpmemobj.so") == nullptr) return 0;
  const auto& replacement = *static_cast<const Replacement*>(argument);
  const Library library = Examine(*info);
  if (library.symbols == nullptr || library.names == nullptr) return 0;
  for (const Imports& imports : {library.functions, library.others}) {
    for (size_t i = 0; imports.entries != nullptr && i < imports.count; ++i) {
      const ElfW(Rela)& entry = imports.entries[i];
      const char* const name = library.names + library.symbols[ELF64_R_SYM(entry.r_info)].st_name;
      if (std::strcmp(name, replacement.name) == 0) StoreImport(library, library.base + entry.r_offset, replacement.function);
    }
  }
  return 0;
}

// ---- Mapping privately

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;
};

// Where this process has the file mapped to share.
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
    // Some file systems give their files other device numbers than their mappings.
    const bool same_place = makedev(major_number, minor_number) == file.st_dev || line.compare(name, line.npos, path) == 0;
    if (sharing[3] == 's' && inode == file.st_ino && same_place) found.push_back(mapping);
  }
  return found;
}

// What is stored into the parts of a region from here on stays in this process.
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
  // In place of pmem_msync, for libpmemobj.
  static int Sync(const void* address, size_t bytes) {
    const PmdkSyncScope* const scope = current_scope;
    if (scope == nullptr) return pmem_msync(address, bytes);
    scope->persistence_->Flush(address, bytes);
    if (!scope->persistence_->Drain()) MapPrivately(scope->directory_);  // does nothing the second time
    return 0;
  }

  static void Install() {
    static const bool installed = [] {
      Replacement replacement{"pmem_msync", reinterpret_cast<void*>(&Sync)};
      dl_iterate_phdr(ReplaceInLibpmemobj, &replacement);
      return true;
    }();
    (void)installed;
  }
};

PmdkSyncScope::PmdkSyncScope(Persistence* persistence, const std::string& directory)
    : persistence_(persistence), directory_(directory), outer_(current_scope) {
  if (persistence_->mode() != PersistMode::kPage) return;
  PmdkSync::Install();
  current_scope = this;
}

PmdkSyncScope::~PmdkSyncScope() { current_scope = outer_; }

}  // namespace braiddb
