// Observers of reads. A read that is not measured is compiled with an observer that does nothing.
#pragma once

#include "index/lookup_trace.h"
#include "lsm/read_view.h"
#include "util/perf.h"

namespace braiddb {

struct UnobservedRead {
  struct Nothing {};
  static Nothing TimeSnapshot() { return {}; }
  static Nothing TimeMemtables() { return {}; }
  static Nothing TimeTables() { return {}; }
  static Nothing TimeL0(const FamilyView&) { return {}; }
  static Nothing TimeLastLevel() { return {}; }
  static void NoteCacheSearch() {}
  static void NoteCacheFill() {}
  static void NoteMemtables(size_t) {}
  static void NoteTables(const FamilyView::TableGroup&) {}
  static void NoteLastLevel() {}
  static void NoteRepeated() {}
  static void NoteFilter(bool) {}
  static void NotePlainHit() {}
  static void NoteLookup(bool, const LookupTrace&) {}
};

// Counts in the thread's PerfContext, as far as the thread's perf level says.
struct ObservedRead {
  static perf::Timer TimeSnapshot() { return perf::Timer(&PerfContext::get_snapshot_time); }
  static perf::Timer TimeMemtables() { return perf::Timer(&PerfContext::get_from_memtable_time); }
  static perf::Timer TimeTables() { return perf::Timer(&PerfContext::get_from_output_files_time); }
  static perf::Timer TimeL0(const FamilyView& view) {
    return perf::Timer(&PerfContext::get_from_l0_time, perf::Times() && !view.l0.empty());
  }
  static perf::Timer TimeLastLevel() { return perf::Timer(&PerfContext::get_from_last_level_time); }
  static void NoteCacheSearch() { perf::Add(&PerfContext::lookup_cache_search_count); }
  static void NoteCacheFill() { perf::Add(&PerfContext::lookup_cache_fill_count); }
  static void NoteMemtables(size_t count) { perf::Add(&PerfContext::get_from_memtable_count, count); }
  static void NoteTables(const FamilyView::TableGroup& group) {
    perf::Add(group.index != nullptr ? &PerfContext::l0_index_search_count : &PerfContext::l0_list_search_count);
  }
  static void NoteLastLevel() { perf::Add(&PerfContext::last_level_search_count); }
  static void NoteRepeated() { perf::Add(&PerfContext::get_repeated_count); }
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
