// Links: pointers on media between parts of a structure, with a hash that detects damage.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/random.h"

namespace braiddb {

// A link is a PmPtr, null for none, with a 12-bit hash of the PmPtr and of the link's owner in bits 52–63. Without the hash, a
// damaged link could lead to another valid part and skip the parts between.
inline constexpr int kLinkShift = 52;
static_assert(kMaxRegions <= 1u << (kLinkShift - PmPtr::kRegionShift));
inline uint64_t MakeLink(uint64_t owner, PmPtr to) {
  return Mix64(Mix64(owner) ^ to.raw()) >> kLinkShift << kLinkShift | to.raw();
}
inline PmPtr LinkTarget(uint64_t link) { return PmPtr(link & ((uint64_t{1} << kLinkShift) - 1)); }
inline bool IsLink(uint64_t owner, uint64_t link) { return MakeLink(owner, LinkTarget(link)) == link; }

}  // namespace braiddb
