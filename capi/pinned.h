// Values that reads return as objects: pinned in place, or copied.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "braiddb/c.h"
#include "braiddb/db.h"
#include "capi/early_memory.h"
#include "capi/open_objects.h"

namespace braiddb::capi {

struct PinnedValue final : OpenObject {
  explicit PinnedValue(PinnableSlice&& from) : value(std::move(from)) {}

  PinnableSlice value;

 private:
  void EndBeforeClose() noexcept override { value.Reset(); }
};

}  // namespace braiddb::capi

// Allocated by malloc, together with the copy or with a pin. Created by the functions below, freed by
// braiddb_pinnableslice_destroy.
struct braiddb_pinnableslice_t {
  const char* data;
  size_t size;
  braiddb::capi::PinnedValue* pinned;  // null: the value is a copy
};

namespace braiddb::capi {

// Builds the object in `memory`, which has PinnedBytes(value) bytes.
inline size_t PinnedBytes(Slice value) { return sizeof(braiddb_pinnableslice_t) + value.size(); }
inline braiddb_pinnableslice_t* CopyPinned(Slice value, void* memory) noexcept {
  auto* const result = static_cast<braiddb_pinnableslice_t*>(memory);
  auto* const copy = reinterpret_cast<char*>(result + 1);
  if (!value.empty()) std::memcpy(copy, value.data(), value.size());
  *result = {copy, value.size(), nullptr};
  return result;
}
// Returns null if memory is short.
inline braiddb_pinnableslice_t* CopyPinned(Slice value) noexcept {
  void* const memory = std::malloc(PinnedBytes(value));
  return memory == nullptr ? nullptr : CopyPinned(value, memory);
}

// Takes over the pinned value and adds it to the list. Returns null if memory is short.
inline braiddb_pinnableslice_t* KeepPinned(PinnableSlice* value, OpenObjects* list) noexcept {
  auto* const result = static_cast<braiddb_pinnableslice_t*>(std::malloc(sizeof(braiddb_pinnableslice_t)));
  auto* const pinned = new (std::nothrow) PinnedValue(std::move(*value));
  if (result == nullptr || pinned == nullptr) {
    delete pinned;
    std::free(result);
    return nullptr;
  }
  list->Add(pinned);
  *result = {pinned->value.data(), pinned->value.size(), pinned};
  return result;
}

// Copies a small value: a copy is smaller than a pin and blocks no space. For a large value only reports that it is large.
class PinnedReceiver final : public ValueReceiver {
 public:
  bool Receive(Slice value) override {
    is_large_ = value.size() > kMostCopied;
    if (__builtin_expect(is_large_, 0)) return true;
    void* const memory = memory_.Take(PinnedBytes(value));
    if (__builtin_expect(memory == nullptr, 0)) return false;
    copy_ = CopyPinned({value.data(), memory_.size() - sizeof(braiddb_pinnableslice_t)}, memory);
    return true;
  }
  bool is_large() const { return is_large_; }
  braiddb_pinnableslice_t* copy() const { return copy_; }

 private:
  static constexpr size_t kMostCopied = 1024;

  EarlyMemory memory_;
  braiddb_pinnableslice_t* copy_ = nullptr;
  bool is_large_ = false;
};

}  // namespace braiddb::capi
