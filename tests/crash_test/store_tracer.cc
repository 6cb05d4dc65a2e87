#include "tests/crash_test/store_tracer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "pmem/pool_format.h"
#include "tests/crash_test/scheduler.h"
#include "tests/support/db_test_util.h"
#include "tests/support/tracked_ranges.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kPage = PoolBytes::kPage;
// While so many lines are dirty, a huge value is being copied: no points at stores then, and at few fences. A point holds them
// all.
constexpr size_t kManyLines = 1500;
constexpr uint64_t kOneInFencesThen = 4;
constexpr uint32_t kCheckAllEvery = 16;  // fences
// A header of 16 or 64 bytes and the description.
constexpr uint64_t kBlockDescription = 128;

uint8_t* Reserve(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<uint8_t*>(memory);
}

uint64_t WordAt(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

// Which pages of mapped files may hold anything but zeros: those that have memory.
std::vector<uint64_t> PagesWithMemory(uint8_t* base, uint64_t bytes) {
  std::vector<unsigned char> resident(bytes / kPage);
  if (mincore(base, bytes, resident.data()) != 0) std::abort();
  std::vector<uint64_t> pages;
  for (uint64_t page = 0; page < resident.size(); ++page) {
    if ((resident[page] & 1) != 0) pages.push_back(page);
  }
  return pages;
}

}  // namespace

StoreTracer::StoreTracer(std::string database, const Options& options, const CrashOracle* oracle)
    : database_(std::move(database)), options_(options), oracle_(oracle), random_(options.seed * 2 + 1) {
  record_.eadr = options.eadr;
}

StoreTracer::~StoreTracer() {
  if (current_ == this) current_ = nullptr;
  for (const Region& region : regions_) {
    munmap(region.explained, region.bytes);
    munmap(region.media, region.bytes);
  }
}

void StoreTracer::Attach(RegionSet* set) {
  set_ = set;
  for (uint32_t i = 0; i < set->count(); ++i) {
    Region region;
    region.base = reinterpret_cast<uintptr_t>(set->base(i));
    region.bytes = set->impl()->region(i)->max_bytes();
    region.explained = Reserve(region.bytes);
    region.media = Reserve(region.bytes);
    region.page_state.resize(region.bytes / kPage);
    PoolBytes& initial = record_.initial.emplace_back();
    initial.bytes = set->ReservedBytes(i);
    static constexpr uint8_t kZeros[kPage] = {};
    for (const uint64_t page : PagesWithMemory(set->base(i), initial.bytes)) {
      const uint8_t* const memory = set->base(i) + page * kPage;
      if (std::memcmp(memory, kZeros, kPage) == 0) continue;
      initial.offsets.push_back(page * kPage);
      initial.content.insert(initial.content.end(), memory, memory + kPage);
      std::memcpy(region.explained + page * kPage, memory, kPage);
      std::memcpy(region.media + page * kPage, memory, kPage);
    }
    regions_.push_back(std::move(region));
  }
  TakeInherited();
  set->persistence()->SetObserver(this);
  current_ = this;
  until_point_ = options_.one_in_stores;
  scheduler::SetSwitchHook([] {
    if (current_ != nullptr) current_->Resolve();
  });
}

void StoreTracer::Inherit(const std::vector<DirtyLine>& dirty, std::vector<MediaLine> guaranteed) {
  inherited_ = dirty;
  inherited_media_ = std::move(guaranteed);
}

// Words of PMDK's are durable: its open, which comes before this, makes up for what it finds.
void StoreTracer::TakeInherited() {
  const std::vector<TrackedRange> ranges = FindTrackedRanges(*set_);
  for (size_t i = 0; i < inherited_.size(); ++i) {
    const auto& [index, offset, stores] = inherited_[i];
    if (offset >= set_->ReservedBytes(index)) continue;
    MediaLine media{index, offset, {}};
    std::memcpy(media.words, regions_[index].media + offset, kLine);
    std::vector<TracedStore> kept;
    for (const TracedStore& store : stores) {
      const uint64_t at = offset + 8 * store.word;
      const bool ours = std::any_of(ranges.begin(), ranges.end(), [&](const TrackedRange& range) {
        return range.region == index && range.begin <= at && at < range.end;
      });
      if (!ours) continue;
      media.words[store.word] = inherited_media_[i].words[store.word];
      kept.push_back({++order_, ++group_, store.word, store.value});
    }
    if (kept.empty()) continue;
    std::memcpy(regions_[index].media + offset, media.words, kLine);
    record_.media.push_back(media);
    lines_[KeyOf(index, offset)] = std::move(kept);
  }
}

void StoreTracer::Detach() {
  Resolve();
  const scheduler::Hold hold;
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    for (const uint64_t page : PagesWithMemory(set_->base(i), set_->ReservedBytes(i))) CheckPage(i, page);
  }
  Capture(PointKind::kAtEnd, {});
  set_->persistence()->SetObserver(nullptr);
  current_ = nullptr;
}

// ---- Stores

bool StoreTracer::Find(const void* address, uint32_t* region, uint64_t* offset) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    if (at - regions_[i].base >= regions_[i].bytes) continue;
    *region = i;
    *offset = at - regions_[i].base;
    return true;
  }
  return false;
}

void StoreTracer::TakePending() { Stored(std::exchange(pending_address_, nullptr), std::exchange(pending_bytes_, 0)); }

void StoreTracer::Stored(const void* address, size_t bytes) {
  Resolve();
  uint32_t index = 0;
  uint64_t begin = 0;
  if (!Find(address, &index, &begin)) return;
  const Region& region = regions_[index];
  const uint64_t end = begin + bytes;
  ++group_;
  for (uint64_t word = begin & ~uint64_t{7}; word < end; word += 8) {
    const uint64_t before = WordAt(region.explained + word);
    uint64_t after = before;
    const uint64_t from = std::max(begin, word), to = std::min(end, word + 8);
    std::memcpy(reinterpret_cast<uint8_t*>(&after) + (from - word), reinterpret_cast<const uint8_t*>(region.base + from),
                to - from);
    if (after != before) StoreWord(index, word, after, group_);
  }
}

void StoreTracer::StoreWord(uint32_t index, uint64_t offset, uint64_t value, uint64_t group) {
  Region& region = regions_[index];
  std::memcpy(region.explained + offset, &value, 8);
  lines_[KeyOf(index, offset)].push_back({++order_, group, static_cast<uint32_t>(offset % kLine / 8), value});
  NoteFresh(&region, offset / kPage);
  if (inside_ || --until_point_ != 0) return;
  until_point_ = 1 + NextRandom() % (2 * options_.one_in_stores * (1 + lines_.size() / 64));
  if (lines_.size() > kManyLines) return;
  Capture(PointKind::kAtStore, {});
}

void StoreTracer::NoteFresh(Region* region, uint64_t page) {
  uint8_t& state = region->page_state[page];
  if ((state & 1) == 0) region->used_pages.push_back(page);
  if ((state & 2) == 0) region->fresh_pages.push_back(page);
  state = 3;
}

void StoreTracer::LookAt(const void* address) {
  uint32_t index = 0;
  uint64_t offset = 0;
  if (Find(address, &index, &offset)) NoteFresh(&regions_[index], offset / kPage);
}

uint64_t StoreTracer::NextRandom() {
  random_ = random_ * 6364136223846793005 + 1442695040888963407;
  return random_ >> 33;
}

// ---- Flushes and fences

void StoreTracer::Flush(const void* address, size_t bytes) {
  Resolve();
  uint32_t index = 0;
  uint64_t begin = 0;
  if (bytes == 0 || !Find(address, &index, &begin)) return;
  auto& staged = staged_[scheduler::CurrentThread()];
  const uint64_t last = KeyOf(index, begin + bytes - 1);
  for (auto line = lines_.lower_bound(KeyOf(index, begin)); line != lines_.end() && line->first <= last; ++line)
    staged.push_back({line->first, order_});
}

void StoreTracer::Fence() {
  Resolve();
  const scheduler::Hold hold;  // what looks for the owner of a byte loads atomically
  ++fence_count_;
  CheckPages(fence_count_ % kCheckAllEvery == 0);
  const FenceSite site = CurrentSite();
  // The first of each place, whatever is drawn of the others.
  const bool capture =
      ++fences_[site] == 1 || NextRandom() % (options_.one_in_fences * (lines_.size() > kManyLines ? kOneInFencesThen : 1)) == 0;
  if (capture) Capture(PointKind::kBeforeFence, site);
  auto staged = staged_.find(scheduler::CurrentThread());
  if (options_.eadr) {
    GuaranteeAll();
  } else if (staged != staged_.end()) {
    for (const Staged& line : staged->second) Guarantee(line.line, line.order);
  }
  if (staged != staged_.end()) staged->second.clear();
  if (capture) Capture(PointKind::kAfterFence, site);
}

// The stores to this line up to `order` are on media.
void StoreTracer::Guarantee(uint64_t key, uint64_t order) {
  const auto line = lines_.find(key);
  if (line == lines_.end()) return;
  const auto index = static_cast<uint32_t>(key >> 40);
  const uint64_t offset = (key & ((uint64_t{1} << 40) - 1)) * kLine;
  uint8_t* media = regions_[index].media + offset;
  size_t count = 0;
  for (; count < line->second.size() && line->second[count].order <= order; ++count)
    std::memcpy(media + 8 * line->second[count].word, &line->second[count].value, 8);
  if (count == 0) return;
  line->second.erase(line->second.begin(), line->second.begin() + static_cast<std::ptrdiff_t>(count));
  if (line->second.empty()) lines_.erase(line);
  MediaLine guaranteed{index, offset, {}};
  std::memcpy(guaranteed.words, media, kLine);
  record_.media.push_back(guaranteed);
}

void StoreTracer::GuaranteeAll() {
  while (!lines_.empty()) Guarantee(lines_.begin()->first, order_);
}

void StoreTracer::OnHole(const void* address, size_t bytes) {
  Resolve();
  uint32_t index = 0;
  uint64_t begin = 0;
  if (bytes == 0 || !Find(address, &index, &begin)) return;
  const uint64_t last = KeyOf(index, begin + bytes - 1);
  for (auto line = lines_.lower_bound(KeyOf(index, begin)); line != lines_.end() && line->first <= last;) {
    const uint64_t key = line->first;
    ++line;
    Guarantee(key, order_);
  }
}

// In eADR mode the stores that a point may lack are those since the last fence or change of the oracle.
void StoreTracer::NoteOperation(bool acknowledged) {
  Resolve();
  if (options_.eadr) GuaranteeAll();
  ++operations_;
  allowed_.reset();
  if (acknowledged) Capture(PointKind::kAcknowledged, {});
}

FenceSite StoreTracer::CurrentSite() {
  const CallStack& stack = call_stack;
  FenceSite site{};
  for (uint32_t i = 0; i < site.size() && i < stack.depth && stack.depth <= CallStack::kDepth; ++i)
    site[i] = reinterpret_cast<uintptr_t>(stack.callers[stack.depth - 1 - i]);
  return site;
}

// ---- Checking

void StoreTracer::CheckPage(uint32_t index, uint64_t page) {
  Region& region = regions_[index];
  const auto* memory = reinterpret_cast<const uint8_t*>(region.base) + page * kPage;
  ++checked_pages_;
  if (std::memcmp(memory, region.explained + page * kPage, kPage) == 0) return;
  const std::vector<TrackedRange> ranges = FindTrackedRanges(*set_);
  for (uint64_t at = page * kPage; at < (page + 1) * kPage; at += 8) {
    const uint64_t now = WordAt(reinterpret_cast<const uint8_t*>(region.base) + at);
    if (now == WordAt(region.explained + at)) continue;
    const auto owner = std::find_if(ranges.begin(), ranges.end(), [&](const TrackedRange& range) {
      return range.region == index && range.begin <= at && at < range.end;
    });
    if (owner != ranges.end() && violation_.empty()) {
      violation_ = "untraced store: region " + std::to_string(index) + ", offset " + std::to_string(at) + ", " +
                   NameOf(owner->kind) + " + " + std::to_string(at - owner->begin) + ", is " + std::to_string(now) +
                   " in place of " + std::to_string(WordAt(region.explained + at));
    }
    ++pmdk_stores_;
    StoreWord(index, at, now, ++group_);
  }
}

// PMDK describes a free block in the block, without a flush: behind the header of its first chunk. By the time the page is looked
// at, the block may be part of a segment; no block becomes that without a fence before.
void StoreTracer::NoteFreeBlocks(uint32_t index) {
  Region& region = regions_[index];
  const auto* memory = reinterpret_cast<const uint8_t*>(region.base);
  const uint64_t bytes = set_->ReservedBytes(index);
  uint64_t chunk = PoolView(memory, bytes).heap_begin() + kHeapHeaderBytes + kZoneHeaderBytes;
  for (; chunk + kBlockDescription <= bytes; chunk += kChunkBytes) {
    if (std::memcmp(memory + chunk, region.explained + chunk, kBlockDescription) != 0) NoteFresh(&region, chunk / kPage);
  }
}

void StoreTracer::CheckPages(bool all) {
  inside_ = true;
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    Region& region = regions_[i];
    NoteFreeBlocks(i);
    const std::vector<uint64_t> pages = all ? region.used_pages : region.fresh_pages;
    for (const uint64_t page : pages) CheckPage(i, page);
    for (const uint64_t page : region.fresh_pages) region.page_state[page] = 1;
    region.fresh_pages.clear();
  }
  inside_ = false;
}

// ---- Crash points

void StoreTracer::Capture(PointKind kind, const FenceSite& site) {
  // The same bytes and the same expectations as at the last point.
  const uint64_t state = order_ * 0x9e3779b97f4a7c15 + record_.media.size() * 0xc2b2ae3d27d4eb4f + operations_;
  if (state == captured_state_) {
    if (!record_.points.empty() && (kind == PointKind::kBeforeFence || kind == PointKind::kAfterFence)) NoteSamePoint(kind, site);
    return;
  }
  captured_state_ = state;
  const scheduler::Hold hold;  // the oracle has a lock
  if (files_ == nullptr) ListFiles();
  if (allowed_ == nullptr) allowed_ = std::make_shared<const CrashOracle::Allowed>(oracle_->Current());
  CrashPoint point{kind, site, {}, record_.media.size(), {}, files_, allowed_};
  point.dirty.reserve(lines_.size());
  for (const auto& [key, stores] : lines_)
    point.dirty.push_back({static_cast<uint32_t>(key >> 40), (key & ((uint64_t{1} << 40) - 1)) * kLine, stores});
  record_.points.push_back(std::move(point));
}

void StoreTracer::NoteSamePoint(PointKind kind, const FenceSite& site) {
  CrashPoint& last = record_.points.back();
  const std::pair place(kind, site);
  if (place == std::pair(last.kind, last.site) || std::find(last.also.begin(), last.also.end(), place) != last.also.end()) return;
  last.also.push_back(place);
}

void StoreTracer::ListFiles() {
  auto files = std::make_shared<CrashFiles>();
  files->parts.resize(regions_.size());
  for (const auto& file : test::ListFiles(database_)) {
    if (file.ends_with(".pmem")) {
      const auto region = std::stoul(file.substr(file.find('-') + 1));
      files->parts.at(region).push_back({file, std::filesystem::file_size(database_ + "/" + file)});
    } else if (file.ends_with(".pmem.tmp")) {  // an open removes it, whatever it holds
      files->small_files.emplace_back(file, "");
    } else if (!file.ends_with("LOCK") && !file.ends_with("region.set")) {  // these are made by each open
      files->small_files.emplace_back(file, ReadFileOrDie(database_ + "/" + file));
    }
  }
  files_ = std::move(files);
}

}  // namespace braiddb::test
