// PmdkImports: functions that libpmemobj imports, replaced by functions of ours.
#pragma once

namespace braiddb {

// Makes the libpmemobj of this process call `function` in place of the imported function `name`, and returns what it called
// before: the function of a system library, or of another copy of this library. Null, and nothing is done, if libpmemobj is
// linked statically: then the library has no table of imported functions. Thread-safe.
void* ReplaceImportOfLibpmemobj(const char* name, void* function);

}  // namespace braiddb
