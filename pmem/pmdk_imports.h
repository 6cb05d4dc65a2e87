// PmdkImports: replaces functions that libpmemobj imports by functions of this library.
//
// WHY   libpmemobj has no interface for some of its decisions: it reads an environment variable, it ends the process when msync
//       fails, it initializes mutexes one by one. A replaced import changes these decisions for libpmemobj alone. The program
//       and other libraries keep the functions of the system.
// HOW   A shared library calls imported functions through a table of addresses (ELF: the GOT), which the dynamic linker fills
//       from relocation entries. The replacement stores the new address in the entry of the function. If the linker has made
// the page read-only (RELRO), the page is writable for the time of the store. LIMIT A libpmemobj that is linked statically has
// no such table. Then nothing is replaced.
// CONCURRENCY  Other threads may call the imported function meanwhile: they call the old one or the new one, since the entry is
//       one aligned word.
#pragma once

namespace braiddb {

// Lets the libpmemobj of this process call `function` in place of the imported function `name`. Returns the function that
// libpmemobj called before: a function of the system, or of another copy of this library. Returns null, and changes nothing, if
// libpmemobj is linked statically or does not import `name`. A second call with the same function returns null. Thread-safe.
void* ReplaceImportOfLibpmemobj(const char* name, void* function);

}  // namespace braiddb
