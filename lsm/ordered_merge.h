// Merges of sorted arrays of OrderedItem by their prefixes: of two arrays, and of any number in one pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/ordered_item.h"

namespace braiddb {

// Merges by prefix; of equal prefixes, items of `a` come first. Returns true if a prefix occurs in both. `to` must not overlap
// the inputs.
bool MergeByPrefix(std::span<const OrderedItem> a, std::span<const OrderedItem> b, OrderedItem* to);

// A lazy funnel (Brodal and Fagerberg, Cache Oblivious Distribution Sweeping, ICALP '02, 2; after Frigo et al., FOCS '99): a
// binary tree of two-way merges with buffers between them. The buffers stay in the CPU's caches.
// COST           Each item is read from memory once and written once, for any number of inputs.
// CONCURRENCY    None: one thread.
class OrderedFunnel {
 public:
  using Items = std::span<const OrderedItem>;

  // Of equal prefixes, items of the earlier input come first. `inputs`: at least one; their arrays must outlive the funnel. May
  // throw std::bad_alloc.
  explicit OrderedFunnel(const std::vector<Items>& inputs);
  OrderedFunnel(const OrderedFunnel&) = delete;
  OrderedFunnel& operator=(const OrderedFunnel&) = delete;

  // Writes the next items, at most `most`. Returns their number, which is less than `most` only at the end.
  size_t Take(OrderedItem* to, size_t most) { return Take(root_, to, most); }

 private:
  // 16 KiB. The buffers of two children and their parent fit in an L1 cache.
  static constexpr size_t kBuffer = 1024;
  static constexpr size_t kNone = SIZE_MAX;

  struct Node {
    Items rest{};  // items of the input or the buffer that are not taken yet
    size_t left = kNone;
    size_t right = kNone;
    OrderedItem* buffer = nullptr;  // null in inputs and in the root
  };

  size_t Build(const std::vector<Items>& inputs, size_t begin, size_t end);
  size_t Take(size_t node, OrderedItem* to, size_t most);
  // The next items of the node, at most one buffer; empty at the end. Refills the buffer if it is empty.
  Items Window(size_t node);

  std::vector<Node> nodes_;
  std::vector<OrderedItem> buffers_;
  size_t root_;
};

}  // namespace braiddb
