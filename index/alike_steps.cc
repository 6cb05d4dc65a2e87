#include "index/alike_steps.h"

#include <algorithm>
#include <new>

#include "index/bit_tree.h"
#include "util/common_bytes.h"

namespace braiddb {

bool AlikeSteps::HasItems(const Array& array, size_t begin, size_t end, size_t least) {
  if (end - begin < least) return false;
  if (array.is_one == nullptr) return true;
  size_t items = 1;
  for (size_t i = begin + 1; i < end && items < least; ++i) items += array.is_one((i - 1) * kSampled, i * kSampled) ? 0 : 1;
  return items >= least;
}

bool AlikeSteps::AddNode(const Array& array, size_t first, size_t count, size_t known) {
  const Slice least = array.key(first * kSampled);
  const Slice greatest = array.key((first + count - 1) * kSampled);
  const size_t skip = CommonBytes(least, greatest);
  const size_t samples = array.size / kSampled + 1;
  // All keys between two keys have the bytes that these two share. Keys shorter than `known` have words that are padded.
  const size_t most_shared = std::min<size_t>(samples * kSampled, UINT32_MAX);
  if (skip < known || own_.words.size() + count > kMostWords * samples || own_.shared.size() + (skip - known) > most_shared)
    return false;
  nodes_.push_back({.first = static_cast<uint32_t>(first),
                    .count = static_cast<uint32_t>(count),
                    .known = static_cast<uint32_t>(known),
                    .skip = static_cast<uint32_t>(skip),
                    .words = static_cast<uint32_t>(own_.words.size()),
                    .shared = static_cast<uint32_t>(own_.shared.size())});
  own_.shared.insert(own_.shared.end(), least.begin() + known, least.begin() + skip);
  own_.words.resize(own_.words.size() + count);
  return true;
}

bool AlikeSteps::AddBits(const Array& array, Top* top) {
  constexpr size_t kAhead = 8;
  constexpr size_t kItemsPerStop = 4096;
  size_t end = top->begin + 1;
  for (size_t step = kSampled; end + step <= array.size && array.prefix(end + step - 1) == top->prefix;) end += step;
  while (end < array.size && array.prefix(end) == top->prefix) ++end;
  top->items = static_cast<uint32_t>(end - top->begin);
  top->bits = own_.bits.size();
  own_.bits.resize(own_.bits.size() + (end - top->begin));
  Slice before;
  for (size_t i = top->begin; i < end; ++i) {
    if (i % kItemsPerStop == 0 && array.stops()) return false;
    if (i + kAhead < end) array.fetch(i + kAhead);
    const Slice key = array.key(i);
    if (i > top->begin && !BitTree::Differ(before, key, &own_.bits[top->bits + (i - top->begin)])) {
      own_.bits.resize(top->bits);
      top->bits = kNoBits;
      return true;
    }
    before = key;
  }
  return true;
}

bool AlikeSteps::Fill(const Array& array, const KeyOrder& order, size_t node) {
  constexpr size_t kAhead = 8;
  const Node of = nodes_[node];
  constexpr size_t kSamplesPerStop = 1024;
  for (size_t i = 0; i < of.count; ++i) {
    if (i % kSamplesPerStop == 0 && array.stops()) return false;
    if (i + kAhead < of.count) array.fetch((of.first + i + kAhead) * kSampled);
    own_.words[of.words + i] = order.Prefix(BytesFrom(array.key((of.first + i) * kSampled), of.skip));
  }
  if (of.count >= kLeastForSteps) {
    nodes_[node].steps = static_cast<uint32_t>(steps_.size());
    steps_.emplace_back().Build(of.count, [this, &of](size_t i) { return own_.words[of.words + i]; });
  }
  const size_t below = nodes_.size();
  for (size_t begin = 0; begin < of.count;) {
    size_t end = begin + 1;
    while (end < of.count && own_.words[of.words + end] == own_.words[of.words + begin]) ++end;
    if (HasItems(array, of.first + begin, of.first + end, kLeast))
      AddNode(array, of.first + begin, end - begin, of.skip + sizeof(uint64_t));
    begin = end;
  }
  nodes_[node].below = static_cast<uint32_t>(below);
  nodes_[node].belows = static_cast<uint32_t>(nodes_.size() - below);
  return true;
}

void AlikeSteps::Build(const Array& array, const KeyOrder& order, SharedHeap* heap) try {
  *this = {};
  const size_t samples = (array.size + kSampled - 1) / kSampled;
  const bool adds_bits = !array.has_bits;
  const size_t least = adds_bits ? kLeastTop : kLeast;
  const size_t most = adds_bits ? array.size : samples * kMostWords;
  if (!order.equal_means_same() || samples < least || most > UINT32_MAX) return;
  // Every `least` neighbors contain two of the samples that are probed here.
  const size_t stride = least / 2;
  const auto prefix_of = [&array](size_t sample) { return array.prefix(sample * kSampled); };
  for (size_t probed = 0; probed + stride < samples;) {
    const uint64_t prefix = prefix_of(probed);
    if (prefix_of(probed + stride) != prefix) {
      probed += stride;
      continue;
    }
    size_t begin = probed;
    while (begin > 0 && prefix_of(begin - 1) == prefix) --begin;
    size_t end = probed + stride + 1;
    while (end < samples && prefix_of(end) == prefix) ++end;
    if (HasItems(array, begin, end, least) && AddNode(array, begin, end - begin, 0)) {
      size_t first = begin * kSampled;
      while (adds_bits && first > 0 && array.prefix(first - 1) == prefix) --first;
      tops_.push_back({.prefix = prefix, .begin = static_cast<uint32_t>(first), .items = 0, .bits = kNoBits});
    }
    probed = (end + stride - 1) / stride * stride;
  }
  bool is_stopped = false;
  for (size_t node = 0; node < nodes_.size() && !is_stopped; ++node) is_stopped = !Fill(array, order, node);
  for (size_t top = 0; top < tops_.size() && adds_bits && !is_stopped; ++top) is_stopped = !AddBits(array, &tops_[top]);
  if (is_stopped) {
    *this = {};
    return;
  }
  if (!own_.bits.empty()) own_.bits.resize(own_.bits.size() + BitTree::kPerStep);
  nodes_.shrink_to_fit();
  steps_.shrink_to_fit();
  tops_.shrink_to_fit();
  own_.words.shrink_to_fit();
  own_.shared.shrink_to_fit();
  own_.bits.shrink_to_fit();
  Place(heap);
} catch (const std::bad_alloc&) {
  *this = {};
  throw;
}

size_t AlikeSteps::bytes() const {
  if (empty()) return 0;
  size_t bytes = nodes_.capacity() * sizeof(Node) + tops_.capacity() * sizeof(Top) + steps_.capacity() * sizeof(PrefixSteps) +
                 own_.words.capacity() * sizeof(uint64_t) + own_.bits.capacity() * sizeof(uint16_t) + own_.shared.capacity() +
                 (block_.heap_offset() == 0 ? 0 : block_.bytes());
  for (const PrefixSteps& steps : steps_) bytes += steps.bytes();
  return bytes;
}

// Samples with one word are few, or a node below.
std::pair<size_t, size_t> AlikeSteps::FindWord(const Node& node, uint64_t word, size_t group) const {
  constexpr size_t kFew = 4;
  const uint64_t* const words = &words_[node.words];
  size_t lower = 0;
  if (node.steps == kNoSteps) {
    lower = static_cast<size_t>(std::lower_bound(words, words + node.count, word) - words);
  } else {
    if (group == kUnknown) group = steps_[node.steps].Find(word);
    lower = group + PrefixSteps::CountLessOf(node.count, group, word, [words](size_t i) { return words[i]; });
  }
  size_t upper = lower;
  while (upper < node.count && words[upper] == word) {
    if (++upper - lower == kFew) upper = static_cast<size_t>(std::upper_bound(words + upper, words + node.count, word) - words);
  }
  return {lower, upper};
}

const AlikeSteps::Top* AlikeSteps::TopOf(uint64_t prefix) const {
  const auto top = std::ranges::lower_bound(tops_, prefix, {}, &Top::prefix);
  return top == tops_.end() || top->prefix != prefix ? nullptr : &*top;
}

const uint16_t* AlikeSteps::BitsOf(const Top& top, size_t at, size_t end) const {
  if (top.bits == kNoBits || end - at > kMostOfTree) return nullptr;
  if (at < top.begin || end > top.begin + size_t{top.items}) return nullptr;  // the items of a foreign array may change meanwhile
  return bits_ + top.bits + (at - top.begin);
}

bool AlikeSteps::HasSteps(const KeyOrder& order, const SearchKey& target, const Node& node, uint64_t* word) const {
  if (node.steps == kNoSteps) return false;
  const Slice shared = SharedBytes(node);
  if (!target.key.starts_with(shared)) return false;
  *word = order.Prefix(target.key.substr(shared.size()));
  return true;
}

size_t AlikeSteps::FindAbove(const KeyOrder& order, const SearchKey& target, const Top& top) const {
  const Node& node = NodeOf(top);
  uint64_t word = 0;
  return HasSteps(order, target, node, &word) ? steps_[node.steps].FindAbove(word) : kUnknown;
}

size_t AlikeSteps::FindGroup(const KeyOrder& order, const SearchKey& target, const Top& top, size_t above) const {
  const Node& node = NodeOf(top);
  uint64_t word = 0;
  if (!HasSteps(order, target, node, &word)) return kUnknown;
  const size_t group = steps_[node.steps].FindBelow(above, word);
  PrefetchAll(&words_[node.words] + group, PrefixSteps::kFanout * sizeof(uint64_t));
  return group;
}

// WHY IT IS RIGHT  Keys that share `skip` bytes are ordered as their words, if these differ. A sample before the target
//                  is before the first item sought; a sample behind the target is not.
void AlikeSteps::NarrowFrom(const KeyOrder& order, const SearchKey& target, const Top& top, size_t group, size_t* at,
                            size_t* end) const {
  const auto is_behind = [&](size_t sample) { *at = std::clamp(sample * kSampled + 1, *at, *end); };
  const auto is_before = [&](size_t sample) { *end = std::clamp(sample * kSampled, *at, *end); };
  for (const Node* node = &NodeOf(top); node != nullptr; group = kUnknown) {
    const Slice shared = SharedBytes(*node);
    const Slice rest = BytesFrom(target.key, node->known);
    if (!rest.starts_with(shared)) {
      // A target that ends inside the shared bytes is compared with them as a key, too.
      if (order.Compare(rest, shared) < 0) return is_before(node->first);
      return is_behind(node->first + node->count - 1);
    }
    const uint64_t word = order.Prefix(rest.substr(shared.size()));
    const auto [lower, upper] = FindWord(*node, word, group);
    const size_t first = node->first + lower;
    const size_t past = node->first + upper;
    if (first > node->first) is_behind(first - 1);
    if (past < node->first + node->count) is_before(past);
    const Node* const belows = nodes_.data() + node->below;
    const Node* const below =
        std::lower_bound(belows, belows + node->belows, first, [](const Node& of, size_t sample) { return of.first < sample; });
    node = lower != upper && below != belows + node->belows && below->first == first ? below : nullptr;
  }
}

}  // namespace braiddb
