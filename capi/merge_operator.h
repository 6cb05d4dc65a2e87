// A merge operator that the user provides.
#pragma once

#include <vector>

#include "braiddb/c.h"
#include "braiddb/merge_operator.h"

struct braiddb_mergeoperator_t final : braiddb::MergeOperator {
  using FullMergeFunction = char* (*)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int,
                                      unsigned char*, size_t*);
  using PartialMergeFunction = char* (*)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*,
                                         size_t*);

  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  FullMergeFunction full_merge = nullptr;
  PartialMergeFunction partial_merge = nullptr;
  void (*delete_value)(void*, const char*, size_t) = nullptr;
  const char* (*name)(void*) = nullptr;

  ~braiddb_mergeoperator_t() override {
    if (destructor != nullptr) destructor(state);
  }
  const char* Name() const override { return name(state); }
  bool FullMerge(braiddb::Slice key, const braiddb::Slice* existing, std::span<const braiddb::Slice> operands,
                 std::string* value) const override;
  bool PartialMergeMulti(braiddb::Slice key, std::span<const braiddb::Slice> operands, std::string* operand) const override;

 private:
  // Copies the result of a C callback and frees the original.
  bool Take(char* made, size_t length, bool success, std::string* result) const;
};
