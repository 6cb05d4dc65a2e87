// Compaction filters that the user provides.
#pragma once

#include <memory>
#include <string>

#include "braiddb/c.h"
#include "braiddb/compaction_filter.h"

struct braiddb_compactionfilter_t final : braiddb::CompactionFilter {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  unsigned char (*filter)(void*, int, const char*, size_t, const char*, size_t, char**, size_t*, unsigned char*) = nullptr;
  const char* (*name)(void*) = nullptr;
  bool ignore_snapshots = true;

  ~braiddb_compactionfilter_t() override {
    if (destructor != nullptr) destructor(state);
  }
  // The callback keeps the ownership of the new value, as in RocksDB.
  Decision Filter(int level, braiddb::Slice key, braiddb::Slice value, std::string* new_value) const override {
    char* changed = nullptr;
    size_t changed_length = 0;
    unsigned char is_changed = 0;
    if (filter(state, level, key.data(), key.size(), value.data(), value.size(), &changed, &changed_length, &is_changed) != 0)
      return Decision::kRemove;
    if (is_changed == 0) return Decision::kKeep;
    if (changed_length != 0) new_value->assign(changed, changed_length);
    return Decision::kChangeValue;
  }
  const char* Name() const override { return name(state); }
  bool IgnoreSnapshots() const override { return ignore_snapshots; }
};

struct braiddb_compactionfiltercontext_t {
  bool is_full_compaction = false;
  bool is_manual_compaction = false;
};

struct braiddb_compactionfilterfactory_t final : braiddb::CompactionFilterFactory {
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  braiddb_compactionfilter_t* (*create_filter)(void*, braiddb_compactionfiltercontext_t*) = nullptr;
  const char* (*name)(void*) = nullptr;

  ~braiddb_compactionfilterfactory_t() override {
    if (destructor != nullptr) destructor(state);
  }
  std::unique_ptr<braiddb::CompactionFilter> CreateCompactionFilter(const braiddb::CompactionFilter::Context& context) override {
    braiddb_compactionfiltercontext_t c_context{context.is_full_compaction, context.is_manual_compaction};
    return std::unique_ptr<braiddb::CompactionFilter>(create_filter(state, &c_context));
  }
  const char* Name() const override { return name(state); }
};
