#include "nvtree/leaf_order.h"

#include <cstdlib>
#include <new>

namespace braiddb {

LeafOrder* LeafOrder::Allocate(uint32_t covered, uint32_t live, bool has_bits, bool is_declined) noexcept {
  void* const memory = ::operator new(Bytes(live), std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const order = new (memory) LeafOrder(covered, live, has_bits, is_declined);
  memset(order->slots() + live, 0, BitTree::kReadBehind);  // searches load these bytes
  return order;
}

const LeafOrder* LeafOrder::New(uint32_t covered, const LeafRanks& ranks) noexcept {
  LeafOrder* const order = Allocate(covered, ranks.live, ranks.has_bits, false);
  if (order == nullptr) return nullptr;
  std::copy_n(ranks.differ, ranks.live, order->differs());
  std::copy_n(ranks.slot, ranks.live, order->slots());
  return order;
}

void LeafOrder::CopyTo(LeafRanks* ranks) const {
  ranks->live = live_;
  ranks->has_bits = has_bits_;
  std::copy_n(differs(), live_, ranks->differ);
  std::copy_n(slots(), live_, ranks->slot);
}

LeafOrders::~LeafOrders() {
  for (Word& root : roots_) DeleteNode(root.load(std::memory_order_relaxed), kLevels);
}

void LeafOrders::DeleteNode(void* node, uint32_t level) {
  if (node == nullptr) return;
  if (level == 0) return LeafOrder::Delete(static_cast<const LeafOrder*>(node));
  auto* const words = static_cast<Word*>(node);
  for (uint64_t i = 0; i < uint64_t{1} << kBits; ++i) DeleteNode(words[i].load(std::memory_order_relaxed), level - 1);
  free(node);
}

// Nodes are never removed before the destructor. calloc leaves untouched pages of a node without memory.
LeafOrders::Word* LeafOrders::MakeWordOf(PmPtr leaf) noexcept {
  static_assert(sizeof(Word) == sizeof(void*) && Word::is_always_lock_free);
  const uint64_t index = IndexOf(leaf);
  Word* word = &roots_[leaf.region()];
  for (uint32_t level = kLevels; level-- > 0;) {
    void* node = word->load(std::memory_order_acquire);
    if (node == nullptr) {
      void* const made = calloc(uint64_t{1} << kBits, sizeof(Word));
      if (made == nullptr) return nullptr;
      if (word->compare_exchange_strong(node, made, std::memory_order_acq_rel)) {
        node = made;
      } else {
        free(made);
      }
    }
    word = static_cast<Word*>(node) + Part(index, level);
  }
  return word;
}

bool LeafOrders::Replace(PmPtr leaf, const LeafOrder* before, const LeafOrder* order) noexcept {
  Word* const word = MakeWordOf(leaf);
  if (word == nullptr) return false;
  void* expected = const_cast<LeafOrder*>(before);
  // release: pairs with the acquire in Find.
  if (!word->compare_exchange_strong(expected, const_cast<LeafOrder*>(order), std::memory_order_acq_rel)) return false;
  bytes_.fetch_add((order == nullptr ? 0 : order->bytes()) - (before == nullptr ? 0 : before->bytes()),
                   std::memory_order_relaxed);
  return true;
}

void LeafOrders::Drop(PmPtr leaf) noexcept {
  Word* const word = WordOf(leaf);
  if (word == nullptr) return;
  const auto* const order = static_cast<const LeafOrder*>(word->exchange(nullptr, std::memory_order_acquire));
  if (order == nullptr) return;
  bytes_.fetch_sub(order->bytes(), std::memory_order_relaxed);
  LeafOrder::Delete(order);
}

}  // namespace braiddb
