// AlikeSteps: a search tree in DRAM over the keys of a sorted array whose 8-byte prefixes are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "index/key_order.h"

namespace braiddb {

// LAYOUT   Each kSampled-th item of the array is a sample. Neighbouring samples with one prefix, if there are at least kLeast,
//          are a node. A node has the bytes that all its keys share, and per sample the word that follows: the next eight bytes.
//          Neighbouring samples of a node with one word, if there are at least kLeast, are a node below it, and so on (as the
//          layers of a trie: Mao, Kohler, Morris, Cache Craftiness for Fast Multicore Key-Value Storage, EuroSys '12).
// COST     A search reads no entry. It compares the shared bytes and makes a binary search in the words of each node on its path.
//          It ends with at most 2 * kSampled items, or, among samples that are no node, with kSampled * (kLeast + 1).
// MEMORY   At most 2.6 bytes per item of the array: kMostWords words per sample, a node per kLeast words, and a shared byte per
//          item. None if no keys are alike.
// FALLBACK Keys that a node cannot tell apart are left to the caller: equal words of few samples, keys that end inside the shared
//          bytes of others, comparators that are not bytewise, and all that exceeds the limits.
// Thread safety: immutable once built.
class AlikeSteps {
 public:
  static constexpr size_t kSampled = 16;
  static constexpr size_t kLeast = 8;

  // The array, as Build reads it. `prefix(i)` is in DRAM; `key(i)` may be far, and `fetch(i)` prefetches it.
  struct Array {
    size_t size = 0;
    std::function<uint64_t(size_t)> prefix;
    std::function<Slice(size_t)> key;
    std::function<void(size_t)> fetch;
    std::function<bool()> stops = [] { return false; };  // true: the result is not wanted any more
  };
  // The object is empty if Build was stopped, or threw std::bad_alloc.
  void Build(const Array& array, const KeyOrder& order);

  // Narrows [*at, *end], in which the first item at or after the target lies. It stays in the range.
  void Narrow(const KeyOrder& order, const SearchKey& target, size_t* at, size_t* end) const;
  bool empty() const { return nodes_.empty(); }
  size_t bytes() const {
    if (empty()) return 0;
    return nodes_.capacity() * sizeof(Node) + words_.capacity() * sizeof(uint64_t) + tops_.capacity() * sizeof(uint64_t) +
           shared_.capacity();
  }

 private:
  static constexpr size_t kMostWords = 2;
  struct Node {
    uint32_t first;       // sample
    uint32_t count;       // samples
    uint32_t known;       // bytes of the key that the nodes above have compared
    uint32_t skip;        // offset of the words in the key; the bytes [known, skip) are the shared ones
    uint32_t words;       // position of the first word in words_
    uint32_t shared;      // position of the shared bytes in shared_
    uint32_t below = 0;   // the first node below this one
    uint32_t belows = 0;  // number of nodes below, in the order of their samples
  };

  // Adds a node of these samples, without its words. False: their keys cannot have one.
  bool AddNode(const Array& array, size_t first, size_t count, size_t known);
  // Reads the words of the node, and adds the nodes below it. False: it was stopped.
  bool Fill(const Array& array, const KeyOrder& order, size_t node);

  std::vector<Node> nodes_;     // the first tops_.size() have one prefix each; a node is before those below it
  std::vector<uint64_t> tops_;  // these prefixes
  std::vector<uint64_t> words_;
  std::string shared_;
};

}  // namespace braiddb
