#include "capi/statistics.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace braiddb::capi {
namespace {

struct Ticker {
  const char* name;
  uint64_t Statistics::*counter;
};

// Tickers by RocksDB's names. Each shows the nearest counter of the engine; docs/C_API.md lists them.
constexpr Ticker kCountedTickers[] = {
    {"bloom.filter.useful", &Statistics::filter_negatives},
    {"compaction.key.drop.obsolete", &Statistics::dropped_entries},
    {"number.keys.written", &Statistics::writes},
    {"number.keys.read", &Statistics::gets},
    {"stall.micros", &Statistics::write_delay_us},
    {"wal.synced", &Statistics::batches},
    {"wal.bytes", &Statistics::log_bytes},
    {"write.self", &Statistics::batches},
    {"write.wal", &Statistics::batches},
    {"row.cache.hit", &Statistics::lookup_cache_hits},
};

// Tickers that programs search for and that are always 0.
constexpr const char* kOthers[] = {
    "block.cache.miss",
    "block.cache.hit",
    "block.cache.add",
    "block.cache.index.miss",
    "block.cache.index.hit",
    "block.cache.filter.miss",
    "block.cache.filter.hit",
    "block.cache.data.miss",
    "block.cache.data.hit",
    "block.cache.bytes.read",
    "block.cache.bytes.write",
    "bloom.filter.full.positive",
    "memtable.hit",
    "memtable.miss",
    "l0.hit",
    "l1.hit",
    "l2andup.hit",
    "compaction.key.drop.new",
    "compaction.key.drop.user",
    "number.keys.updated",
    "bytes.written",
    "bytes.read",
    "number.db.seek",
    "number.db.next",
    "number.db.prev",
    "db.iter.bytes.read",
    "no.file.opens",
    "no.file.errors",
    "db.mutex.wait.micros",
    "number.multiget.get",
    "number.multiget.keys.read",
    "number.merge.failures",
    "getupdatessince.calls",
    "write.other",
    "compact.read.bytes",
    "compact.write.bytes",
    "flush.write.bytes",
    "number.block.compressed",
    "number.block.decompressed",
    "row.cache.miss",
};

// Histograms that programs search for and that are always empty.
constexpr const char* kOtherHistograms[] = {
    "compaction.times.cpu_micros",
    "subcompaction.setup.times.micros",
    "table.sync.micros",
    "compaction.outfile.sync.micros",
    "wal.file.sync.micros",
    "manifest.file.sync.micros",
    "table.open.io.micros",
    "read.block.compaction.micros",
    "read.block.get.micros",
    "write.raw.block.micros",
    "sst.read.micros",
    "num.subcompactions.scheduled",
    "bytes.compressed",
    "bytes.decompressed",
    "compression.times.nanos",
    "decompression.times.nanos",
};

void AppendLine(const char* name, uint64_t value, std::string* text) {
  text->append("rocksdb.").append(name).append(" COUNT : ").append(std::to_string(value)).push_back('\n');
}

}  // namespace

void SharedStatistics::AddTo(const Statistics& statistics, Sums* sums) {
  static_assert(std::size(kCountedTickers) == kCounted);
  for (size_t i = 0; i < kCounted; ++i) (*sums)[i] += statistics.*kCountedTickers[i].counter;
}

void SharedStatistics::Add(const DB* db) {
  const std::lock_guard lock(mutex_);
  open_.push_back(db);
}

void SharedStatistics::Remove(const DB* db) {
  const std::lock_guard lock(mutex_);
  if (std::erase(open_, db) == 0) return;
  AddTo(db->GetStatistics(), &closed_);
  try {
    Histograms own;
    if (db->GetHistograms(&own)) closed_histograms_.Merge(own);
  } catch (const std::bad_alloc&) {  // memory is short: the counters of the other databases remain
  }
}

std::string SharedStatistics::ToString() const {
  Sums sums;
  Histograms histograms;
  {
    const std::lock_guard lock(mutex_);
    sums = closed_;
    histograms.Merge(closed_histograms_);
    for (const DB* db : open_) {
      AddTo(db->GetStatistics(), &sums);
      Histograms own;
      if (db->GetHistograms(&own)) histograms.Merge(own);
    }
  }
  std::string text;
  for (size_t i = 0; i < kCounted; ++i) AppendLine(kCountedTickers[i].name, sums[i], &text);
  for (const char* name : kOthers) AppendLine(name, 0, &text);
  text += histograms.ToString();
  for (const char* name : kOtherHistograms) {
    text.append("rocksdb.").append(name);
    text += " P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0\n";
  }
  return text;
}

}  // namespace braiddb::capi
