// Observers of reads. A read that is not measured is compiled with an observer that does nothing.
#pragma once

#include "index/lookup_trace.h"
#include "util/perf.h"

namespace braiddb {

struct UnobservedRead {
  struct Nothing {};
  static Nothing TimeSnapshot() { return {}; }
  static Nothing TimeMemtables() { return {}; }
  static Nothing TimeTables() { return {}; }
  static void NoteMemtable() {}
  static void NoteFilter(bool) {}
  static void NotePlainHit() {}
  static void NoteLookup(bool, const LookupTrace&) {}
};

// Counts in the thread's PerfContext, as far as the thread's perf level says.
struct ObservedRead {
  static perf::Timer TimeSnapshot() { return perf::Timer(&PerfContext::get_snapshot_time); }
  static perf::Timer TimeMemtables() { return perf::Timer(&PerfContext::get_from_memtable_time); }
  static perf::Timer TimeTables() { return perf::Timer(&PerfContext::get_from_output_files_time); }
  static void NoteMemtable() { perf::Add(&PerfContext::get_from_memtable_count); }
  static void NoteFilter(bool passes) {
    perf::Add(passes ? &PerfContext::bloom_sst_hit_count : &PerfContext::bloom_sst_miss_count);
  }
  // The lookup cache answered, and the entry was compared with the key.
  static void NotePlainHit() {
    perf::Add(&PerfContext::block_cache_hit_count);
    perf::Add(&PerfContext::user_key_comparison_count);
  }
  static void NoteLookup(bool hit, const LookupTrace& trace) {
    perf::Add(&PerfContext::block_cache_hit_count, hit);
    perf::Add(&PerfContext::user_key_comparison_count, trace.local + trace.remote);
  }
};

}  // namespace braiddb
