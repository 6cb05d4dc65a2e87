#include "lsm/alike_items.h"

#include <algorithm>

#include "util/common_bytes.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Prefetch distance, in items of one array.
constexpr size_t kAhead = 8;
// Fewer items are sorted by comparison.
constexpr size_t kLeastForWords = 16;
// Maximum number of nested sorts, which bounds the stack and the time for keys that have long prefixes in common by turns.
constexpr int kMostDepth = 24;

}  // namespace

void AlikeItems::Fetch(const OrderedItem& item, size_t skip) const {
  constexpr size_t kUsualTower = 2 * sizeof(uint64_t);
  const auto* const entry = reinterpret_cast<const char*>(At(item));
  Prefetch(entry);
  Prefetch(entry + sizeof(LogEntry) + kUsualTower + skip + sizeof(uint64_t) - 1);
}

// ---- Sort

// An item with the word by which it is compared.
struct AlikeItems::Keyed {
  uint64_t word;
  OrderedItem item;
};

size_t AlikeItems::CommonBytesOfSome(std::span<Keyed> items) const {
  constexpr size_t kSome = 16;
  const size_t distance = std::max<size_t>(items.size() / kSome, 1);
  for (size_t i = 0; i < items.size(); i += distance) Fetch(items[i].item, 0);
  const Slice first = At(items.front().item)->key();
  size_t common = first.size();
  for (size_t i = distance; i < items.size(); i += distance)
    common = std::min(common, braiddb::CommonBytes(first, At(items[i].item)->key()));
  return common;
}

size_t AlikeItems::ReadWords(std::span<Keyed> items, size_t common, bool* one_key) const {
  const Slice first = At(items.front().item)->key();
  size_t least = common;
  *one_key = true;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) Fetch(items[i + kAhead].item, common);
    const Slice key = At(items[i].item)->key();
    if (!key.starts_with(first.substr(0, least))) least = braiddb::CommonBytes(first, key);
    *one_key &= key.size() == least;
    items[i].word = order_->Prefix(BytesFrom(key, common));
  }
  return least;
}

// WHY A HEAP  Entries may change under a live reader that has expired (db/live_reader.h). With comparisons that contradict each
//             other, std::sort may access memory outside of the array, and a heap sort does not.
void AlikeItems::SortByEntry(std::span<Keyed> items) const {
  const auto before = [this](const Keyed& a, const Keyed& b) {
    return a.item.Entry() != b.item.Entry() && CompareEntries(*order_, *At(a.item), *At(b.item)) < 0;
  };
  if (__builtin_expect(!regions_->is_live(), 1)) {
    std::sort(items.begin(), items.end(), before);
  } else {
    std::make_heap(items.begin(), items.end(), before);
    std::sort_heap(items.begin(), items.end(), before);
  }
  for (size_t i = 0; i < items.size(); ++i)
    items[i].item.SetOlder(i > 0 && order_->Same(At(items[i - 1].item)->key(), At(items[i].item)->key()));
}

bool AlikeItems::AreOfOneKey(std::span<const Keyed> items) const {
  const Slice first = At(items.front().item)->key();
  for (size_t i = 1; i < items.size(); ++i) {
    if (i + kAhead < items.size()) Fetch(items[i + kAhead].item, 0);
    if (At(items[i].item)->key() != first) return false;
  }
  return true;
}

// Versions of one key: the newest comes first. They were written in about this order, or the other way around.
void AlikeItems::SortByNumber(std::span<Keyed> items) const {
  for (Keyed& keyed : items) keyed.word = ~At(keyed.item)->sequence();
  const auto before = [](const Keyed& a, const Keyed& b) { return a.word < b.word; };
  if (before(items.back(), items.front())) std::reverse(items.begin(), items.end());
  if (!std::is_sorted(items.begin(), items.end(), before)) std::sort(items.begin(), items.end(), before);
  for (size_t i = 0; i < items.size(); ++i) items[i].item.SetOlder(i > 0);
}

// STEPS  1. Guess the common prefix from some keys, and read all words behind it; if some key has less in common, read them once
//        more.  2. Sort by the words.  3. Sort each group of equal words in the same way. Items with different words are of
//        different keys.
// WHY IT ENDS  Keys of a group have eight more bytes in common, and at least two groups exist, or else the words say nothing: a
//              key ends within them. Such a group, a small one and a deep one are sorted by their entries, and the versions of
//              one key by their numbers: a key that is overwritten all the time has many.
void AlikeItems::SortFrom(std::span<Keyed> items, size_t known, int depth) const {
  if (items.size() < kLeastForWords) return SortByEntry(items);
  if (depth == kMostDepth || !order_->equal_means_same()) return AreOfOneKey(items) ? SortByNumber(items) : SortByEntry(items);
  bool one_key = false;
  size_t common = CommonBytesOfSome(items);
  const size_t least = ReadWords(items, common, &one_key);
  if (least < common) common = ReadWords(items, least, &one_key);
  if (one_key) return SortByNumber(items);
  if (common < known) return SortByEntry(items);
  std::sort(items.begin(), items.end(), [](const Keyed& a, const Keyed& b) { return a.word < b.word; });
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = std::find_if(begin + 1, items.end(), [begin](const Keyed& keyed) { return keyed.word != begin->word; });
    if (end - begin > 1) {
      SortFrom({begin, end}, common + sizeof(uint64_t), depth + 1);
    } else {
      begin->item.SetOlder(false);
    }
    begin = end;
  }
}

void AlikeItems::Sort(std::span<OrderedItem> items) const {
  std::vector<Keyed> keyed(items.size());
  for (size_t i = 0; i < items.size(); ++i) keyed[i] = {0, items[i]};
  SortFrom(keyed, 0, 0);
  for (size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].item;
}

// ---- Merge

// The next item of each array, in a loser tree (Knuth, The Art of Computer Programming, vol. 3, 5.4.1).
class AlikeItems::Cursors {
 public:
  Cursors(const AlikeItems& of, const std::vector<Items>& arrays) : of_(of), losers_(arrays.size()) {
    for (const Items& array : arrays) heads_.push_back({array.data(), array.data() + array.size()});
    if (of_.order_->equal_means_same()) skip_ = CommonBytes();
    for (Head& head : heads_) {
      for (size_t i = 0; i < std::min(kAhead, static_cast<size_t>(head.end - head.at)); ++i) of_.Fetch(head.at[i], skip_);
    }
    for (Head& head : heads_) Load(&head);
    first_ = heads_.size() == 1 ? 0 : Play(1);
  }

  // REQUIRES: an item is left.
  const OrderedItem& item() const { return *heads_[first_].at; }
  const LogEntry* entry() const { return heads_[first_].entry; }

  void Next() {
    Head& head = heads_[first_];
    ++head.at;
    if (static_cast<size_t>(head.end - head.at) > kAhead) of_.Fetch(head.at[kAhead], skip_);
    Load(&head);
    for (size_t node = (heads_.size() + first_) / 2; node > 0; node /= 2) {
      if (Precedes(losers_[node], first_)) std::swap(losers_[node], first_);
    }
  }

 private:
  struct Head {
    const OrderedItem* at;
    const OrderedItem* end;
    const LogEntry* entry = nullptr;  // null at the end
    uint64_t word = 0;
  };

  // A key lies between the first and the last key of its array. It has the bytes that these two have in common.
  size_t CommonBytes() const {
    size_t common = SIZE_MAX;
    const LogEntry* any = nullptr;
    for (const Head& head : heads_) {
      if (head.at == head.end) continue;
      if (any == nullptr) any = of_.At(*head.at);
      for (const LogEntry* entry : {of_.At(*head.at), of_.At(head.end[-1])})
        common = std::min(common, braiddb::CommonBytes(any->key(), entry->key()));
    }
    return any == nullptr ? 0 : common;
  }
  void Load(Head* head) const {
    head->entry = head->at == head->end ? nullptr : of_.At(*head->at);
    if (head->entry != nullptr) head->word = of_.order_->Prefix(BytesFrom(head->entry->key(), skip_));
  }
  bool Precedes(size_t a, size_t b) const {
    const Head& x = heads_[a];
    const Head& y = heads_[b];
    if (x.entry == nullptr || y.entry == nullptr) return x.entry != nullptr || (y.entry == nullptr && a < b);
    if (x.word != y.word) return x.word < y.word;
    const int order = CompareEntries(*of_.order_, *x.entry, *y.entry);
    return order != 0 ? order < 0 : a < b;
  }
  // Plays the subtree below the node and returns its winner.
  size_t Play(size_t node) {
    if (node >= heads_.size()) return node - heads_.size();
    size_t winner = Play(2 * node);
    size_t loser = Play(2 * node + 1);
    if (Precedes(loser, winner)) std::swap(winner, loser);
    losers_[node] = loser;
    return winner;
  }

  const AlikeItems& of_;
  std::vector<Head> heads_;
  std::vector<size_t> losers_;  // by node; node n has the children 2 n and 2 n + 1, and children beyond the vector are the heads
  size_t skip_ = 0;             // number of bytes that all keys have in common
  size_t first_ = 0;
};

bool AlikeItems::Merge(const std::vector<Items>& arrays, OrderedItem* to, const Stop& stop) const {
  size_t left = 0;
  for (const Items& array : arrays) left += array.size();
  if (left == 0) return true;
  Cursors cursors(*this, arrays);
  const LogEntry* last = nullptr;
  for (; left > 0; --left, cursors.Next()) {
    if (left % kItemsPerStop == 0 && stop && stop(kItemsPerStop)) return false;
    *to = cursors.item();
    const LogEntry* const entry = cursors.entry();
    to->SetOlder(last != nullptr && order_->Same(last->key(), entry->key()));
    ++to;
    last = entry;
  }
  return true;
}

}  // namespace braiddb
