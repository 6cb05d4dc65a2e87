// PmPtr: an 8-byte persistent pointer. It stays valid when a pool is mapped at another address.
//
// LAYOUT  Bits 63–48: region. Bits 47–0: byte offset from the start of the region's pool. 0 is null: no object lies at the
//         start of region 0's pool. Targets are aligned to 8 bytes, so bits 2–0 are 0; the structure that stores the pointer
//         may use them for tags, which it masks before it constructs a PmPtr.
// ATOMICITY  A PmPtr is one aligned word, so a crash leaves the old or the new pointer (persistence.h, StoreRelease).
// SAFETY  A PmPtr from media may be damaged. RegionSet::Holds and Contains check it before RegionSet::Resolve follows it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace braiddb {

class PmPtr {
 public:
  static constexpr int kRegionShift = 48;
  static constexpr uint64_t kOffsetMask = (uint64_t{1} << kRegionShift) - 1;

  constexpr PmPtr() = default;
  explicit constexpr PmPtr(uint64_t raw) : raw_(raw) {}
  // REQUIRES: region < 2^16, offset <= kOffsetMask.
  constexpr PmPtr(uint32_t region, uint64_t offset) : raw_(uint64_t{region} << kRegionShift | offset) {}

  constexpr uint64_t raw() const { return raw_; }
  constexpr uint32_t region() const { return static_cast<uint32_t>(raw_ >> kRegionShift); }
  constexpr uint64_t offset() const { return raw_ & kOffsetMask; }
  constexpr bool is_null() const { return raw_ == 0; }
  constexpr explicit operator bool() const { return raw_ != 0; }
  // The place `bytes` further on in the same region. REQUIRES: the sum of offset and bytes is at most kOffsetMask.
  constexpr PmPtr operator+(uint64_t bytes) const { return PmPtr(raw_ + bytes); }
  friend constexpr bool operator==(PmPtr a, PmPtr b) { return a.raw_ == b.raw_; }

 private:
  uint64_t raw_ = 0;
};

static_assert(sizeof(PmPtr) == 8 && alignof(PmPtr) == 8 && std::is_trivially_copyable_v<PmPtr>);
static_assert(PmPtr(3, 8).region() == 3 && PmPtr(3, 8).offset() == 8 && PmPtr().is_null());

}  // namespace braiddb
