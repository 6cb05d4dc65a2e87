#include "db_bench/workloads.h"

#include <algorithm>
#include <cstdio>
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

void PrintProperty(Worker* worker, const char* property) {
  std::string text;
  if (!worker->db->GetProperty(property, &text)) text = std::string("(no property ") + property + ")";
  std::printf("\n%s\n", text.c_str());
}

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
      {"deleteseq", DeleteSequential},
      {"deleterandom", DeleteRandom},
      {"readwhilewriting", ReadWhileWriting, false, OneMoreThread},
      {"readrandomwriterandom", ReadRandomWriteRandom},
      {"compact", Compact, false, OneThread},
      {"flush", FlushMemtable, false, OneThread},
      {"waitforcompaction", WaitForCompaction, false, OneThread},
      {"stats", PrintStats, false, OneThread},
      {"levelstats", PrintLevels, false, OneThread},
      {"pmappend", nullptr, false, nullptr, PreparePmAppend},
      {"pmread", nullptr, false, nullptr, PreparePmRead},
  };
  return *kWorkloads;
}

const Workload* FindWorkload(std::string_view name) {
  for (const Workload& workload : Workloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

void Compact(Worker* worker) { ExitOnError(worker->db->CompactRange(CompactRangeOptions(), nullptr, nullptr), "compact"); }

void FlushMemtable(Worker* worker) { ExitOnError(worker->db->Flush(), "flush"); }

void WaitForCompaction(Worker* worker) { ExitOnError(worker->db->WaitForCompaction(), "waitforcompaction"); }

void PrintStats(Worker* worker) {
  worker->exclude_from_report = true;
  PrintProperty(worker, "braiddb.stats");
}

void PrintLevels(Worker* worker) {
  worker->exclude_from_report = true;
  PrintProperty(worker, "braiddb.levels");
  PrintProperty(worker, "braiddb.l1");
}

}  // namespace braiddb::bench
