// Element: what a leaf has of one log entry. LeafChange: a change of a leaf. ElementKeys: from elements to keys.
#pragma once

#include <cstdint>

#include "index/key_order.h"
#include "pmem/persistence.h"

namespace braiddb {

// An element: the first eight bytes of a key as an ordered number (KeyOrder::Prefix), and a value. In the last level of a
// database the value is the PmPtr of the log entry.
struct Element {
  uint64_t key;
  uint64_t value;

  friend bool operator==(const Element&, const Element&) = default;
};
static_assert(sizeof(Element) == 16);

inline constexpr uint32_t kElementsPerLine = kCacheLine / sizeof(Element);

// Adds an element, or removes it if `negative`.
struct LeafChange {
  Element element;
  bool negative = false;
};

// The result of a visitor.
enum class Visited {
  kGoOn,     // continue
  kPastKey,  // the element's key is larger than the target; later sorted elements are not needed
  kEnough,   // stop the visit
};

// Resolves elements to keys. Decides the order of elements with equal key words.
class ElementKeys {
 public:
  virtual ~ElementKeys() = default;
  // The element's position in entry order; its prefix is the key word. Never called for cancelled elements.
  virtual SearchKey KeyOf(const Element& element) const = 0;
  // Announces a KeyOf call. May be called for any element, also for cancelled ones.
  virtual void Prefetch(const Element& element) const = 0;
};

// For unique keys of eight bytes: the key word is the key.
class PlainKeys final : public ElementKeys {
 public:
  SearchKey KeyOf(const Element& element) const override { return SearchKey(element.key, Slice(), 0); }
  void Prefetch(const Element&) const override {}
};

}  // namespace braiddb
