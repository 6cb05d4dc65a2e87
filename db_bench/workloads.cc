#include "db_bench/workloads.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>

namespace braiddb::bench {

namespace {

void OneThread(Flags* flags) { flags->threads = 1; }
void OneMoreThread(Flags* flags) { ++flags->threads; }
// Makes keys a byte longer than in a fill.
void LongerKeys(Flags* flags) {
  ++flags->key_size;
  flags->longer_keys = true;
}
void BatchesOf1000(Flags* flags) { flags->batch_size = 1000; }

// A thousandth of the keys, not of the writes, as in RocksDB.
void Thousandth(Flags* flags) {
  flags->writes = static_cast<int64_t>(flags->Writes());
  flags->num = std::max<int64_t>(flags->num / 1000, 1);
  flags->fewer_keys = true;
}
void ThousandthSynced(Flags* flags) {
  Thousandth(flags);
  flags->sync = true;
}
void Thousandth100K(Flags* flags) {
  Thousandth(flags);
  flags->value_size = 100 * 1000;
}

void ThousandthOfReads(Flags* flags) { flags->reads = static_cast<int64_t>(flags->Reads() / 1000); }

void ZipfOfYcsb(Flags* flags) {
  if (flags->zipf == 0) flags->zipf = 0.99;
}

void PrintText(Worker* worker, const char* name) {
  worker->exclude_from_report = true;
  std::string text;
  if (!worker->engine->GetText(name, &text)) text = std::string("(this engine has no ") + name + ")";
  std::printf("\n%s\n", text.c_str());
}

// If the engine does not support the operation, prints the reason, and the next benchmark runs.
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
    {"there is no call for the operands of a key", {"getmergeoperands", "readrandomoperands"}},
    {"updaterandom does the same reads and writes, with other values", {"appendrandom", "xorupdaterandom"}},
    {"there are no levels of files",
     {"fillseqdeterministic", "filluniquerandomdeterministic", "compact0", "compact1", "sstables", "verifyfilechecksums",
      "openandcompact"}},
    {"there is no block or row cache", {"readtocache", "readtorowcache", "cache_report_problems", "block_cache_entry_stats"}},
    {"it measures a function of RocksDB's, not a database",
     {"crc32c", "xxhash", "xxhash64", "xxh3", "acquireload", "compress", "compressreject", "uncompress", "heapprofile"}},
    {"db_bench opens databases without transactions", {"randomtransaction"}},
    {"db_bench writes and reads no traces", {"replay"}},
    {"db_bench does not measure backups; include/braiddb/backup.h makes them", {"backup", "restore"}},
    {"db_bench does not make files to be ingested; include/braiddb/c.h takes them", {"ingestexternalfile"}},
    {"db_bench compares no two databases; braiddb check verifies one", {"verify"}},
    {"counters run from the open on, and --json has those of each benchmark", {"resetstats", "memstats", "stats_history"}},
    {"db_bench does not measure estimates of sizes", {"approximatesizerandom", "approximatememtablestats"}},
    {"there is no call for several scans at once", {"multiscan", "multiscanrandom"}},
    {"there are no calls that return before they are done", {"readrandomcoroutine", "multireadrandomcoroutine"}},
    {"values have no columns, and those of any size are stored alike",
     {"readrandomentity", "multireadentity", "fillembeddedentity", "fillembeddedblob"}},
    {"it is not among what is measured here",
     {"fillseekseq", "randomreplacekeys", "timeseries", "fillanddeleteuniquerandom", "randomwithverify"}},
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
      {"readrandomsmall", ReadRandom, false, ThousandthOfReads},
      {"readrandomfast", ReadRandomFast},
      {"readmissing", ReadRandom, false, LongerKeys},
      {"multireadrandom", MultiReadRandom},
      {"readseq", ReadSequential},
      {"readreverse", ReadReverse},
      {"seekrandom", SeekRandom},
      {"seekrandomwhilewriting", SeekRandomWhileWriting, false, OneMoreThread},
      {"seekrandomwhilemerging", SeekRandomWhileMerging, false, OneMoreThread},
      {"newiterator", NewIterators},
      {"newiteratorwhilewriting", NewIteratorsWhileWriting, false, OneMoreThread},
      {"deleteseq", DeleteSequential},
      {"deleterandom", DeleteRandom},
      {"readwhilewriting", ReadWhileWriting, false, OneMoreThread},
      {"readwhilemerging", ReadWhileMerging, false, OneMoreThread},
      {"multireadwhilewriting", MultiReadWhileWriting, false, OneMoreThread},
      {"readwhilescanning", ReadWhileScanning, false, OneMoreThread},
      {"readrandomwriterandom", ReadRandomWriteRandom},
      {"updaterandom", UpdateRandom},
      {"mergerandom", MergeRandom},
      {"readrandommergerandom", ReadRandomMergeRandom},
      {"verifychecksum", VerifyChecksum, false, OneThread},
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
      {"pmappendstream", nullptr, false, nullptr, nullptr, PreparePmAppendStream},
      {"pmread", nullptr, false, nullptr, nullptr, PreparePmRead},
      {"pmreadindependent", nullptr, false, nullptr, nullptr, PreparePmReadIndependent},
  };
  return *kWorkloads;
}

bool OnlyReads(const Workload& workload, uint32_t thread) {
  if (workload.adjust == OneMoreThread) return thread > 0;
  const std::initializer_list<void (*)(Worker*)> readers = {ReadRandom,  ReadRandomFast, MultiReadRandom, ReadSequential,
                                                            ReadReverse, SeekRandom,     NewIterators,    YcsbC};
  return std::find(readers.begin(), readers.end(), workload.body) != readers.end();
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

void VerifyChecksum(Worker* worker) { SayOrExit(worker, worker->engine->VerifyChecksums(), "verifychecksum"); }

void PrintStats(Worker* worker) { PrintText(worker, "stats"); }

void PrintLevels(Worker* worker) { PrintText(worker, "levelstats"); }

}  // namespace braiddb::bench
