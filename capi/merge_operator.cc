#include "capi/merge_operator.h"

#include <cstdlib>

#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Slice;
using namespace braiddb::capi;

namespace {

// Operands as arrays of pointers and lengths, for C callbacks.
struct Pointers {
  explicit Pointers(std::span<const Slice> operands) {
    data.reserve(operands.size());
    lengths.reserve(operands.size());
    for (const Slice operand : operands) {
      data.push_back(operand.data());
      lengths.push_back(operand.size());
    }
  }
  int count() const { return static_cast<int>(data.size()); }

  std::vector<const char*> data;
  std::vector<size_t> lengths;
};

}  // namespace

bool braiddb_mergeoperator_t::Take(char* made, size_t length, bool success, std::string* result) const {
  try {
    if (success && made != nullptr) result->assign(made, length);
  } catch (...) {
    Take(made, length, false, result);
    throw;
  }
  if (delete_value != nullptr) {
    delete_value(state, made, length);
  } else {
    std::free(made);
  }
  return success;
}

bool braiddb_mergeoperator_t::FullMerge(Slice key, const Slice* existing, std::span<const Slice> operands,
                                        std::string* value) const {
  const Pointers pointers(operands);
  unsigned char success = 0;
  size_t length = 0;
  char* const made = full_merge(state, key.data(), key.size(), existing == nullptr ? nullptr : existing->data(),
                                existing == nullptr ? 0 : existing->size(), pointers.data.data(), pointers.lengths.data(),
                                pointers.count(), &success, &length);
  return Take(made, length, success != 0, value);
}

bool braiddb_mergeoperator_t::PartialMergeMulti(Slice key, std::span<const Slice> operands, std::string* operand) const {
  if (partial_merge == nullptr) return false;
  const Pointers pointers(operands);
  unsigned char success = 0;
  size_t length = 0;
  char* const made = partial_merge(state, key.data(), key.size(), pointers.data.data(), pointers.lengths.data(), pointers.count(),
                                   &success, &length);
  return Take(made, length, success != 0, operand);
}

braiddb_mergeoperator_t* braiddb_mergeoperator_create(
    void* state, void (*destructor)(void*),
    char* (*full_merge)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*,
                        size_t*),
    char* (*partial_merge)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*),
    void (*delete_value)(void*, const char*, size_t), const char* (*name)(void*)) {
  auto* const made = Make<braiddb_mergeoperator_t>();
  if (made == nullptr) return nullptr;
  made->state = state;
  made->destructor = destructor;
  made->full_merge = full_merge;
  made->partial_merge = partial_merge;
  made->delete_value = delete_value;
  made->name = name;
  return made;
}

void braiddb_mergeoperator_destroy(braiddb_mergeoperator_t* merge_operator) { delete merge_operator; }

void braiddb_merge(braiddb_t* db, const braiddb_writeoptions_t* options, const char* key, size_t key_length, const char* value,
                   size_t value_length, char** errptr) {
  if (db->user_filter == nullptr) {
    SaveError(errptr, WriteWith(options, [&](const auto& own) {
                return db->db->Merge(own, {key, key_length}, {value, value_length});
              }));
    return;
  }
  SaveError(
      errptr, Guarded([&] {
        UserFilter::Writing writing(db->user_filter.get());
        writing.Touch({key, key_length});
        return WriteWith(options, [&](const auto& own) { return db->db->Merge(own, {key, key_length}, {value, value_length}); });
      }));
}

void braiddb_merge_cf(braiddb_t* db, const braiddb_writeoptions_t* options, braiddb_column_family_handle_t* column_family,
                      const char* key, size_t key_length, const char* value, size_t value_length, char** errptr) {
  const braiddb::ColumnFamilyHandle* const family = FamilyOf(column_family);
  if (family != nullptr && family->GetID() == 0) {
    braiddb_merge(db, options, key, key_length, value, value_length, errptr);
    return;
  }
  SaveError(errptr, WriteWith(options, [&](const auto& own) {
              return db->db->Merge(own, FamilyOf(column_family), {key, key_length}, {value, value_length});
            }));
}
