// The parts of AlikeSteps that let other processes read an object, and that keep one in a file.
#include <cstring>
#include <utility>

#include "index/alike_steps.h"
#include "index/bit_tree.h"

namespace braiddb {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

uint64_t WordsOf(uint64_t count, uint64_t bytes) { return (count * bytes + kWord - 1) / kWord; }

}  // namespace

AlikeSteps::Layout::Layout(const Shared& shared)
    : tops(WordsOf(shared.nodes, sizeof(Node))),
      words(tops + WordsOf(shared.tops, sizeof(Top))),
      bits(words + shared.words),
      shared_bytes(bits + WordsOf(shared.bits, sizeof(uint16_t))),
      end(shared_bytes + WordsOf(shared.shared_bytes, 1)) {}

AlikeSteps::Shared AlikeSteps::shared() const {
  Shared shared = sizes_;
  shared.offset = block_.heap_offset();
  return shared.offset == 0 ? Shared() : shared;
}

void AlikeSteps::Place(SharedHeap* heap) {
  sizes_ = {0, nodes_.size(), tops_.size(), own_.words.size(), own_.bits.size(), own_.shared.size()};
  if (heap != nullptr && !nodes_.empty()) {
    const Layout layout(sizes_);
    block_ = HugeArray<uint64_t>(layout.end, heap, HugeArray<uint64_t>::Sharing::kOptional);
    if (block_.heap_offset() == 0) block_ = {};
    if (!block_.empty()) {
      const auto copy = [this](uint64_t at, const auto& from) {
        if (!from.empty()) std::memcpy(&block_[at], from.data(), from.size() * sizeof(from[0]));
      };
      copy(0, nodes_);
      copy(layout.tops, tops_);
      copy(layout.words, own_.words);
      copy(layout.bits, own_.bits);
      copy(layout.shared_bytes, own_.shared);
      own_ = {};
      words_ = &block_[layout.words];
      bits_ = reinterpret_cast<const uint16_t*>(&block_[layout.bits]);
      shared_ = reinterpret_cast<const char*>(&block_[layout.shared_bytes]);
      return;
    }
  }
  words_ = own_.words.data();
  bits_ = own_.bits.data();
  shared_ = own_.shared.data();
}

void AlikeSteps::MakeSteps() {
  for (Node& node : nodes_) {
    if (node.count < kLeastForSteps) {
      node.steps = kNoSteps;
      continue;
    }
    const uint64_t* const words = words_ + node.words;
    node.steps = static_cast<uint32_t>(steps_.size());
    steps_.emplace_back().Build(node.count, [words](size_t i) { return words[i]; });
  }
}

// TRUST  What nodes and tops refer to is checked here, once, so no later read leaves the block. Words, bits and shared bytes that
//        are no longer those of an object narrow a search to a wrong range; then this reader has expired (db/live_reader.h).
AlikeSteps AlikeSteps::Attach(const SharedMemory& memory, const Shared& shared, size_t size) {
  AlikeSteps steps;
  const uint64_t most = memory.bytes();
  for (const uint64_t count : {shared.nodes, shared.tops, shared.words, shared.bits, shared.shared_bytes}) {
    if (count > most / sizeof(Node)) return steps;
  }
  const Layout layout(shared);
  if (shared.offset == 0 || shared.offset % kWord != 0 || shared.offset >= most || shared.nodes == 0 ||
      shared.tops > shared.nodes || layout.end > (most - shared.offset) / kWord)
    return steps;
  steps.block_ = HugeArray<uint64_t>::Attach(memory, shared.offset, layout.end);
  const uint64_t* const block = &steps.block_[0];
  steps.nodes_.resize(shared.nodes);
  std::memcpy(static_cast<void*>(steps.nodes_.data()), block, shared.nodes * sizeof(Node));
  steps.tops_.resize(shared.tops);
  if (shared.tops > 0) std::memcpy(static_cast<void*>(steps.tops_.data()), block + layout.tops, shared.tops * sizeof(Top));
  steps.words_ = block + layout.words;
  steps.bits_ = reinterpret_cast<const uint16_t*>(block + layout.bits);
  steps.shared_ = reinterpret_cast<const char*>(block + layout.shared_bytes);
  for (uint64_t i = 0; i < shared.nodes; ++i) {
    const Node& node = steps.nodes_[i];
    const bool is_right = node.count > 0 && node.words <= shared.words && node.count <= shared.words - node.words &&
                          node.known <= node.skip && node.shared <= shared.shared_bytes &&
                          node.skip - node.known <= shared.shared_bytes - node.shared && (node.belows == 0 || node.below > i) &&
                          uint64_t{node.below} + node.belows <= shared.nodes;
    if (!is_right) return {};
  }
  for (const Top& top : steps.tops_) {
    const bool has_bits = top.bits != kNoBits;
    if (top.begin > size || top.items > size - top.begin) return {};
    if (has_bits && (top.bits > shared.bits || uint64_t{top.items} + BitTree::kPerStep > shared.bits - top.bits)) return {};
  }
  steps.MakeSteps();
  return steps;
}

AlikeSteps AlikeSteps::CopyTo(SharedHeap* heap) const {
  AlikeSteps copy;
  if (empty()) return copy;
  copy.nodes_ = nodes_;
  copy.tops_ = tops_;
  copy.own_.words.assign(words_, words_ + sizes_.words);
  copy.own_.bits.assign(bits_, bits_ + sizes_.bits);
  copy.own_.shared.assign(shared_, shared_ + sizes_.shared_bytes);
  copy.Place(heap);
  copy.MakeSteps();
  return copy;
}

// Five blocks: nodes, tops, words, bits, shared bytes.
void AlikeSteps::Store(BlockFileWriter* file) const {
  file->AppendBlock(nodes_);
  file->AppendBlock(tops_);
  file->AppendBlock(words_, sizes_.words * sizeof(uint64_t));
  file->AppendBlock(bits_, sizes_.bits * sizeof(uint16_t));
  file->AppendBlock(shared_, sizes_.shared_bytes);
}

bool AlikeSteps::Load(const BlockFileReader& file, uint64_t* offset, SharedHeap* heap, AlikeSteps* steps) {
  AlikeSteps loaded;
  if (!file.ReadBlock(offset, &loaded.nodes_) || !file.ReadBlock(offset, &loaded.tops_) ||
      !file.ReadBlock(offset, &loaded.own_.words) || !file.ReadBlock(offset, &loaded.own_.bits) ||
      !file.ReadBlock(offset, &loaded.own_.shared))
    return false;
  loaded.Place(heap);
  loaded.MakeSteps();
  *steps = std::move(loaded);
  return true;
}

}  // namespace braiddb
