#include "util/bloom_filter.h"

#include <xxhash.h>

namespace braiddb {

uint64_t BloomFilter::Hash(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace braiddb
