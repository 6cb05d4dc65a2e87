#include "capi/compaction_filter.h"

braiddb_compactionfilter_t* braiddb_compactionfilter_create(void* state, void (*destructor)(void*),
                                                            unsigned char (*filter)(void*, int, const char*, size_t, const char*,
                                                                                    size_t, char**, size_t*, unsigned char*),
                                                            const char* (*name)(void*)) {
  auto* const result = new braiddb_compactionfilter_t;
  result->state = state;
  result->destructor = destructor;
  result->filter = filter;
  result->name = name;
  return result;
}

void braiddb_compactionfilter_destroy(braiddb_compactionfilter_t* filter) { delete filter; }

void braiddb_compactionfilter_set_ignore_snapshots(braiddb_compactionfilter_t* filter, unsigned char value) {
  filter->ignore_snapshots = value != 0;
}

unsigned char braiddb_compactionfiltercontext_is_full_compaction(braiddb_compactionfiltercontext_t* context) {
  return context->is_full_compaction;
}

unsigned char braiddb_compactionfiltercontext_is_manual_compaction(braiddb_compactionfiltercontext_t* context) {
  return context->is_manual_compaction;
}

braiddb_compactionfilterfactory_t* braiddb_compactionfilterfactory_create(
    void* state, void (*destructor)(void*),
    braiddb_compactionfilter_t* (*create_filter)(void*, braiddb_compactionfiltercontext_t*), const char* (*name)(void*)) {
  auto* const result = new braiddb_compactionfilterfactory_t;
  result->state = state;
  result->destructor = destructor;
  result->create_filter = create_filter;
  result->name = name;
  return result;
}

void braiddb_compactionfilterfactory_destroy(braiddb_compactionfilterfactory_t* factory) { delete factory; }
