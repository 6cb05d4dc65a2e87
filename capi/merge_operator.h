// A merge operator of the user's.
#pragma once

#include "braiddb/c.h"

struct braiddb_mergeoperator_t {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  char* (*full_merge)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*,
                      size_t*) = nullptr;
  char* (*partial_merge)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*) = nullptr;
  void (*delete_value)(void*, const char*, size_t) = nullptr;
  const char* (*name)(void*) = nullptr;

  ~braiddb_mergeoperator_t() {
    if (destructor != nullptr) destructor(state);
  }
};
