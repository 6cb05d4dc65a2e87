#include "pmem/pmdk_imports.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <mutex>

namespace braiddb {
namespace {

// A table of relocation entries of a library.
struct Imports {
  const ElfW(Rela) * entries = nullptr;
  size_t count = 0;
};

// The parts of a loaded library that the dynamic section names. Addresses are absolute: glibc has relocated the entries.
struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Imports functions;  // DT_JMPREL: functions that the library calls
  Imports others;     // DT_RELA: functions whose address the library takes, and data
  uintptr_t read_only_begin = 0;
  uintptr_t read_only_end = 0;
};

// Reads the dynamic section and the RELRO range of a loaded library.
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

// Stores `function` in the entry at `place`, and returns the old content. Returns null, and changes nothing, if the page cannot
// be made writable.
void* StoreImport(const Library& library, uintptr_t place, void* function) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const first = reinterpret_cast<void*>(place & ~(page - 1));
  const bool read_only = place >= library.read_only_begin && place < library.read_only_end;
  if (read_only && mprotect(first, page, PROT_READ | PROT_WRITE) != 0) return nullptr;
  // relaxed: `function` is code, which needs no publication; other threads may call the old function a little longer.
  void* const before = __atomic_exchange_n(reinterpret_cast<void**>(place), function, __ATOMIC_RELAXED);
  if (read_only) (void)mprotect(first, page, PROT_READ);
  return before;
}

// The request of one call, and its result.
struct Replacement {
  const char* name;
  void* function;
  void* before = nullptr;
};

// Callback of dl_iterate_phdr: replaces the import if the library is libpmemobj. Returns 0, which continues with the next
// library: a process may have several copies.
int ReplaceInLibpmemobj(dl_phdr_info* info, size_t, void* argument) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libpmemobj.so") == nullptr) return 0;
  auto& replacement = *static_cast<Replacement*>(argument);
  const Library library = Examine(*info);
  if (library.symbols == nullptr || library.names == nullptr) return 0;
  for (const Imports& imports : {library.functions, library.others}) {
    for (size_t i = 0; imports.entries != nullptr && i < imports.count; ++i) {
      const ElfW(Rela)& entry = imports.entries[i];
      const char* const name = library.names + library.symbols[ELF64_R_SYM(entry.r_info)].st_name;
      if (std::strcmp(name, replacement.name) != 0) continue;
      void* const before = StoreImport(library, library.base + entry.r_offset, replacement.function);
      if (replacement.before == nullptr && before != replacement.function) replacement.before = before;
    }
  }
  return 0;
}

}  // namespace

void* ReplaceImportOfLibpmemobj(const char* name, void* function) {
  static std::mutex mutex;  // the page of the table is writable for one thread at a time
  const std::lock_guard<std::mutex> lock(mutex);
  Replacement replacement{name, function};
  dl_iterate_phdr(ReplaceInLibpmemobj, &replacement);
  return replacement.before;
}

}  // namespace braiddb
