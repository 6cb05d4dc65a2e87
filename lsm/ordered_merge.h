// Merges of ordered items by their prefixes: of two, and of any number in one pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/ordered_item.h"

namespace braiddb {

// In order by prefix; of equal ones those of `a` first. Whether both have one. `to`: apart from both.
bool MergeByPrefix(std::span<const OrderedItem> a, std::span<const OrderedItem> b, OrderedItem* to);

// A lazy funnel (Brodal and Fagerberg, Cache Oblivious Distribution Sweeping, ICALP '02, 2; of Frigo et al., FOCS '99): a tree of
// merges of two, with buffers between them that stay in the CPU's caches, so that what is merged is read from memory once and
// written once, however many inputs there are.
// Thread safety: none.
class OrderedFunnel {
 public:
  using Items = std::span<const OrderedItem>;

  // Of equal prefixes those of the first input come first. What the inputs, at least one, are of must outlive it. May throw
  // std::bad_alloc.
  explicit OrderedFunnel(const std::vector<Items>& inputs);
  OrderedFunnel(const OrderedFunnel&) = delete;
  OrderedFunnel& operator=(const OrderedFunnel&) = delete;

  // The next ones, not more than `most`; how many: fewer only if there are no more.
  size_t Take(OrderedItem* to, size_t most) { return Take(root_, to, most); }

 private:
  // 16 KiB: two children's and what they are merged into are in an L1 cache.
  static constexpr size_t kBuffer = 1024;
  static constexpr size_t kNone = SIZE_MAX;

  struct Node {
    Items rest{};  // of an input, or of the buffer, what was not taken
    size_t left = kNone;
    size_t right = kNone;
    OrderedItem* buffer = nullptr;  // null: an input, or the root
  };

  size_t Build(const std::vector<Items>& inputs, size_t begin, size_t end);
  size_t Take(size_t node, OrderedItem* to, size_t most);
  // What may be taken of it, at most a buffer full; empty if nothing is left.
  Items Window(size_t node);

  std::vector<Node> nodes_;
  std::vector<OrderedItem> buffers_;
  size_t root_;
};

}  // namespace braiddb
