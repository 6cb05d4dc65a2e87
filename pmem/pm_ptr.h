// PmPtr: an 8-byte persistent pointer that survives remapping at another address.
//
// LAYOUT  bits 63..48 region, bits 47..0 byte offset from the start of that region's pool; 0 is null. Everything pointed to is
//         8-byte aligned, so bits 2..0 of the offset are 0 and free for tags of the structure that stores the pointer.
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
  constexpr PmPtr(uint32_t region, uint64_t offset) : raw_(uint64_t{region} << kRegionShift | offset) {}

  constexpr uint64_t raw() const { return raw_; }
  constexpr uint32_t region() const { return static_cast<uint32_t>(raw_ >> kRegionShift); }
  constexpr uint64_t offset() const { return raw_ & kOffsetMask; }
  constexpr bool is_null() const { return raw_ == 0; }
  constexpr explicit operator bool() const { return raw_ != 0; }
  constexpr PmPtr operator+(uint64_t bytes) const { return PmPtr(raw_ + bytes); }
  friend constexpr bool operator==(PmPtr a, PmPtr b) { return a.raw_ == b.raw_; }

 private:
  uint64_t raw_ = 0;
};

static_assert(sizeof(PmPtr) == 8 && std::is_trivially_copyable_v<PmPtr>);

}  // namespace braiddb
