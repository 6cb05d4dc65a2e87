// Comparators, filter policies, key prefixes.
#include "capi/objects.h"
#include "capi/result.h"

using namespace braiddb::capi;

// ---- Comparators

braiddb_comparator_t* braiddb_comparator_create(void* state, void (*destructor)(void*),
                                                int (*compare)(void*, const char*, size_t, const char*, size_t),
                                                const char* (*name)(void*)) {
  auto* const comparator = Make<braiddb_comparator_t>();
  if (comparator == nullptr) return nullptr;
  comparator->state = state;
  comparator->destructor = destructor;
  comparator->compare = compare;
  comparator->name = name;
  return comparator;
}

braiddb_comparator_t* braiddb_comparator_with_ts_create(
    void* state, void (*destructor)(void*), int (*compare)(void*, const char*, size_t, const char*, size_t),
    int (*compare_timestamps)(void*, const char*, size_t, const char*, size_t),
    int (*compare_without_timestamps)(void*, const char*, size_t, unsigned char, const char*, size_t, unsigned char),
    const char* (*name)(void*), size_t timestamp_size) {
  braiddb_comparator_t* const comparator = braiddb_comparator_create(state, destructor, compare, name);
  if (comparator == nullptr) return comparator;
  comparator->compare_timestamps = compare_timestamps;
  comparator->compare_without_timestamps = compare_without_timestamps;
  comparator->bytes_of_timestamps = timestamp_size;
  return comparator;
}

void braiddb_comparator_destroy(braiddb_comparator_t* comparator) { delete comparator; }

// ---- Filter policies

namespace {

braiddb_filterpolicy_t* MakeBitsPolicy(double bits_per_key) {
  auto* const policy = Make<braiddb_filterpolicy_t>();
  if (policy == nullptr) return nullptr;
  policy->bits_per_key = bits_per_key;
  return policy;
}

}  // namespace

braiddb_filterpolicy_t* braiddb_filterpolicy_create_bloom(double bits_per_key) { return MakeBitsPolicy(bits_per_key); }
braiddb_filterpolicy_t* braiddb_filterpolicy_create_bloom_full(double bits_per_key) { return MakeBitsPolicy(bits_per_key); }
braiddb_filterpolicy_t* braiddb_filterpolicy_create_ribbon(double bloom_equivalent_bits_per_key) {
  return MakeBitsPolicy(bloom_equivalent_bits_per_key);
}
braiddb_filterpolicy_t* braiddb_filterpolicy_create_ribbon_hybrid(double bloom_equivalent_bits_per_key, int) {
  return MakeBitsPolicy(bloom_equivalent_bits_per_key);
}

braiddb_filterpolicy_t* braiddb_filterpolicy_create(
    void* state, void (*destructor)(void*), char* (*create_filter)(void*, const char* const*, const size_t*, int, size_t*),
    unsigned char (*key_may_match)(void*, const char*, size_t, const char*, size_t), const char* (*name)(void*)) {
  auto* const policy = Make<braiddb_filterpolicy_t>();
  if (policy == nullptr) return nullptr;
  policy->state = state;
  policy->destructor = destructor;
  policy->create_filter = create_filter;
  policy->key_may_match = key_may_match;
  policy->name = name;
  return policy;
}

void braiddb_filterpolicy_destroy(braiddb_filterpolicy_t* policy) { delete policy; }

// ---- Prefixes

braiddb_slicetransform_t* braiddb_slicetransform_create(void* state, void (*destructor)(void*),
                                                        char* (*transform)(void*, const char*, size_t, size_t*),
                                                        unsigned char (*in_domain)(void*, const char*, size_t),
                                                        unsigned char (*in_range)(void*, const char*, size_t),
                                                        const char* (*name)(void*)) {
  auto* const result = Make<braiddb_slicetransform_t>();
  if (result == nullptr) return nullptr;
  result->state = state;
  result->destructor = destructor;
  result->transform = transform;
  result->in_domain = in_domain;
  result->in_range = in_range;
  result->name = name;
  return result;
}

namespace {

// Wraps the transform that `make` returns.
template <class MakeTransform>
braiddb_slicetransform_t* BuiltIn(const MakeTransform& make) {
  std::unique_ptr<braiddb_slicetransform_t> result;
  braiddb::Status status;
  DoOrNote(&status, [&] {
    result = std::make_unique<braiddb_slicetransform_t>();
    result->built_in = make();
  });
  return status.ok() ? result.release() : nullptr;
}

}  // namespace

braiddb_slicetransform_t* braiddb_slicetransform_create_fixed_prefix(size_t length) {
  return BuiltIn([=] { return braiddb::NewFixedPrefixTransform(length); });
}
braiddb_slicetransform_t* braiddb_slicetransform_create_capped_prefix(size_t length) {
  return BuiltIn([=] { return braiddb::NewCappedPrefixTransform(length); });
}
braiddb_slicetransform_t* braiddb_slicetransform_create_noop() { return BuiltIn(braiddb::NewNoopTransform); }

void braiddb_slicetransform_destroy(braiddb_slicetransform_t* transform) { delete transform; }
