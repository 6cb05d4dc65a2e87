// Compaction filters of the user's.
#pragma once

#include "braiddb/c.h"

struct braiddb_compactionfilter_t {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  unsigned char (*filter)(void*, int, const char*, size_t, const char*, size_t, char**, size_t*, unsigned char*) = nullptr;
  const char* (*name)(void*) = nullptr;
  bool ignore_snapshots = true;

  ~braiddb_compactionfilter_t() {
    if (destructor != nullptr) destructor(state);
  }
};

struct braiddb_compactionfiltercontext_t {
  bool is_full_compaction = false;
  bool is_manual_compaction = false;
};

struct braiddb_compactionfilterfactory_t {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  braiddb_compactionfilter_t* (*create_filter)(void*, braiddb_compactionfiltercontext_t*) = nullptr;
  const char* (*name)(void*) = nullptr;

  ~braiddb_compactionfilterfactory_t() {
    if (destructor != nullptr) destructor(state);
  }
};
