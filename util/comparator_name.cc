#include "util/comparator_name.h"

#include <xxhash.h>

#include <cinttypes>

#include "util/format.h"

namespace braiddb {

std::string StoredName(const Comparator& comparator) {
  const std::string_view name = comparator.Name();
  if (name.size() <= kMaxComparatorName) return std::string(name);
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  constexpr size_t kHashBytes = 1 + 32;
  return std::string(name.substr(0, kMaxComparatorName - kHashBytes)) +
         Format("#%016" PRIx64 "%016" PRIx64, static_cast<uint64_t>(hash.high64), static_cast<uint64_t>(hash.low64));
}

}  // namespace braiddb
