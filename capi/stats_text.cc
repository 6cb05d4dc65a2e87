#include "capi/stats_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace braiddb::capi {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = kKiB * 1024;
constexpr double kGiB = kMiB * 1024;

// Appends a line of at most 500 bytes.
template <class... Arguments>
void Print(std::string* out, const char* format, const Arguments&... arguments) {
  char line[500];
  const int length = std::snprintf(line, sizeof line, format, arguments...);
  out->append(line, std::min(sizeof line - 1, static_cast<size_t>(std::max(0, length))));
}

// Formats as 9999, 10K, 12M.
std::string Count(uint64_t number) {
  if (number < 10'000) return std::to_string(number);
  if (number < 10'000'000) return std::to_string(number / 1000) + "K";
  return std::to_string(number / 1'000'000) + "M";
}

std::string Size(uint64_t bytes) {
  std::string text;
  const auto size = static_cast<double>(bytes);
  if (size < kMiB) {
    Print(&text, "%.2f KB", size / kKiB);
  } else if (size < kGiB) {
    Print(&text, "%.2f MB", size / kMiB);
  } else {
    Print(&text, "%.2f GB", size / kGiB);
  }
  return text;
}

uint64_t Number(DB* db, ColumnFamilyHandle* family, const char* property) {
  uint64_t value = 0;
  return db->GetIntProperty(family, property, &value) ? value : 0;
}

double Ratio(double of, double by) { return by == 0 ? 0 : of / by; }

// Total seconds of merges or flushes. 0 without histograms.
double SecondsOf(DB* db, HistogramKind kind) {
  Histograms histograms;
  return db->GetHistograms(&histograms) ? histograms.Get(kind).sum / 1e6 : 0;
}

constexpr const char* kColumns =
    "    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) "
    "CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)\n";
constexpr size_t kRule = 192;

struct Work {
  double seconds = 0;
  uint64_t times = 0;
  uint64_t keys = 0;
  uint64_t dropped = 0;
};

// Merges and flushes only change pointers, so they read and write no entries.
void PrintLevel(std::string* out, const char* name, const LevelNumbers& level, double score, const Work& work) {
  Print(out,
        "%4s %6llu/0   %8s %5.1f %8.1f %7.1f %8.1f %9.1f %8.1f %9.1f %5.1f %8.1f %8.1f %9.2f %17.2f %9llu %8.3f %7s %6s %9.1f "
        "%9.1f\n",
        name, static_cast<unsigned long long>(level.files), Size(level.bytes).c_str(), score, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, work.seconds, 0.0, static_cast<unsigned long long>(work.times),
        Ratio(work.seconds, static_cast<double>(work.times)), Count(work.keys).c_str(), Count(work.dropped).c_str(), 0.0, 0.0);
}

void PrintHeading(std::string* out, const std::string& family, const char* by) {
  out->append("\n** Compaction Stats [").append(family).append("] **\n").append(by).append(kColumns);
  out->append(kRule, '-').append("\n");
}

void PrintStall(std::string* out, const char* which, uint64_t micros, double seconds) {
  const uint64_t whole = micros / 1'000'000;
  Print(out, "%s stall: %02llu:%02llu:%.3f H:M:S, %.1f percent\n", which, static_cast<unsigned long long>(whole / 3600),
        static_cast<unsigned long long>(whole / 60 % 60), static_cast<double>(micros % 60'000'000) / 1e6,
        100 * Ratio(static_cast<double>(micros) / 1e6, seconds));
}

struct Writes {
  uint64_t calls;
  uint64_t keys;
  uint64_t bytes;
};

void PrintWrites(std::string* out, const char* which, const Writes& writes, double seconds, bool in_megabytes) {
  const auto bytes = static_cast<double>(writes.bytes);
  const double amount = bytes / (in_megabytes ? kMiB : kGiB);
  const double pace = Ratio(bytes / kMiB, seconds);
  const std::string calls = Count(writes.calls);
  Print(out, "%s writes: %s writes, %s keys, %s commit groups, %.1f writes per commit group, ingest: %.2f %s, %.2f MB/s\n", which,
        calls.c_str(), Count(writes.keys).c_str(), calls.c_str(), writes.calls == 0 ? 0.0 : 1.0, amount,
        in_megabytes ? "MB" : "GB", pace);
  Print(out, "%s WAL: %s writes, %s syncs, %.2f writes per sync, written: %.2f GB, %.2f MB/s\n", which, calls.c_str(),
        calls.c_str(), writes.calls == 0 ? 0.0 : 1.0, bytes / kGiB, pace);
}

}  // namespace

StatsPeriods::Period StatsPeriods::Next(const Statistics& now) {
  const std::lock_guard lock(mutex_);
  const auto time = Clock::now();
  Period period;
  period.seconds = std::chrono::duration<double>(time - opened_).count();
  period.seconds_of_interval = std::chrono::duration<double>(time - std::exchange(interval_, time)).count();
  period.all = now;
  period.before = std::exchange(before_, now);
  return period;
}

LevelNumbers SumOf(const Levels& levels) {
  LevelNumbers sum;
  for (const LevelNumbers& level : levels) sum = {sum.files + level.files, sum.bytes + level.bytes, sum.entries + level.entries};
  return sum;
}

Levels NumbersOfLevels(DB* db, ColumnFamilyHandle* family) {
  Levels levels;
  levels[0].files = Number(db, family, "braiddb.num-l0-tables");
  levels[0].entries = Number(db, family, "braiddb.num-entries-l0");
  levels[1].entries = Number(db, family, "braiddb.num-entries-l1");
  levels[1].files = levels[1].entries > 0 ? 1 : 0;
  const auto live = static_cast<double>(Number(db, family, "braiddb.pm-bytes-live"));
  const auto keys = static_cast<double>(std::max<uint64_t>(1, Number(db, family, "braiddb.estimate-num-keys")));
  for (LevelNumbers& level : levels) level.bytes = static_cast<uint64_t>(live * static_cast<double>(level.entries) / keys);
  return levels;
}

std::string CompactionStatsText(DB* db, ColumnFamilyHandle* family, StatsPeriods* periods) {
  const Levels levels = NumbersOfLevels(db, family);
  const Statistics now = db->GetStatistics();
  const StatsPeriods::Period period = periods->Next(now);
  const Work flushes{SecondsOf(db, HistogramKind::kFlushMicros), now.flushes, 0, 0};
  const Work merges{SecondsOf(db, HistogramKind::kCompactionMicros), now.compactions, now.merged_entries, now.dropped_entries};
  const Work all{flushes.seconds + merges.seconds, flushes.times + merges.times, merges.keys, merges.dropped};
  const LevelNumbers sum = SumOf(levels);
  const double trigger = std::max(1u, db->GetOptions().l0_compaction_trigger);
  std::string out;
  PrintHeading(&out, family->GetName(), "Level");
  PrintLevel(&out, "L0", levels[0], static_cast<double>(levels[0].files) / trigger, flushes);
  if (levels[1].files > 0) PrintLevel(&out, "L1", levels[1], 0, merges);
  PrintLevel(&out, " Sum", sum, 0, all);
  PrintLevel(&out, " Int", {}, 0, {});
  PrintHeading(&out, family->GetName(), "Priority");
  if (merges.times > 0) PrintLevel(&out, " Low", {}, 0, merges);
  if (flushes.times > 0) PrintLevel(&out, "High", {}, 0, flushes);
  out += "\nBlob file count: 0, total size: 0.0 GB, garbage size: 0.0 GB, space amp: 0.0\n\n";
  Print(&out, "Uptime(secs): %.1f total, %.1f interval\n", period.seconds, period.seconds_of_interval);
  out +=
      "Flush(GB): cumulative 0.000, interval 0.000\n"
      "AddFile(GB): cumulative 0.000, interval 0.000\n"
      "AddFile(Total Files): cumulative 0, interval 0\n"
      "AddFile(L0 Files): cumulative 0, interval 0\n"
      "AddFile(Keys): cumulative 0, interval 0\n";
  const double copied = static_cast<double>(now.relocated_bytes);
  Print(&out,
        "Cumulative compaction: %.2f GB write, %.2f MB/s write, 0.00 GB read, 0.00 MB/s read, %.1f seconds\n"
        "Interval compaction: 0.00 GB write, 0.00 MB/s write, 0.00 GB read, 0.00 MB/s read, 0.0 seconds\n",
        copied / kGiB, Ratio(copied / kMiB, period.seconds), all.seconds);
  Print(&out,
        "Stalls(count): %llu level0_slowdown, %llu level0_slowdown_with_compaction, 0 level0_numfiles, "
        "0 level0_numfiles_with_compaction, 0 stop for pending_compaction_bytes, 0 slowdown for pending_compaction_bytes, ",
        static_cast<unsigned long long>(now.write_delays), static_cast<unsigned long long>(now.write_delays));
  Print(&out, "0 memtable_compaction, 0 memtable_slowdown, interval %llu total count\n",
        static_cast<unsigned long long>(now.write_delays - std::min(now.write_delays, period.before.write_delays)));
  return out + BlockCacheText(db);
}

std::string FileHistogramText(ColumnFamilyHandle* family) {
  return "\n** File Read Latency Histogram By Level [" + family->GetName() + "] **\n";
}

std::string DatabaseStatsText(DB* db, StatsPeriods* periods) {
  const StatsPeriods::Period period = periods->Next(db->GetStatistics());
  const auto since = [&](uint64_t Statistics::*counter) {
    return period.all.*counter - std::min(period.all.*counter, period.before.*counter);
  };
  std::string out = "\n** DB Stats **\n";
  Print(&out, "Uptime(secs): %.1f total, %.1f interval\n", period.seconds, period.seconds_of_interval);
  PrintWrites(&out, "Cumulative", {period.all.batches, period.all.writes, period.all.log_bytes}, period.seconds, false);
  PrintStall(&out, "Cumulative", period.all.write_delay_us, period.seconds);
  PrintWrites(&out, "Interval", {since(&Statistics::batches), since(&Statistics::writes), since(&Statistics::log_bytes)},
              period.seconds_of_interval, true);
  PrintStall(&out, "Interval", since(&Statistics::write_delay_us), period.seconds_of_interval);
  return out;
}

std::string BlockCacheText(DB* db) {
  std::string out;
  const uint64_t usage = Number(db, db->DefaultColumnFamily(), "braiddb.lookup-cache-bytes");
  Print(&out, "Block cache LookupCache@%p capacity: %s usage: %s\n", static_cast<const void*>(db),
        Size(db->GetOptions().lookup_cache_size).c_str(), Size(usage).c_str());
  out += "Block cache entry stats(count,size,portion):\n";
  return out;
}

std::string LevelStatsText(const Levels& levels) {
  std::string out = "Level Files Size(MB)\n--------------------\n";
  for (int i = 0; i < kLevels; ++i) {
    const LevelNumbers& level = levels[static_cast<size_t>(i)];
    Print(&out, "%3d %8llu %8.0f\n", i, static_cast<unsigned long long>(level.files), static_cast<double>(level.bytes) / kMiB);
  }
  return out;
}

std::string TablesText(const Levels& levels) {
  std::string out;
  for (int i = 0; i < kLevels; ++i) {
    const LevelNumbers& level = levels[static_cast<size_t>(i)];
    Print(&out, "--- level %d --- version# 1 ---\n", i);
    for (uint64_t file = 0; file < level.files; ++file) {
      Print(&out, " %llu:%llu\n", static_cast<unsigned long long>(file + 1),
            static_cast<unsigned long long>(level.bytes / level.files));
    }
  }
  return out;
}

std::string TablePropertiesText(const LevelNumbers& numbers) {
  std::string out;
  Print(
      &out,
      "# data blocks=0; # entries=%llu; # deletions=0; # merge operands=0; # range deletions=0; raw key size=0; raw average key "
      "size=0.000000; raw value size=0; raw average value size=0.000000; data block size=%llu; ",
      static_cast<unsigned long long>(numbers.entries), static_cast<unsigned long long>(numbers.bytes));
  out += "index block size (user-key? 0, delta-value? 0)=0; filter block size=0; # entries for filter=0; (estimated) table size=";
  return out + std::to_string(numbers.bytes) + "; filter policy name=N/A; prefix extractor name=N/A; ";
}

std::string LevelDBStatsText(DB* db, const Levels& levels) {
  std::string out =
      "                               Compactions\n"
      "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n"
      "--------------------------------------------------\n";
  for (int i = 0; i < kLevels; ++i) {
    const LevelNumbers& level = levels[static_cast<size_t>(i)];
    if (level.files == 0) continue;
    const double seconds = SecondsOf(db, i == 0 ? HistogramKind::kFlushMicros : HistogramKind::kCompactionMicros);
    Print(&out, "%3d %8llu %8.0f %9.0f %8.0f %9.0f\n", i, static_cast<unsigned long long>(level.files),
          static_cast<double>(level.bytes) / kMiB, seconds, 0.0, 0.0);
  }
  return out;
}

}  // namespace braiddb::capi
