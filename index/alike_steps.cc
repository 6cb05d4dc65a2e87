#include "index/alike_steps.h"

#include <algorithm>
#include <new>

#include "util/common_bytes.h"

namespace braiddb {

bool AlikeSteps::AddNode(const Array& array, size_t first, size_t count, size_t known) {
  const Slice least = array.key(first * kSampled);
  const Slice greatest = array.key((first + count - 1) * kSampled);
  const size_t skip = CommonBytes(least, greatest);
  const size_t samples = array.size / kSampled + 1;
  // All keys between two keys have the bytes that these two share. Keys shorter than `known` have words that are padded.
  const size_t most_shared = std::min<size_t>(samples * kSampled, UINT32_MAX);
  if (skip < known || words_.size() + count > kMostWords * samples || shared_.size() + (skip - known) > most_shared) return false;
  nodes_.push_back({.first = static_cast<uint32_t>(first),
                    .count = static_cast<uint32_t>(count),
                    .known = static_cast<uint32_t>(known),
                    .skip = static_cast<uint32_t>(skip),
                    .words = static_cast<uint32_t>(words_.size()),
                    .shared = static_cast<uint32_t>(shared_.size())});
  shared_.append(least.substr(known, skip - known));
  words_.resize(words_.size() + count);
  return true;
}

bool AlikeSteps::Fill(const Array& array, const KeyOrder& order, size_t node) {
  constexpr size_t kAhead = 8;
  const Node of = nodes_[node];
  constexpr size_t kSamplesPerStop = 1024;
  for (size_t i = 0; i < of.count; ++i) {
    if (i % kSamplesPerStop == 0 && array.stops()) return false;
    if (i + kAhead < of.count) array.fetch((of.first + i + kAhead) * kSampled);
    words_[of.words + i] = order.Prefix(BytesFrom(array.key((of.first + i) * kSampled), of.skip));
  }
  const size_t below = nodes_.size();
  for (size_t begin = 0; begin < of.count;) {
    size_t end = begin + 1;
    while (end < of.count && words_[of.words + end] == words_[of.words + begin]) ++end;
    if (end - begin >= kLeast) AddNode(array, of.first + begin, end - begin, of.skip + sizeof(uint64_t));
    begin = end;
  }
  nodes_[node].below = static_cast<uint32_t>(below);
  nodes_[node].belows = static_cast<uint32_t>(nodes_.size() - below);
  return true;
}

void AlikeSteps::Build(const Array& array, const KeyOrder& order) try {
  nodes_.clear();
  tops_.clear();
  words_.clear();
  shared_.clear();
  const size_t samples = (array.size + kSampled - 1) / kSampled;
  if (!order.equal_means_same() || samples < kLeast || samples > UINT32_MAX / kMostWords) return;
  // Every kLeast neighbours contain two of the samples that are probed here.
  constexpr size_t kStride = kLeast / 2;
  const auto prefix_of = [&array](size_t sample) { return array.prefix(sample * kSampled); };
  for (size_t probed = 0; probed + kStride < samples;) {
    const uint64_t prefix = prefix_of(probed);
    if (prefix_of(probed + kStride) != prefix) {
      probed += kStride;
      continue;
    }
    size_t begin = probed;
    while (begin > 0 && prefix_of(begin - 1) == prefix) --begin;
    size_t end = probed + kStride + 1;
    while (end < samples && prefix_of(end) == prefix) ++end;
    if (end - begin >= kLeast && AddNode(array, begin, end - begin, 0)) tops_.push_back(prefix);
    probed = (end + kStride - 1) / kStride * kStride;
  }
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (!Fill(array, order, node)) {
      *this = {};
      return;
    }
  }
  nodes_.shrink_to_fit();
  words_.shrink_to_fit();
  shared_.shrink_to_fit();
  tops_.shrink_to_fit();
} catch (const std::bad_alloc&) {
  *this = {};
  throw;
}

// WHY IT IS RIGHT  Keys that share `skip` bytes are ordered as their words, if these differ. A sample before the target
//                  is before the first item sought; a sample behind the target is not.
void AlikeSteps::Narrow(const KeyOrder& order, const SearchKey& target, size_t* at, size_t* end) const {
  const auto top = std::lower_bound(tops_.begin(), tops_.end(), target.prefix);
  if (top == tops_.end() || *top != target.prefix) return;
  const auto is_behind = [&](size_t sample) { *at = std::clamp(sample * kSampled + 1, *at, *end); };
  const auto is_before = [&](size_t sample) { *end = std::clamp(sample * kSampled, *at, *end); };
  for (const Node* node = &nodes_[static_cast<size_t>(top - tops_.begin())]; node != nullptr;) {
    const Slice shared = Slice(shared_).substr(node->shared, node->skip - node->known);
    const Slice rest = BytesFrom(target.key, node->known);
    if (!rest.starts_with(shared)) {
      // A target that ends inside the shared bytes is compared with them as a key, too.
      if (order.Compare(rest, shared) < 0) return is_before(node->first);
      return is_behind(node->first + node->count - 1);
    }
    const uint64_t word = order.Prefix(rest.substr(shared.size()));
    const uint64_t* const words = &words_[node->words];
    const auto [lower, upper] = std::equal_range(words, words + node->count, word);
    const auto first = static_cast<size_t>(node->first + (lower - words));
    const auto past = static_cast<size_t>(node->first + (upper - words));
    if (first > node->first) is_behind(first - 1);
    if (past < node->first + node->count) is_before(past);
    const Node* const belows = nodes_.data() + node->below;
    const Node* const below =
        std::lower_bound(belows, belows + node->belows, first, [](const Node& of, size_t sample) { return of.first < sample; });
    node = lower != upper && below != belows + node->belows && below->first == first ? below : nullptr;
  }
}

}  // namespace braiddb
