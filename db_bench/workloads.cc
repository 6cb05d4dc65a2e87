#include "db_bench/workloads.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>

namespace braiddb::bench {

namespace {

void OneThread(Flags* flags) { flags->threads = 1; }
void OneMoreThread(Flags* flags) { ++flags->threads; }
void LongerKeys(Flags* flags) { ++flags->key_size; }  // a byte longer than any key that a fill writes
void BatchesOf1000(Flags* flags) { flags->batch_size = 1000; }

void Thousandth(Flags* flags) {
  flags->num = std::max<int64_t>(flags->num / 1000, 1);
  flags->writes = flags->writes < 0 ? flags->writes : std::max<int64_t>(flags->writes / 1000, 1);
}
void ThousandthSynced(Flags* flags) {
  Thousandth(flags);
  flags->sync = true;
}
void Thousandth100K(Flags* flags) {
  Thousandth(flags);
  flags->value_size = 100 * 1000;
}

void ZipfOfYcsb(Flags* flags) {
  if (flags->zipf == 0) flags->zipf = 0.99;
}

void PrintText(Worker* worker, const char* name) {
  worker->exclude_from_report = true;
  std::string text;
  if (!worker->engine->GetText(name, &text)) text = std::string("(this engine has no ") + name + ")";
  std::printf("\n%s\n", text.c_str());
}

// An engine that cannot do something says so, and the next benchmark runs.
void SayOrExit(Worker* worker, const Status& status, const char* what) {
  if (!status.IsNotSupported()) return ExitOnError(status, what);
  worker->exclude_from_report = true;
  std::printf("%-12s : skipped (%s)\n", what, std::string(status.message()).c_str());
}

struct Foreign {
  const char* why;
  std::initializer_list<std::string_view> names;
};

const Foreign kForeign[] = {
    {"there are no merge operators",
     {"mergerandom", "readrandommergerandom", "readwhilemerging", "seekrandomwhilemerging", "getmergeoperands",
      "readrandomoperands", "randomwithverify", "appendrandom", "xorupdaterandom"}},
    {"there are no levels of files",
     {"fillseqdeterministic", "filluniquerandomdeterministic", "compact0", "compact1", "sstables", "verify",
      "approximatesizerandom", "verifyfilechecksums"}},
    {"there is no block or row cache", {"readtocache", "readtorowcache", "cache_report_problems"}},
    {"it measures a function of RocksDB's, not a database",
     {"crc32c", "xxhash", "xxhash64", "xxh3", "acquireload", "compress", "uncompress", "heapprofile"}},
    {"there are no transactions", {"randomtransaction"}},
    {"traces are not written or read", {"replay"}},
    {"there are no backups", {"backup", "restore"}},
    {"counters run from the open on", {"resetstats", "memstats"}},
    {"it is not among what is measured here",
     {"fillseekseq", "randomreplacekeys", "timeseries", "fillanddeleteuniquerandom", "multiscan", "block_cache_entry_stats"}},
};

}  // namespace

const std::vector<Workload>& Workloads() {
  constexpr bool kFresh = true;
  static const auto* const kWorkloads = new std::vector<Workload>{
      {"fillseq", FillSequential, kFresh},
      {"fillbatch", FillSequential, kFresh, BatchesOf1000},
      {"fillrandom", FillRandom, kFresh},
      {"filluniquerandom", FillUnique, kFresh, OneThread},
      {"fillsync", FillRandom, kFresh, ThousandthSynced},
      {"fill100K", FillRandom, kFresh, Thousandth100K},
      {"overwrite", FillRandom},
      {"readrandom", ReadRandom},
      {"readmissing", ReadRandom, false, LongerKeys},
      {"multireadrandom", MultiReadRandom},
      {"readseq", ReadSequential},
      {"readreverse", ReadReverse},
      {"seekrandom", SeekRandom},
      {"seekrandomwhilewriting", SeekRandomWhileWriting, false, OneMoreThread},
      {"newiterator", NewIterators},
      {"newiteratorwhilewriting", NewIteratorsWhileWriting, false, OneMoreThread},
      {"deleteseq", DeleteSequential},
      {"deleterandom", DeleteRandom},
      {"readwhilewriting", ReadWhileWriting, false, OneMoreThread},
      {"readwhilescanning", ReadWhileScanning, false, OneMoreThread},
      {"readrandomwriterandom", ReadRandomWriteRandom},
      {"updaterandom", UpdateRandom},
      {"mixgraph", MixGraph, false, nullptr, DrawMixQueries},
      {"ycsb_load", YcsbLoad, kFresh},
      {"ycsb_a", YcsbA, false, ZipfOfYcsb, DrawYcsbKeys},
      {"ycsb_b", YcsbB, false, ZipfOfYcsb, DrawYcsbKeys},
      {"ycsb_c", YcsbC, false, ZipfOfYcsb, DrawYcsbKeys},
      {"ycsb_d", YcsbD, false, ZipfOfYcsb, DrawYcsbRanks},
      {"ycsb_e", YcsbE, false, ZipfOfYcsb, DrawYcsbKeys},
      {"ycsb_f", YcsbF, false, ZipfOfYcsb, DrawYcsbKeys},
      {"compact", Compact, false, OneThread},
      {"compactall", Compact, false, OneThread},
      {"flush", FlushMemtable, false, OneThread},
      {"waitforcompaction", WaitForCompaction, false, OneThread},
      {"stats", PrintStats, false, OneThread},
      {"levelstats", PrintLevels, false, OneThread},
      {.name = "open", .body = nullptr, .times_open = true},
      {.name = "crash", .body = nullptr, .ends_process = true},
      {"pmappend", nullptr, false, nullptr, nullptr, PreparePmAppend},
      {"pmread", nullptr, false, nullptr, nullptr, PreparePmRead},
  };
  return *kWorkloads;
}

const Workload* FindWorkload(std::string_view name) {
  for (const Workload& workload : Workloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

const char* WhyNoWorkload(std::string_view name) {
  for (const Foreign& foreign : kForeign) {
    if (std::find(foreign.names.begin(), foreign.names.end(), name) != foreign.names.end()) return foreign.why;
  }
  return nullptr;
}

void Compact(Worker* worker) { SayOrExit(worker, worker->engine->Compact(), "compact"); }

void FlushMemtable(Worker* worker) { SayOrExit(worker, worker->engine->Flush(), "flush"); }

void WaitForCompaction(Worker* worker) { SayOrExit(worker, worker->engine->WaitForCompaction(), "waitforcompaction"); }

void PrintStats(Worker* worker) { PrintText(worker, "stats"); }

void PrintLevels(Worker* worker) { PrintText(worker, "levelstats"); }

}  // namespace braiddb::bench
