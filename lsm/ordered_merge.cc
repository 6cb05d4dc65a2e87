#include "lsm/ordered_merge.h"

#include <algorithm>

namespace braiddb {

// Merges from both ends at once, so that two independent chains of loads overlap. The choice of the next item is a conditional
// move, since a branch on it would be unpredictable.
bool MergeByPrefix(std::span<const OrderedItem> a, std::span<const OrderedItem> b, OrderedItem* to) {
  OrderedItem* back = to + a.size() + b.size();
  const OrderedItem* first_a = a.data();
  const OrderedItem* first_b = b.data();
  const OrderedItem* end_a = first_a + a.size();
  const OrderedItem* end_b = first_b + b.size();
  bool alike = false;
  // Each step takes one item from the front and one from the back. min(sizes) / 2 such steps read no input past its end, so the
  // loop needs no further check.
  while (size_t steps = static_cast<size_t>(std::min(end_a - first_a, end_b - first_b)) / 2) {
    for (; steps > 0; --steps) {
      const bool takes_b = first_b->prefix < first_a->prefix;
      alike |= first_b->prefix == first_a->prefix;
      *to++ = *(takes_b ? first_b : first_a);
      first_a += !takes_b;
      first_b += takes_b;
      const OrderedItem* const last_a = end_a - 1;
      const OrderedItem* const last_b = end_b - 1;
      const bool takes_a = last_b->prefix < last_a->prefix;
      alike |= last_b->prefix == last_a->prefix;
      *--back = *(takes_a ? last_a : last_b);
      end_a -= takes_a;
      end_b -= !takes_a;
    }
  }
  while (first_a != end_a && first_b != end_b) {
    alike |= first_b->prefix == first_a->prefix;
    *to++ = first_b->prefix < first_a->prefix ? *first_b++ : *first_a++;
  }
  std::copy(first_b, end_b, std::copy(first_a, end_a, to));
  return alike;
}

namespace {

// The number of items of `a` among the first `count` items of the merged sequence. Binary search.
size_t CountOfA(OrderedFunnel::Items a, OrderedFunnel::Items b, size_t count) {
  size_t least = count - std::min(count, b.size());
  size_t most = std::min(count, a.size());
  while (least < most) {
    const size_t middle = least + (most - least) / 2;
    if (a[middle].prefix <= b[count - middle - 1].prefix) {
      least = middle + 1;
    } else {
      most = middle;
    }
  }
  return least;
}

}  // namespace

// A tree over n inputs has n - 1 inner nodes. All but the root have a buffer; the root writes to the caller's array.
OrderedFunnel::OrderedFunnel(const std::vector<Items>& inputs) {
  nodes_.reserve(2 * inputs.size());
  buffers_.resize(inputs.size() < 3 ? 0 : (inputs.size() - 2) * kBuffer);
  root_ = Build(inputs, 0, inputs.size());
  OrderedItem* buffer = buffers_.data();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (i == root_ || nodes_[i].left == kNone) continue;
    nodes_[i].buffer = buffer;
    buffer += kBuffer;
  }
}

// Builds a balanced tree and returns its root's index. Left children have the earlier inputs, which keeps equal prefixes in input
// order.
size_t OrderedFunnel::Build(const std::vector<Items>& inputs, size_t begin, size_t end) {
  if (end - begin == 1) {
    nodes_.push_back({.rest = inputs[begin]});
    return nodes_.size() - 1;
  }
  const size_t middle = begin + (end - begin) / 2;
  const size_t left = Build(inputs, begin, middle);
  const size_t right = Build(inputs, middle, end);
  nodes_.push_back({.left = left, .right = right});
  return nodes_.size() - 1;
}

// An input is limited to a window as well, so that a merge step of two inputs stays in the cache.
OrderedFunnel::Items OrderedFunnel::Window(size_t node) {
  Node& of = nodes_[node];
  if (of.rest.empty() && of.buffer != nullptr) of.rest = {of.buffer, Take(node, of.buffer, kBuffer)};
  return of.rest.first(std::min(of.rest.size(), kBuffer));
}

// WHY IT IS RIGHT  Items behind a window may equal the window's last item. An item is therefore merged only if no unseen item can
//                  precede it: all of the window with the smaller last prefix, and of the other window the items before that
//                  prefix. Items of the left input with an equal prefix are included, since they come first.
size_t OrderedFunnel::Take(size_t node, OrderedItem* to, size_t most) {
  const auto taken = [this](size_t of, size_t count) { nodes_[of].rest = nodes_[of].rest.subspan(count); };
  if (nodes_[node].left == kNone) {
    const size_t count = std::min(most, nodes_[node].rest.size());
    std::copy_n(nodes_[node].rest.data(), count, to);
    taken(node, count);
    return count;
  }
  const size_t left = nodes_[node].left;
  const size_t right = nodes_[node].right;
  size_t done = 0;
  while (done != most) {
    const Items a = Window(left);
    const Items b = Window(right);
    if (a.empty() && b.empty()) break;
    size_t of_a = a.size();
    size_t of_b = b.size();
    const auto prefix = &OrderedItem::prefix;
    if (a.empty() || b.empty()) {
      // All of the other one.
    } else if (a.back().prefix <= b.back().prefix) {
      of_b = static_cast<size_t>(std::ranges::lower_bound(b, a.back().prefix, {}, prefix) - b.begin());
    } else {
      of_a = static_cast<size_t>(std::ranges::upper_bound(a, b.back().prefix, {}, prefix) - a.begin());
    }
    // Less room than items: split both inputs at the same position of the merged sequence.
    if (of_a + of_b > most - done) {
      of_a = CountOfA(a.first(of_a), b.first(of_b), most - done);
      of_b = most - done - of_a;
    }
    MergeByPrefix(a.first(of_a), b.first(of_b), to + done);
    taken(left, of_a);
    taken(right, of_b);
    done += of_a + of_b;
  }
  return done;
}

}  // namespace braiddb
