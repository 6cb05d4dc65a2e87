#include "db/live_view.h"

#include <cstring>
#include <string_view>

namespace braiddb {
namespace {

class BlockWriter {
 public:
  BlockWriter() : words_(1) {}
  void Add(uint64_t word) { words_.push_back(word); }
  void Add(std::string_view text) {
    Add(text.size());
    const size_t at = words_.size();
    words_.resize(at + (text.size() + 7) / 8);
    if (!text.empty()) memcpy(&words_[at], text.data(), text.size());
  }
  std::vector<uint64_t> Finish() {
    words_[0] = words_.size();
    return std::move(words_);
  }

 private:
  std::vector<uint64_t> words_;
};

// Every read is bounded by the block. After the first failure all results are zero, and ok() is false.
class BlockReader {
 public:
  BlockReader(const uint64_t* block, uint64_t words) : next_(block), left_(words) {
    const uint64_t size = Next();
    ok_ = ok_ && size >= 1 && size <= words;
    left_ = ok_ ? size - 1 : 0;
  }
  uint64_t Next() {
    if (left_ == 0) ok_ = false;
    if (!ok_) return 0;
    --left_;
    return *next_++;
  }
  // A number of elements that take at least `least_words` words each.
  uint64_t Count(uint64_t least_words) {
    const uint64_t count = Next();
    if (count > left_ / least_words) ok_ = false;
    return ok_ ? count : 0;
  }
  std::string Text() {
    const uint64_t bytes = Next();
    const uint64_t words = bytes / 8 + (bytes % 8 != 0 ? 1 : 0);
    if (words > left_) ok_ = false;
    if (!ok_) return {};
    std::string text(reinterpret_cast<const char*>(next_), bytes);
    next_ += words;
    left_ -= words;
    return text;
  }
  Status Finish() const {
    if (ok_ && left_ == 0) return Status::OK();
    return Status::Corruption(
        "the process that writes the database shares a description that cannot be read; use the same version");
  }

 private:
  const uint64_t* next_;
  uint64_t left_;
  bool ok_ = true;
};

}  // namespace

std::vector<uint64_t> LiveView::Encode() const {
  BlockWriter block;
  block.Add(list_kind);
  block.Add(memtable_kind);
  block.Add(regions);
  block.Add(database_id);
  block.Add(lookup_cache.offset);
  block.Add(lookup_cache.bytes);
  block.Add(filter.size());
  for (const SharedRange& part : filter) {
    block.Add(part.offset);
    block.Add(part.bytes);
  }
  block.Add(runs.size());
  for (const uint64_t run : runs) block.Add(run);
  block.Add(memtables.size());
  for (const LiveMemtable& memtable : memtables) {
    block.Add(memtable.id);
    block.Add(memtable.heap_offset);
    block.Add(memtable.first_bytes);
  }
  block.Add(families.size());
  for (const LiveFamily& family : families) {
    block.Add(family.id);
    block.Add(family.number);
    block.Add(family.l1_kind);
    block.Add(family.is_dropped ? 1 : 0);
    block.Add(family.l1_entries);
    block.Add(std::string_view(family.name));
    block.Add(std::string_view(family.comparator));
    block.Add(family.tables.size());
    for (const LiveTable& table : family.tables) {
      block.Add(table.id);
      block.Add(table.boundary);
      block.Add(table.begin);
      block.Add(table.entries);
      block.Add(table.index_offset);
      block.Add(table.index_buckets);
      block.Add(table.index_column);
      block.Add(table.heads.size());
      for (const uint64_t word : table.heads) block.Add(word);
    }
    block.Add(family.orders.size());
    for (const LiveOrder& order : family.orders) {
      const AlikeSteps::Shared& alike = order.alike;
      for (const uint64_t word : {order.id, order.offset, order.entries, order.fetch_bytes, order.tables, alike.offset,
                                  alike.nodes, alike.tops, alike.words, alike.bits, alike.shared_bytes})
        block.Add(word);
    }
    block.Add(family.level.size());
    for (const uint64_t word : family.level) block.Add(word);
  }
  return block.Finish();
}

Status LiveView::Decode(const uint64_t* block, uint64_t words, LiveView* view) {
  BlockReader reader(block, words);
  view->list_kind = static_cast<uint8_t>(reader.Next());
  view->memtable_kind = static_cast<uint8_t>(reader.Next());
  view->regions = static_cast<uint32_t>(reader.Next());
  view->database_id = reader.Next();
  view->lookup_cache.offset = reader.Next();
  view->lookup_cache.bytes = reader.Next();
  view->filter.resize(reader.Count(2));
  for (SharedRange& part : view->filter) {
    part.offset = reader.Next();
    part.bytes = reader.Next();
  }
  view->runs.resize(reader.Count(1));
  for (uint64_t& run : view->runs) run = reader.Next();
  view->memtables.resize(reader.Count(3));
  for (LiveMemtable& memtable : view->memtables) {
    memtable.id = reader.Next();
    memtable.heap_offset = reader.Next();
    memtable.first_bytes = reader.Next();
  }
  view->families.resize(reader.Count(10));
  for (LiveFamily& family : view->families) {
    family.id = static_cast<uint32_t>(reader.Next());
    family.number = reader.Next();
    family.l1_kind = static_cast<uint8_t>(reader.Next());
    family.is_dropped = reader.Next() != 0;
    family.l1_entries = reader.Next();
    family.name = reader.Text();
    family.comparator = reader.Text();
    family.tables.resize(reader.Count(8));
    for (LiveTable& table : family.tables) {
      table.id = reader.Next();
      table.boundary = reader.Next();
      table.begin = reader.Next();
      table.entries = reader.Next();
      table.index_offset = reader.Next();
      table.index_buckets = reader.Next();
      table.index_column = reader.Next();
      table.heads.resize(reader.Count(1));
      for (uint64_t& word : table.heads) word = reader.Next();
    }
    family.orders.resize(reader.Count(11));
    for (LiveOrder& order : family.orders) {
      AlikeSteps::Shared& alike = order.alike;
      for (uint64_t* const word : {&order.id, &order.offset, &order.entries, &order.fetch_bytes, &order.tables, &alike.offset,
                                   &alike.nodes, &alike.tops, &alike.words, &alike.bits, &alike.shared_bytes})
        *word = reader.Next();
    }
    family.level.resize(reader.Count(1));
    for (uint64_t& word : family.level) word = reader.Next();
  }
  return reader.Finish();
}

std::vector<uint64_t> LiveRanges::Encode() const {
  BlockWriter block;
  block.Add(families.size());
  for (const OfFamily& family : families) {
    block.Add(family.family);
    block.Add(family.ranges.size());
    for (const LiveRange& range : family.ranges) {
      block.Add(range.sequence);
      block.Add(range.record);
      block.Add(std::string_view(range.begin));
      block.Add(std::string_view(range.end));
    }
  }
  return block.Finish();
}

Status LiveRanges::Decode(const uint64_t* block, uint64_t words, LiveRanges* ranges) {
  BlockReader reader(block, words);
  ranges->families.resize(reader.Count(2));
  for (OfFamily& family : ranges->families) {
    family.family = static_cast<uint32_t>(reader.Next());
    family.ranges.resize(reader.Count(4));
    for (LiveRange& range : family.ranges) {
      range.sequence = reader.Next();
      range.record = reader.Next();
      range.begin = reader.Text();
      range.end = reader.Text();
    }
  }
  return reader.Finish();
}

}  // namespace braiddb
