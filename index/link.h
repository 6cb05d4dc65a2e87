// Links: words on media that lead from one part of a structure to the next, and show when they are damaged.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/random.h"

namespace braiddb {

// A PmPtr, null for none, with 12 bits of a hash of it and of the word's owner in bits 52–63: a damaged one is told from a sound
// one that leads elsewhere, which would leave out what is between.
inline constexpr int kLinkShift = 52;
static_assert(kMaxRegions <= 1u << (kLinkShift - PmPtr::kRegionShift));
inline uint64_t MakeLink(uint64_t owner, PmPtr to) {
  return Mix64(Mix64(owner) ^ to.raw()) >> kLinkShift << kLinkShift | to.raw();
}
inline PmPtr LinkTarget(uint64_t link) { return PmPtr(link & ((uint64_t{1} << kLinkShift) - 1)); }
inline bool IsLink(uint64_t owner, uint64_t link) { return MakeLink(owner, LinkTarget(link)) == link; }

}  // namespace braiddb
