#include "util/comparator_name.h"

#include <xxhash.h>

#include <cinttypes>

#include "util/format.h"

namespace braiddb {

std::string StoredName(const Comparator& comparator) {
  std::string name = comparator.Name();
  if (comparator.timestamp_size() != 0) name += Format("%s%zu bytes", kTimestampsInName, comparator.timestamp_size());
  if (name.size() <= kMaxComparatorName) return name;
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  constexpr size_t kHashBytes = 1 + 32;
  return name.substr(0, kMaxComparatorName - kHashBytes) +
         Format("#%016" PRIx64 "%016" PRIx64, static_cast<uint64_t>(hash.high64), static_cast<uint64_t>(hash.low64));
}

}  // namespace braiddb
