#include "db_bench/flags.h"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "braiddb/db.h"
#include "db_bench/command_line.h"
#include "db_bench/presets.h"
#include "index/level_kind.h"
#include "lsm/memtable_type.h"
#include "pmem/list_kind.h"
#include "pmem/persist_mode.h"

namespace braiddb::bench {

namespace {

namespace po = boost::program_options;

// The typed values before validation. Counts and sizes are signed, so that negative values can be refused.
struct Typed {
  std::string key_shape, key_file;
  std::string benchmarks, engine, engines, ycsb_popularity, huge_pages, l1, list_kind, memtable, persist_mode, region_paths,
      region_nodes;
  int64_t reader_processes;
  int64_t key_size, value_size, batch_size, num_column_families, seek_nexts, multiread_stride, readwritepercent, threads, seed,
      perf_level;
  int64_t regions, max_region_size, initial_region_size, segment_size, memtable_size, write_buffer_size, max_immutable_memtables,
      checkpoint_tables;
  int64_t compaction_threads, recovery_threads, l0_compaction_trigger, l0_slowdown_writes_trigger;
  int64_t nv_leaf_size, l1_index_size, dram_budget, lookup_cache_size, bloom_bits, space_slack, kept_free_space;
  double max_space_amplification, zipf;
  int64_t merge_keys, mergereadpercent, range_tombstone_width, max_scan_distance, seek_nexts_to_delete, bgwriter_num;
  int64_t write_latency_ns, read_latency_ns, remote_latency_ns;
  int64_t rounds, sine_interval_ms, write_sine_interval_ms;
};

std::string KeyShapeHelp() {
  std::string help = "shape of the keys, instead of --key_size:";
  for (const KeyShape& shape : KeyShapes()) help += std::string(" ") + shape.name + " (" + shape.what + ");";
  help.back() = '.';
  return help;
}

std::string DefaultPath() {
  if (const char* directory = std::getenv("TEST_TMPDIR")) return std::string(directory) + "/dbbench";
  const char* base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(base) + "/braiddb-" + std::to_string(getuid()) + "/dbbench";
}

po::typed_value<bool>* Switch(bool* target) { return po::value<bool>(target)->default_value(false)->implicit_value(true); }

template <class T>
po::typed_value<T>* Value(T* target, T otherwise) {
  return po::value<T>(target)->default_value(otherwise);
}

std::string PresetHelp() {
  std::string help = "flags of a published workload; explicit flags override them; 'help' describes each preset:";
  for (const Preset& preset : Presets()) help += std::string(" ") + preset.name;
  return help;
}

void AddWorkloadFlags(po::options_description* all, Flags* flags, Typed* typed) {
  po::options_description group("What to run (counts are per thread)", 110, 60);
  auto add = group.add_options();
  add("benchmarks",
      Value<std::string>(
          &typed->benchmarks,
          "fillseq,fillrandom,overwrite,readrandom,readmissing,readseq,readreverse,seekrandom,deleterandom,compact"),
      "comma-separated, run in this order; 'help' lists them; name[X3] runs three times, name[X3-W1] after one warm-up run");
  add("db", Value<std::string>(&flags->db, DefaultPath()), "directory of the database; an existing database is destroyed");
  add("use_existing_db", Switch(&flags->use_existing_db),
      "keep the existing database; benchmarks that need an empty one are skipped");
  add("num", Value<int64_t>(&flags->num, 1000000), "size of the key space, and default of the counts below");
  add("preset", po::value<std::string>(), PresetHelp().c_str());
  add("reads", Value<int64_t>(&flags->reads, -1), "reads; negative: num");
  add("writes", Value<int64_t>(&flags->writes, -1), "writes; negative: num");
  add("deletes", Value<int64_t>(&flags->deletes, -1), "deletions; negative: num");
  add("duration", Value<int64_t>(&flags->duration, 0), "seconds per benchmark in random order; 0: the counts apply");
  add("threads", Value<int64_t>(&typed->threads, 1), "concurrent threads");
  add("reader_processes", Value<int64_t>(&typed->reader_processes, 0),
      "processes of one thread each, in which threads that only read run, beside the process that has the database open for "
      "writing; --threads does not count for these benchmarks (braiddb, lmdb)");
  add("seed", Value<int64_t>(&typed->seed, 0), "seed of the random numbers; 0: a new seed in each run");
  add("key_size", Value<int64_t>(&typed->key_size, 16), "bytes: the number, big-endian, padded with '0'");
  add("key_shape", Value<std::string>(&typed->key_shape, ""), KeyShapeHelp().c_str());
  add("key_file", Value<std::string>(&typed->key_file, ""),
      "file with one key a line, instead of --key_size; --num is by default the number of its keys");
  add("value_size", Value<int64_t>(&typed->value_size, 100), "bytes");
  add("batch_size", Value<int64_t>(&typed->batch_size, 1), "updates per write, keys per MultiGet");
  add("num_column_families", Value<int64_t>(&typed->num_column_families, 1),
      "braiddb, rocksdb, lmdb: the key's number selects its column family; iterators use the default family");
  add("seek_nexts", Value<int64_t>(&typed->seek_nexts, 0), "seekrandom: steps after each seek");
  add("seek_nexts_to_delete", Value<int64_t>(&typed->seek_nexts_to_delete, 0),
      "seekrandom: after these, delete this number of keys from the iterator's position on");
  add("max_scan_distance", Value<int64_t>(&typed->max_scan_distance, 0),
      "seekrandom: distance of the iterator's bound from the sought key, in keys; 0: no bound (not lmdb, leveldb)");
  add("seek_missing_prefix", Switch(&flags->seek_missing_prefix),
      "seekrandom: seek missing keys, which differ in the ninth byte");
  add("explicit_snapshot", Switch(&flags->explicit_snapshot),
      "iterators of readseq, seekrandom and newiterator share one snapshot (braiddb, rocksdb)");
  add("reverse_iterator", Switch(&flags->reverse_iterator), "seekrandom: step with Prev");
  add("multiread_stride", Value<int64_t>(&typed->multiread_stride, 0), "multireadrandom: distance of the keys; 0: random");
  add("zipf", Value<double>(&typed->zipf, 0),
      "exponent of Zipf's law for the keys of random reads, seeks, and writes beside them (YCSB: 0.99); 0: uniform");
  add("readwritepercent", Value<int64_t>(&typed->readwritepercent, 90), "readrandomwriterandom: percentage of reads");
  add("merge_operator", Value<std::string>(&flags->merge_operator, ""),
      "merge operator by RocksDB's name: put, uint64add, stringappend, max, bytesxor (braiddb, rocksdb)");
  add("merge_keys", Value<int64_t>(&typed->merge_keys, -1), "mergerandom, readrandommergerandom: keys to merge; negative: num");
  add("mergereadpercent", Value<int64_t>(&typed->mergereadpercent, 70), "readrandommergerandom: percentage of merges");
  add("bgwriter_num", Value<int64_t>(&typed->bgwriter_num, 0), "size of the key space of a writer beside readers; 0: --num");
  add("finish_after_writes", Switch(&flags->finish_after_writes), "a writer beside readers ends after --writes");
  add("sync", Switch(&flags->sync),
      "acknowledge writes after a sync; braiddb needs it only with --persist_mode=page, the other modes are always durable");
  add("disable_wal", Switch(&flags->disable_wal), "rocksdb: write without its log; braiddb's log is the data");
  add("verify_checksum", Switch(&flags->verify_checksum), "braiddb: reads verify checksums; rocksdb always does");
  add("verify", Switch(&flags->verify),
      "derive values from their keys, and stop with an error if a read returns another value; costs time");
  add("readonly", Switch(&flags->readonly), "braiddb, rocksdb: open the database for reading only");
  add("benchmark_write_rate_limit", Value<int64_t>(&flags->benchmark_write_rate_limit, 0), "bytes per second; 0: none");
  add("ycsb_target", Value<int64_t>(&flags->ycsb_target, 0),
      "ycsb: operations per second of all threads; latencies count from the due time of an operation; 0: no limit");
  add("ycsb_popularity", Value<std::string>(&typed->ycsb_popularity, "scrambled"),
      "ycsb_a, b, c, e, f: scrambled: Zipf's law over 10^10 items that are hashed to records, as in YCSB; records: Zipf's "
      "law over the records");
  add("benchmark_read_rate_limit", Value<int64_t>(&flags->benchmark_read_rate_limit, 0), "operations per second; 0: none");
  all->add(group);
}

void AddRangeFlags(po::options_description* all, Flags* flags, Typed* typed) {
  RangeDeletions* ranges = &flags->range_deletions;
  po::options_description group("Ranges that fills and writers beside readers delete (braiddb, rocksdb)", 110, 60);
  auto add = group.add_options();
  add("writes_per_range_tombstone", Value(&ranges->writes_between, ranges->writes_between),
      "writes between two deleted ranges; 0: no ranges are deleted");
  add("writes_before_delete_range", Value(&ranges->writes_before, ranges->writes_before),
      "writes before the first deleted range");
  add("range_tombstone_width", Value<int64_t>(&typed->range_tombstone_width, 100), "numbers of keys in each range");
  add("max_num_range_tombstones", Value(&ranges->most, ranges->most), "maximum number of deleted ranges per thread");
  add("expand_range_tombstones", Switch(&ranges->expand), "delete key by key instead");
  all->add(group);
}

void AddEngineFlags(po::options_description* all, Flags* flags, Typed* typed) {
  po::options_description group("What to measure", 110, 60);
  auto add = group.add_options();
  add("engine", Value<std::string>(&typed->engine, "braiddb"),
      "an engine, such as braiddb, rocksdb or lmdb, and after a colon its argument; --engines=help lists all");
  add("engines", Value<std::string>(&typed->engines, ""),
      "compare several engines, comma-separated: runs all benchmarks with each, then prints medians and ratios; 'help' lists "
      "them");
  add("rounds", Value<int64_t>(&typed->rounds, -1),
      "number of databases that each engine creates and measures, for the medians; -1: 3 with several engines, 1 with one");
  add("huge_pages", Value<std::string>(&typed->huge_pages, "own"),
      "own: each engine uses the pages that it requests; off: no engine gets huge pages, for files or DRAM, except on DAX");
  add("rocksdb_options", Value<std::string>(&flags->rocksdb_options, ""),
      "further RocksDB options, in the form of its options files, separated by semicolons");
  all->add(group);
}

void AddMixFlags(po::options_description* all, Flags* flags, Typed* typed) {
  MixParameters* mix = &flags->mix;
  SineParameters* sine = &flags->sine;
  po::options_description group("mixgraph, and sines", 110, 60);
  auto add = group.add_options();
  add("mix_get_ratio", Value(&mix->get_ratio, mix->get_ratio), "share of gets");
  add("mix_put_ratio", Value(&mix->put_ratio, mix->put_ratio), "… of puts");
  add("mix_seek_ratio", Value(&mix->seek_ratio, mix->seek_ratio), "… of seeks");
  add("mix_max_scan_len", Value(&mix->max_scan_len, mix->max_scan_len), "steps after a seek; longer ones modulo this");
  add("mix_max_value_size", Value(&mix->max_value_size, mix->max_value_size), "bytes, at most 1 MiB; larger ones modulo this");
  add("key_dist_a", Value(&mix->key_dist_a, mix->key_dist_a),
      "choice of the key in a range or in all keys: by a*x^b; 0: uniform");
  add("key_dist_b", Value(&mix->key_dist_b, mix->key_dist_b), "");
  add("keyrange_num", Value(&mix->keyrange_num, mix->keyrange_num), "number of key ranges");
  add("keyrange_dist_a", Value(&mix->keyrange_dist_a, mix->keyrange_dist_a), "choice of the range: by a*e^(b*x) + c*e^(d*x)");
  add("keyrange_dist_b", Value(&mix->keyrange_dist_b, mix->keyrange_dist_b), "");
  add("keyrange_dist_c", Value(&mix->keyrange_dist_c, mix->keyrange_dist_c), "");
  add("keyrange_dist_d", Value(&mix->keyrange_dist_d, mix->keyrange_dist_d), "");
  add("value_theta", Value(&mix->value_theta, mix->value_theta), "value sizes: generalized Pareto distribution");
  add("value_k", Value(&mix->value_k, mix->value_k), "");
  add("value_sigma", Value(&mix->value_sigma, mix->value_sigma), "");
  add("iter_theta", Value(&mix->iter_theta, mix->iter_theta), "steps after a seek: generalized Pareto distribution");
  add("iter_k", Value(&mix->iter_k, mix->iter_k), "");
  add("iter_sigma", Value(&mix->iter_sigma, mix->iter_sigma), "");
  add("sine_mix_rate", Switch(&sine->active), "mixgraph: operations per second of all threads: a*sin(b*seconds + c) + d");
  add("sine_mix_rate_interval_milliseconds", Value<int64_t>(&typed->sine_interval_ms, 10000), "the rate is computed again");
  add("sine_mix_rate_noise", Value(&sine->noise, sine->noise),
      "0 to 1: random change of the rate, as a share of a, up to a half");
  add("sine_write_rate", Switch(&flags->write_sine.active),
      "replaces --benchmark_write_rate_limit by a sine, in bytes per second");
  add("sine_write_rate_interval_milliseconds", Value<int64_t>(&typed->write_sine_interval_ms, 10000),
      "the rate is computed again");
  add("sine_a", Value(&sine->a, sine->a), "");
  add("sine_b", Value(&sine->b, sine->b), "");
  add("sine_c", Value(&sine->c, sine->c), "");
  add("sine_d", Value(&sine->d, sine->d), "");
  all->add(group);
}

void AddReportFlags(po::options_description* all, Flags* flags, Typed* typed) {
  po::options_description group("What to print", 110, 60);
  auto add = group.add_options();
  add("confidence_interval_only", Switch(&flags->confidence_interval_only),
      "name[X3]: print the confidence interval instead of the average");
  add("histogram", Switch(&flags->histogram), "print latency histograms; costs a clock read per operation");
  add("statistics", Switch(&flags->statistics), "print the database's counters at the end");
  add("perf_level", Value<int64_t>(&typed->perf_level, 1),
      "print what each operation costs in which level: 1: nothing, 2: counts, 3 and above: and times; slows operations down");
  add("settle", Switch(&flags->settle),
      "after each benchmark that writes, wait for its merges, and print the rate including them");
  add("stats_interval", Value<int64_t>(&flags->stats_interval, 0), "print a line per thread after each N operations");
  add("stats_interval_seconds", Value<int64_t>(&flags->stats_interval_seconds, 0), "print a line per thread every N seconds");
  add("report_file", Value<std::string>(&flags->report_file, "report.csv"), "file for --report_interval_seconds");
  add("report_interval_seconds", Value<int64_t>(&flags->report_interval_seconds, 0),
      "CSV line secs_elapsed,interval_qps, the latter the operations of the interval; 0: none");
  add("json", Value<std::string>(&flags->json, ""), "file for all results, with machine, versions and flags");
  all->add(group);
}

void AddDatabaseFlags(po::options_description* all, Flags* flags, Typed* typed) {
  const Options defaults;
  po::options_description group("The database (sizes in bytes; include/braiddb/options.h explains the trade-offs)", 110, 60);
  auto add = group.add_options();
  add("l1", Value<std::string>(&typed->l1, "braided_skiplist"), ("the last level: " + LevelKindNames(" or ")).c_str());
  add("nv_leaf_size", Value<int64_t>(&typed->nv_leaf_size, defaults.nv_leaf_size), "leaves of an nv_tree: 512 to 4096");
  add("l1_index_size", Value<int64_t>(&typed->l1_index_size, static_cast<int64_t>(defaults.l1_index_size)),
      "DRAM for the index over tall nodes of a braided_skiplist; 0: none");
  add("dram_budget", Value<int64_t>(&typed->dram_budget, static_cast<int64_t>(defaults.dram_budget)),
      "DRAM limit for the whole database; sets the sizes below and the cache's; 0: no limit");
  add("lookup_cache_size", Value<int64_t>(&typed->lookup_cache_size, static_cast<int64_t>(defaults.lookup_cache_size)),
      "DRAM for addresses of newest versions, about nine bytes per key; 0: none");
  add("bloom_bits", Value<int64_t>(&typed->bloom_bits, defaults.filter_bits_per_key),
      "bits of DRAM per key for the filter that answers gets of missing keys; 0: no filter");
  add("max_space_amplification", Value<double>(&typed->max_space_amplification, defaults.max_space_amplification),
      "relocate live entries of sparse segments above this ratio; 0: never");
  add("space_slack", Value<int64_t>(&typed->space_slack, static_cast<int64_t>(defaults.space_slack)),
      "additional bytes before relocation starts");
  add("kept_free_space", Value<int64_t>(&typed->kept_free_space, static_cast<int64_t>(defaults.kept_free_space)),
      "bytes of free segments that keep their blocks in the file system");
  add("bound_space", Switch(&flags->options.bound_space), "writers wait if relocation cannot keep up");
  add("regions", Value<int64_t>(&typed->regions, defaults.regions), "pools of persistent memory; 0: one per NUMA node");
  add("region_nodes", Value<std::string>(&typed->region_nodes, ""),
      "comma-separated, a NUMA node for each region; -1: the node of its device");
  add("region_paths", Value<std::string>(&typed->region_paths, ""), "comma-separated, a directory for each region");
  add("max_region_size", Value<int64_t>(&typed->max_region_size, 0),
      "maximum size of a region; 0: the capacity of its file system");
  add("initial_region_size", Value<int64_t>(&typed->initial_region_size, 0), "bytes that each region has from the start");
  add("segment_size", Value<int64_t>(&typed->segment_size, static_cast<int64_t>(defaults.segment_size)), "unit of log space");
  add("persist_mode", Value<std::string>(&typed->persist_mode, "auto"), "auto, cache-line, eadr, page or emulated");
  add("emulate_write_latency_ns", Value<int64_t>(&typed->write_latency_ns, 0),
      "injected per flushed line, added at the fence, line after line; entries are then flushed, never streamed");
  add("emulate_read_latency_ns", Value<int64_t>(&typed->read_latency_ns, 0),
      "injected per node or leaf that a get visits in persistent memory; not in iterators, memtables and merges");
  add("emulate_remote_latency_ns", Value<int64_t>(&typed->remote_latency_ns, 0), "injected in addition in another region");
  add("index_unified_logging", Value<bool>(&flags->options.index_unified_logging, true),
      "log entries become nodes of L0 in place; off: flushes copy them");
  add("list_kind", Value<std::string>(&typed->list_kind, "braided"),
      "upper layers: braided links entries of one region, oblivious links entries of all regions");
  add("memtable", Value<std::string>(&typed->memtable, "hash"), "hash or skiplist");
  add("memtable_size", Value<int64_t>(&typed->memtable_size, static_cast<int64_t>(defaults.memtable_size)),
      "log bytes per memtable");
  add("write_buffer_size", Value<int64_t>(&typed->write_buffer_size, 0), "RocksDB's name for memtable_size");
  add("max_immutable_memtables", Value<int64_t>(&typed->max_immutable_memtables, defaults.max_immutable_memtables),
      "writers are slowed down above this number");
  add("checkpoint_tables", Value<int64_t>(&typed->checkpoint_tables, defaults.checkpoint_tables),
      "flushed tables per checkpoint");
  add("compaction_threads", Value<int64_t>(&typed->compaction_threads, defaults.compaction_threads), "0: half of the CPUs");
  add("recovery_threads", Value<int64_t>(&typed->recovery_threads, defaults.recovery_threads), "0: all CPUs");
  add("l0_compaction_trigger", Value<int64_t>(&typed->l0_compaction_trigger, defaults.l0_compaction_trigger), "L0 tables");
  add("l0_slowdown_writes_trigger", Value<int64_t>(&typed->l0_slowdown_writes_trigger, defaults.l0_slowdown_writes_trigger),
      "number of L0 tables above which writers are slowed down; 0: derived from the size of the last level");
  add("disable_auto_compactions", Switch(&flags->options.disable_auto_compaction), "flush and compact only on request");
  add("count_pm_writes", Switch(&flags->options.count_pm_writes),
      "count cache lines, XPLines and fences, for --json; costs time, so do not use it in timed runs");
  all->add(group);
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

template <class T>
void Take(const char* name, int64_t typed, int64_t least, int64_t most, T* target) {
  if (typed < least || typed > most) {
    throw std::invalid_argument("--" + std::string(name) + "=" + std::to_string(typed) + " is not between " +
                                std::to_string(least) + " and " + std::to_string(most));
  }
  *target = static_cast<T>(typed);
}

std::vector<int> ParseNodes(const std::string& list) {
  std::vector<int> nodes;
  for (const std::string& part : Split(list)) {
    size_t end = 0;
    try {
      nodes.push_back(std::stoi(part, &end));
    } catch (const std::exception&) {
      end = 0;
    }
    if (end != part.size()) throw std::invalid_argument("--region_nodes: '" + part + "' is not a NUMA node number");
  }
  return nodes;
}

PersistMode ParsePersistMode(const std::string& name) {
  std::string names;
  for (const PersistModeName& known : PersistModeNames()) {
    if (name == known.name) return known.mode;
    names.append(names.empty() ? "" : ", ").append(known.name);
  }
  throw std::invalid_argument("--persist_mode=" + name + " is none of " + names);
}

MemtableKind ParseMemtable(const std::string& name) {
  if (const MemtableType* const type = FindMemtableType(name); type != nullptr) return type->kind;
  throw std::invalid_argument("--memtable=" + name + " is neither skiplist nor hash");
}

ListKind ParseListKind(const std::string& name) {
  for (const ListKindName& known : ListKindNames()) {
    if (name == known.name) return known.kind;
  }
  throw std::invalid_argument("--list_kind=" + name + " is neither braided nor oblivious");
}

L1Kind ParseL1(const std::string& name) {
  if (const LevelKind* const kind = FindLevelKind(name); kind != nullptr) return kind->id;
  throw std::invalid_argument("--l1=" + name + " is neither " + LevelKindNames(" nor "));
}

void Require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void TakeMix(const Typed& typed, Flags* flags) {
  const MixParameters& mix = flags->mix;
  Require(mix.get_ratio >= 0 && mix.put_ratio >= 0 && mix.seek_ratio >= 0, "--mix_get_ratio, put and seek must not be negative");
  Require(mix.get_ratio + mix.put_ratio + mix.seek_ratio > 0, "one of --mix_get_ratio, put and seek must be more than 0");
  Require(std::isfinite(mix.get_ratio + mix.put_ratio + mix.seek_ratio), "--mix_get_ratio, put and seek must be finite");
  Take("mix_max_scan_len", mix.max_scan_len, 1, INT32_MAX, &flags->mix.max_scan_len);
  Take("mix_max_value_size", mix.max_value_size, 1, INT32_MAX, &flags->mix.max_value_size);
  Take("keyrange_num", mix.keyrange_num, 1, flags->num, &flags->mix.keyrange_num);
  Require(mix.key_dist_a >= 0, "--key_dist_a must not be negative");
  Take("sine_mix_rate_interval_milliseconds", typed.sine_interval_ms, 1, INT32_MAX, &flags->sine.interval_ms);
  Take("sine_write_rate_interval_milliseconds", typed.write_sine_interval_ms, 1, INT32_MAX, &flags->write_sine.interval_ms);
  flags->write_sine.a = flags->sine.a;
  flags->write_sine.b = flags->sine.b;
  flags->write_sine.c = flags->sine.c;
  flags->write_sine.d = flags->sine.d;
  Require(flags->sine.noise >= 0 && flags->sine.noise <= 1, "--sine_mix_rate_noise is not between 0 and 1");
}

void TakeRocksDbs(const Typed& typed, Flags* flags) {
  Take("merge_keys", typed.merge_keys < 0 ? flags->num : typed.merge_keys, 1, INT64_MAX, &flags->merge_keys);
  Take("mergereadpercent", typed.mergereadpercent, 0, 100, &flags->mergereadpercent);
  Take("bgwriter_num", typed.bgwriter_num, 0, INT64_MAX, &flags->bgwriter_num);
  Take("max_scan_distance", typed.max_scan_distance, 0, INT64_MAX, &flags->max_scan_distance);
  Take("seek_nexts_to_delete", typed.seek_nexts_to_delete, 0, INT64_MAX, &flags->seek_nexts_to_delete);
  RangeDeletions* ranges = &flags->range_deletions;
  Take("range_tombstone_width", typed.range_tombstone_width, 1, INT32_MAX, &ranges->width);
  Take("writes_per_range_tombstone", ranges->writes_between, 0, INT64_MAX, &ranges->writes_between);
  Take("writes_before_delete_range", ranges->writes_before, 0, INT64_MAX, &ranges->writes_before);
  Take("max_num_range_tombstones", ranges->most, 0, INT64_MAX, &ranges->most);
  Require(!flags->seek_missing_prefix || flags->key_size > 8, "--seek_missing_prefix needs a --key_size above 8");
  Require(!flags->readonly || flags->use_existing_db, "--readonly needs --use_existing_db");
}

// `has_num`: --num is given.
void TakeKeys(const Typed& typed, bool has_num, Flags* flags) {
  Take("key_size", typed.key_size, 1, static_cast<int64_t>(kMaxKeySize) - 1, &flags->key_size);
  Take("num", flags->num, 1, INT64_MAX, &flags->num);
  if (typed.key_shape.empty() && typed.key_file.empty()) return;
  Require(typed.key_shape.empty() || typed.key_file.empty(), "--key_shape and --key_file exclude each other");
  const auto keys = typed.key_file.empty() ? ShapedKeys::OfShape(typed.key_shape) : ShapedKeys::OfFile(typed.key_file);
  if (keys->is_file() && !has_num) flags->num = static_cast<int64_t>(keys->count());
  if (static_cast<uint64_t>(flags->num) > keys->count()) {
    throw std::invalid_argument("--num=" + std::to_string(flags->num) + " is more than the " + std::to_string(keys->count()) +
                                " keys that there are");
  }
  const RangeDeletions& ranges = flags->range_deletions;
  Require(keys->in_order() || typed.max_scan_distance == 0, "--max_scan_distance needs keys in the order of their numbers");
  Require(keys->in_order() || ranges.writes_between == 0 || ranges.expand,
          "--writes_per_range_tombstone needs keys in the order of their numbers");
  Require(typed.num_column_families <= 1, "--num_column_families cannot tell the number of a key of --key_shape or --key_file");
  Require(!flags->seek_missing_prefix, "--seek_missing_prefix excludes --key_shape and --key_file");
  flags->key_size = keys->AverageSize(static_cast<uint64_t>(flags->num));
  flags->shaped_keys = keys;
}

void TakeWorkload(const Typed& typed, Flags* flags) {
  flags->benchmarks = Split(typed.benchmarks);
  flags->engines = Split(typed.engines.empty() ? typed.engine : typed.engines);
  Require(!flags->engines.empty(), "--engines names no engine");
  const int64_t rounds = flags->engines.size() > 1 ? 3 : 1;
  Take("rounds", typed.rounds == -1 ? rounds : typed.rounds, 1, 1000, &flags->rounds);
  Take("threads", typed.threads, 1, 4000, &flags->threads);
  Take("reader_processes", typed.reader_processes, 0, 1000, &flags->reader_processes);
  Require(flags->reader_processes == 0 || !flags->readonly, "--reader_processes excludes --readonly");
  Require(flags->reader_processes == 0 || typed.seek_nexts_to_delete == 0, "--reader_processes excludes --seek_nexts_to_delete");
  Take("perf_level", typed.perf_level, 0, 5, &flags->perf_level);
  Take("value_size", typed.value_size, 0, static_cast<int64_t>(kMaxValueSize), &flags->value_size);
  Take("batch_size", typed.batch_size, 1, INT32_MAX, &flags->batch_size);
  Take("num_column_families", typed.num_column_families, 1, int64_t{kMaxColumnFamilies} - 3, &flags->num_column_families);
  Take("seek_nexts", typed.seek_nexts, 0, INT64_MAX, &flags->seek_nexts);
  Take("multiread_stride", typed.multiread_stride, 0, INT64_MAX, &flags->multiread_stride);
  Require(typed.ycsb_popularity == "scrambled" || typed.ycsb_popularity == "records",
          "--ycsb_popularity is neither scrambled nor records");
  flags->ycsb_scrambled = typed.ycsb_popularity == "scrambled";
  Require(typed.huge_pages == "own" || typed.huge_pages == "off", "--huge_pages is neither own nor off");
  flags->no_huge_pages = typed.huge_pages == "off";
  Require(!flags->verify || flags->merge_operator.empty(), "--verify cannot tell what --merge_operator makes of values");
  if (!(typed.zipf >= 0 && typed.zipf <= 10)) throw std::invalid_argument("--zipf is not between 0 and 10");
  flags->zipf = typed.zipf;
  Take("readwritepercent", typed.readwritepercent, 0, 100, &flags->readwritepercent);
  TakeRocksDbs(typed, flags);
  Take("duration", flags->duration, 0, INT32_MAX, &flags->duration);
  Take("stats_interval", flags->stats_interval, 0, INT64_MAX, &flags->stats_interval);
  Take("stats_interval_seconds", flags->stats_interval_seconds, 0, INT32_MAX, &flags->stats_interval_seconds);
  Take("report_interval_seconds", flags->report_interval_seconds, 0, INT32_MAX, &flags->report_interval_seconds);
  Take("benchmark_write_rate_limit", flags->benchmark_write_rate_limit, 0, INT64_MAX, &flags->benchmark_write_rate_limit);
  Take("ycsb_target", flags->ycsb_target, 0, INT64_MAX, &flags->ycsb_target);
  Take("benchmark_read_rate_limit", flags->benchmark_read_rate_limit, 0, INT64_MAX, &flags->benchmark_read_rate_limit);
  TakeMix(typed, flags);
  flags->seed = static_cast<uint64_t>(typed.seed);
  if (flags->seed == 0) flags->seed = std::random_device()() | 1u;
}

// DB::Open checks the ranges of options, and its message is shown.
void TakeOptions(const Typed& typed, Options* options) {
  options->l1 = ParseL1(typed.l1);
  options->list_kind = ParseListKind(typed.list_kind);
  options->memtable = ParseMemtable(typed.memtable);
  Take("nv_leaf_size", typed.nv_leaf_size, 0, UINT32_MAX, &options->nv_leaf_size);
  Take("bloom_bits", typed.bloom_bits, 0, UINT32_MAX, &options->filter_bits_per_key);
  Take("l1_index_size", typed.l1_index_size, 0, INT64_MAX, &options->l1_index_size);
  Take("dram_budget", typed.dram_budget, 0, INT64_MAX, &options->dram_budget);
  Take("lookup_cache_size", typed.lookup_cache_size, 0, INT64_MAX, &options->lookup_cache_size);
  options->max_space_amplification = typed.max_space_amplification;
  Take("space_slack", typed.space_slack, 0, INT64_MAX, &options->space_slack);
  Take("kept_free_space", typed.kept_free_space, 0, INT64_MAX, &options->kept_free_space);
  Take("regions", typed.regions, 0, UINT32_MAX, &options->regions);
  options->region_paths = Split(typed.region_paths);
  options->region_nodes = ParseNodes(typed.region_nodes);
  Take("max_region_size", typed.max_region_size, 0, INT64_MAX, &options->max_region_size);
  Take("initial_region_size", typed.initial_region_size, 0, INT64_MAX, &options->initial_region_size);
  Take("segment_size", typed.segment_size, 0, INT64_MAX, &options->segment_size);
  options->persist_mode = ParsePersistMode(typed.persist_mode);
  Take("emulate_write_latency_ns", typed.write_latency_ns, 0, UINT32_MAX, &options->emulation.write_latency_ns);
  Take("emulate_read_latency_ns", typed.read_latency_ns, 0, UINT32_MAX, &options->emulation.read_latency_ns);
  Take("emulate_remote_latency_ns", typed.remote_latency_ns, 0, UINT32_MAX, &options->emulation.remote_latency_ns);
  Take("memtable_size", typed.memtable_size, 0, INT64_MAX, &options->memtable_size);
  if (typed.write_buffer_size != 0) Take("write_buffer_size", typed.write_buffer_size, 0, INT64_MAX, &options->memtable_size);
  Take("max_immutable_memtables", typed.max_immutable_memtables, 0, UINT32_MAX, &options->max_immutable_memtables);
  Take("checkpoint_tables", typed.checkpoint_tables, 0, UINT32_MAX, &options->checkpoint_tables);
  Take("compaction_threads", typed.compaction_threads, 0, UINT32_MAX, &options->compaction_threads);
  Take("recovery_threads", typed.recovery_threads, 0, UINT32_MAX, &options->recovery_threads);
  Take("l0_compaction_trigger", typed.l0_compaction_trigger, 0, UINT32_MAX, &options->l0_compaction_trigger);
  Take("l0_slowdown_writes_trigger", typed.l0_slowdown_writes_trigger, 0, UINT32_MAX, &options->l0_slowdown_writes_trigger);
}

std::string ToText(const boost::any& value) {
  if (const auto* text = boost::any_cast<std::string>(&value)) return *text;
  if (const auto* number = boost::any_cast<int64_t>(&value)) return std::to_string(*number);
  if (const auto* flag = boost::any_cast<bool>(&value)) return *flag ? "true" : "false";
  std::ostringstream text;
  if (const auto* number = boost::any_cast<double>(&value)) text << *number;
  return text.str();
}

void PrintPresets() {
  for (const Preset& preset : Presets()) {
    std::cout << preset.name << ": " << preset.what << "\n   ";
    for (const std::string& argument : preset.arguments) std::cout << " " << argument;
    std::cout << "\n";
  }
  std::cout << std::flush;
}

// The first stored value wins: the command line before the preset, the preset before defaults.
void StorePreset(const po::options_description& known, po::variables_map* values) {
  if (values->count("preset") == 0) return;
  const auto name = (*values)["preset"].as<std::string>();
  const Preset* preset = FindPreset(name);
  if (preset == nullptr) throw std::invalid_argument("--preset=" + name + " is none of them; --preset=help lists them");
  const auto style = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent;
  po::store(po::command_line_parser(preset->arguments).options(known).style(style).run(), *values);
}

void NoteWhatIsForOthers(const Flags& flags) {
  const bool rocksdb = std::any_of(flags.engines.begin(), flags.engines.end(),
                                   [](const std::string& engine) { return engine.starts_with("rocksdb"); });
  if (flags.disable_wal && (!rocksdb || flags.engines.size() > 1))
    std::fprintf(stderr, "note: --disable_wal has no effect but on rocksdb: braiddb's log is the data\n");
}

// Recognizes gflags' other names for help too.
bool AsksForHelp(const std::vector<po::option>& options) {
  return std::any_of(options.begin(), options.end(),
                     [](const po::option& option) { return option.string_key.starts_with("help"); });
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  Typed typed;
  po::options_description known("usage: db_bench [--flag=value ...]");
  known.add_options()("help", "print this and end (also --helpfull, --helpshort)")("version", "print the version and end");
  AddWorkloadFlags(&known, flags, &typed);
  AddRangeFlags(&known, flags, &typed);
  AddEngineFlags(&known, flags, &typed);
  AddMixFlags(&known, flags, &typed);
  AddReportFlags(&known, flags, &typed);
  AddDatabaseFlags(&known, flags, &typed);
  try {
    const auto style = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
                       po::command_line_style::long_allow_next;
    const std::vector<std::string> arguments = NormalizeArguments({argv + 1, argv + argc}, known);
    po::parsed_options parsed = po::command_line_parser(arguments).options(known).style(style).allow_unregistered().run();
    if (AsksForHelp(parsed.options)) {
      std::cout << known << std::flush;
      return 0;
    }
    JudgeUnknown(parsed.options);
    KeepLast(&parsed.options);
    po::variables_map values;
    po::store(parsed, values);
    if (values.count("version") != 0) {
      std::cout << "db_bench version " BRAIDDB_VERSION << std::endl;
      return 0;
    }
    if (values.count("preset") != 0 && values["preset"].as<std::string>() == "help") {
      PrintPresets();
      return 0;
    }
    StorePreset(known, &values);
    po::notify(values);
    flags->command_line.assign(argv, argv + argc);
    for (const auto& [name, value] : values) flags->values[name] = ToText(value.value());
    TakeKeys(typed, !values["num"].defaulted(), flags);
    TakeWorkload(typed, flags);
    flags->values["num"] = std::to_string(flags->num);            // also of a file of keys
    flags->values["key_size"] = std::to_string(flags->key_size);  // also the average of shaped keys
    flags->values["seed"] = std::to_string(flags->seed);          // also a seed that was drawn
    flags->values["rounds"] = std::to_string(flags->rounds);
    TakeOptions(typed, &flags->options);
    NoteWhatIsForOthers(*flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "db_bench: %s\n", error.what());
    return 1;
  }
  return std::nullopt;
}

}  // namespace braiddb::bench
