// AlikeSteps: a search tree in DRAM over the keys of a sorted array whose 8-byte prefixes are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "index/key_order.h"
#include "index/prefix_steps.h"
#include "util/block_file.h"
#include "util/huge_array.h"
#include "util/shared_memory.h"

namespace braiddb {

// LAYOUT   Each kSampled-th item of the array is a sample. Neighboring samples with one prefix, if there are at least kLeastTop,
//          are a node. A node has the bytes that all its keys share, and per sample the word that follows: the next eight bytes.
//          Neighboring samples of a node with one word, if there are at least kLeast, are a node below it, and so on (as the
//          layers of a trie: Mao, Kohler, Morris, Cache Craftiness for Fast Multicore Key-Value Storage, EuroSys '12).
// BITS     Of all items with a top node's prefix, the bit positions in which neighbors differ (index/bit_tree.h).
// COST     Narrow reads no entry. It compares the shared bytes and searches the words of each node on its path. It ends with at
//          most 2 * kSampled items or, among samples that are no node, with kSampled * (kLeast + 1). By the bits, the search then
//          reads one key. Build reads each key with a top node's prefix once; if the array has bits itself, each sample's key.
// MEMORY   Two bytes for each item with a top node's prefix. Besides at most 3.2 bytes per item of the array: kMostWords words
//          per sample, a node and a top per kLeastTop samples, and a shared byte per item. None if no keys are alike.
// FALLBACK Keys that a node cannot tell apart are left to the caller: equal words of few samples, keys that end inside the shared
//          bytes of others, comparators that are not bytewise, and all that exceeds the limits. A top node whose keys differ too
//          far behind has no bits.
// SHARED   With a SharedHeap, nodes and arrays lie there in one block, so another process can attach to the object. It copies and
//          checks the nodes, and makes the steps over their words for itself.
// Thread safety: immutable once built.
class AlikeSteps {
 public:
  static constexpr size_t kSampled = 16;
  static constexpr size_t kLeast = 8;
  static constexpr size_t kLeastTop = 4;
  // Most items of a range for BitsOf.
  static constexpr size_t kMostOfTree = kSampled * (kLeast + 1);

  // The array, as Build reads it. `prefix(i)` is in DRAM; `key(i)` may be far, and `fetch(i)` prefetches it.
  struct Array {
    size_t size = 0;
    std::function<uint64_t(size_t)> prefix;
    std::function<Slice(size_t)> key;
    std::function<void(size_t)> fetch;
    std::function<bool()> stops = [] { return false; };  // true: the result is not wanted any more
    bool has_bits = false;  // the array has the bits itself; then nodes of less than kLeast samples are of no use
    // Whether two positions stand for one item, as places in a hole of the array do; null: no two do.
    std::function<bool(size_t, size_t)> is_one = nullptr;
  };
  AlikeSteps() = default;
  AlikeSteps(AlikeSteps&&) noexcept = default;
  AlikeSteps& operator=(AlikeSteps&&) noexcept = default;
  // The object is empty if Build was stopped, or threw std::bad_alloc. `heap`: where the object lies, so that other processes can
  // attach to it; it must outlive the object. Null, or without room: private memory.
  void Build(const Array& array, const KeyOrder& order, SharedHeap* heap = nullptr);

  // What another process needs to attach to the object.
  struct Shared {
    uint64_t offset = 0;  // of the block in the SharedHeap; 0: the object is empty or private
    uint64_t nodes = 0, tops = 0, words = 0, bits = 0, shared_bytes = 0;
  };
  Shared shared() const;
  // The object of another process, whose SharedHeap `memory` maps; it must outlive the object. `size`: of the array. Empty if
  // `shared` is not that of an object, or not of one any more. May throw std::bad_alloc.
  static AlikeSteps Attach(const SharedMemory& memory, const Shared& shared, size_t size);
  // A copy in `heap`, which may be null. May throw std::bad_alloc.
  AlikeSteps CopyTo(SharedHeap* heap) const;

  // Writes the object to a file. May throw std::bad_alloc.
  void Store(BlockFileWriter* file) const;
  // Makes `steps`, in `heap`, which may be null, the object that Store wrote at *offset, and moves *offset behind it. False: the
  // file is damaged. May throw std::bad_alloc.
  static bool Load(const BlockFileReader& file, uint64_t* offset, SharedHeap* heap, AlikeSteps* steps);

  // Narrows [*at, *end], in which the first item at or after the target lies. It stays in the range.
  void Narrow(const KeyOrder& order, const SearchKey& target, size_t* at, size_t* end) const {
    if (const Top* const top = TopOf(target.prefix)) NarrowFrom(order, target, *top, kUnknown, at, end);
  }

  // The items with one prefix, if there are many. REQUIRES for those who read it: the array has no bits itself.
  struct Top {
    uint64_t prefix;
    uint32_t begin;  // the first item
    uint32_t items;
    uint64_t bits;  // the first item's position in bits_; kNoBits: there are none
  };
  // Null if there are few such items, or none.
  const Top* TopOf(uint64_t prefix) const;
  // Narrow in three steps, for callers that search several arrays side by side. Each step prefetches the lines that the next step
  // reads, and takes the result of the step before.
  size_t FindAbove(const KeyOrder& order, const SearchKey& target, const Top& top) const;
  size_t FindGroup(const KeyOrder& order, const SearchKey& target, const Top& top, size_t above) const;
  void NarrowFrom(const KeyOrder& order, const SearchKey& target, const Top& top, size_t group, size_t* at, size_t* end) const;
  // The bits of the items [at, end), which have this prefix: an array for a BitTree over them. Null: there are none, or the range
  // is large.
  const uint16_t* BitsOf(const Top& top, size_t at, size_t end) const;
  bool empty() const { return nodes_.empty(); }
  size_t bytes() const;

 private:
  static constexpr size_t kMostWords = 2;
  // A node of so many samples has PrefixSteps over its words; they cost a sixteenth of the words.
  static constexpr size_t kLeastForSteps = 64;
  static constexpr uint32_t kNoSteps = UINT32_MAX;
  static constexpr uint64_t kNoBits = UINT64_MAX;
  static constexpr size_t kUnknown = SIZE_MAX;
  struct Node {
    uint32_t first;             // sample
    uint32_t count;             // samples
    uint32_t known;             // bytes of the key that the nodes above have compared
    uint32_t skip;              // offset of the words in the key; the bytes [known, skip) are the shared ones
    uint32_t words;             // position of the first word in words_
    uint32_t shared;            // position of the shared bytes in shared_
    uint32_t below = 0;         // the first node below this one
    uint32_t belows = 0;        // number of nodes below, in the order of their samples
    uint32_t steps = kNoSteps;  // position in steps_ of the steps over its words
  };

  // Adds the bits of the items with the top node's prefix, unless they differ too far behind. False: it was stopped.
  bool AddBits(const Array& array, Top* top);
  // Sets words_, bits_ and shared_. If there is a heap with room, they lie there.
  void Place(SharedHeap* heap);
  // Makes the steps over the words of all nodes that have steps.
  void MakeSteps();
  // What the block has: nodes, tops, words, bits, shared bytes, one after the other, each from a multiple of eight bytes on.
  struct Layout {
    explicit Layout(const Shared& shared);
    uint64_t tops, words, bits, shared_bytes, end;  // offsets in the block, in words
  };
  const Node& NodeOf(const Top& top) const { return nodes_[static_cast<size_t>(&top - tops_.data())]; }
  Slice SharedBytes(const Node& node) const { return {shared_ + node.shared, node.skip - node.known}; }
  // The target's word in the node, if it has the node's shared bytes and if the node has steps.
  bool HasSteps(const KeyOrder& order, const SearchKey& target, const Node& node, uint64_t* word) const;
  // The samples [first, second) of the node have this word; the samples before have smaller ones. `group`: the result of
  // PrefixSteps::Find, or kUnknown.
  std::pair<size_t, size_t> FindWord(const Node& node, uint64_t word, size_t group) const;
  // Whether at least `least` of the samples [begin, end) are different items. REQUIRES: all have the same prefix or word.
  static bool HasItems(const Array& array, size_t begin, size_t end, size_t least);
  // Adds a node of these samples, without its words. False: their keys cannot have one.
  bool AddNode(const Array& array, size_t first, size_t count, size_t known);
  // Reads the words of the node, and adds the nodes below it. False: it was stopped.
  bool Fill(const Array& array, const KeyOrder& order, size_t node);

  std::vector<Node> nodes_;  // the first tops_.size() are the top nodes; a node is before those below it
  std::vector<Top> tops_;    // of the first nodes
  std::vector<PrefixSteps> steps_;
  // The arrays. They are in own_, or in the block.
  const uint64_t* words_ = nullptr;
  const uint16_t* bits_ = nullptr;
  const char* shared_ = nullptr;
  struct Arrays {
    std::vector<uint64_t> words;
    std::vector<uint16_t> bits;
    std::vector<char> shared;
  } own_;  // while the object is built, and in private memory
  HugeArray<uint64_t> block_;
  Shared sizes_;  // numbers of elements
};

}  // namespace braiddb
