/* libpmemobj's examples include a header of this name, which Debian does not install. This is what the maps need of it. */
#pragma once

#include <stdint.h>

/* The place of the highest bit that is set. REQUIRES: value != 0. */
static inline int find_last_set_64(uint64_t value) { return 63 - __builtin_clzll(value); }
