// Options of a database, of reads and of writes.
//
// Each field says what it sets, its unit, its default, its range, and what a larger and a smaller value cost. DB::Open returns
// InvalidArgument for a value outside its range, and NotSupported for an enum value that this version does not know. Where an
// option exists in RocksDB, the field has RocksDB's name or its comment says so. "Stored" fields are fixed when the database is
// created.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/cache_limit.h"
#include "braiddb/comparator.h"
#include "braiddb/merge_operator.h"
#include "braiddb/slice.h"
#include "braiddb/slice_transform.h"

#pragma GCC visibility push(default)
namespace braiddb {

class CompactionFilter;
class CompactionFilterFactory;
class EventListener;
class Snapshot;

// The structure of the last level (L1). Stored: chosen when a database or a column family is created.
//
//   kBraidedSkipList   persistent skiplist over the log entries in place (ListDB, OSDI '22); a merge writes pointers only
//   kNvTree            B+-tree of entry addresses with unsorted leaves (NV-Tree, FAST '15); fewer misses per lookup and scan,
//                      more flushed cache lines per merged entry
//   kSortedRuns        copies in key order, in runs with disjoint key ranges, as in LSM trees; a merge rewrites each run that it
//                      touches, one at a time, and needs space for that run; scans read memory sequentially
//   kHybrid            persistent hash index for point reads, and an index in DRAM for scans (HiKV, ATC '17); gets are fast right
//                      after an open; with l1_index_size and filter_bits_per_key 0 the first scan builds the index for scans
//   kLbTree            LB+-Tree: small leaves that change in place, few flushed lines, inner nodes in DRAM (VLDB '20); as kNvTree
//                      it merges without a journal; it writes less and takes less DRAM, its scans sort leaf by leaf
enum class L1Kind : uint8_t {
  kBraidedSkipList = 0,
  kNvTree = 1,
  kSortedRuns = 2,
  kHybrid = 3,
  kLbTree = 4,
};

// A kind of last level, and its name in options files, environment variables and programs, for example "nv_tree".
struct L1KindName {
  L1Kind kind;
  std::string_view name;
};
// Returns the kinds that this version has, in the order of their numbers. Thread-safe.
std::vector<L1KindName> L1KindNames();

// Which entries the upper layers of L0 and of a braided skiplist link. Stored: chosen when a database is created.
// From ListDB (OSDI '22), which calls a skiplist NUMA-oblivious if its upper layers cross NUMA nodes.
enum class ListKind : uint8_t {
  kBraided = 0,    // entries of one region: a search stays in its thread's region down to the bottom layer
  kOblivious = 1,  // entries of all n regions: (n - 1) / n of the nodes that a search visits are remote
};

// The DRAM index over the newest entries.
enum class MemtableKind : uint8_t {
  kSkipList = 0,  // always sorted
  kHash = 1,      // a hash table; sorted when an iterator or the flush needs key order
};

// How stores become durable.
enum class PersistMode : uint8_t {
  kAuto = 0,       // chosen at open from the file system and the CPU
  kCacheLine = 1,  // CLWB and SFENCE: persistent memory mapped with DAX
  kEadr = 2,       // SFENCE only: the CPU caches are inside the persistence domain
  kPage = 3,       // msync: an ordinary file system on any disk
  kEmulated = 4,   // CLWB and SFENCE on tmpfs: DRAM stands in for persistent memory
};

// Extra latency in PersistMode::kEmulated, to study slower memory. With 0 nothing is injected, at no cost.
struct EmulationOptions {
  // Added to each fence, for each cache line flushed before it; nanoseconds. Default: 0.
  uint32_t write_latency_ns = 0;
  // Added to each node or leaf that a get visits; nanoseconds. Iterators, memtables and merges are not slowed. Default: 0.
  uint32_t read_latency_ns = 0;
  // Added on top if that node is in a region on another NUMA node than the reader; nanoseconds. Default: 0.
  uint32_t remote_latency_ns = 0;
  // Flush with CLFLUSH, which evicts the line from the CPU's cache, as CPUs without CLWB do. Default: false.
  bool flush_invalidates = false;
};

struct Options {
  // Create the database if it does not exist. Default: false, as in RocksDB.
  bool create_if_missing = false;
  // DB::Open with column families creates the families that do not exist. Default: false.
  bool create_missing_column_families = false;
  // Fail if the database exists. Default: false.
  bool error_if_exists = false;
  // The order of keys. Stored by name: an open with a comparator of another name fails. Default: unsigned bytes.
  // A comparator of the user's own has no lookup cache and no filter, and its memtables are skiplists.
  const Comparator* comparator = BytewiseComparator();
  // The prefix of each key, for ReadOptions::prefix_same_as_start. Not stored: each open may choose another. Default: null, none.
  std::shared_ptr<const SliceTransform> prefix_extractor;
  // What DB::Merge does. Not stored: each open may choose another. With null, DB::Merge returns NotSupported, and a read of a key
  // that has operands returns InvalidArgument; the operands stay. Default: null.
  std::shared_ptr<const MergeOperator> merge_operator;
  // The structure of the last level. Stored: an open with another kind is InvalidArgument. Default: kBraidedSkipList.
  L1Kind l1 = L1Kind::kBraidedSkipList;
  // Size of an NV-Tree leaf; bytes. Stored: an open uses the stored size. Default: 4096. Range: 512, 1024, 2048 or 4096.
  // Larger: fewer leaves, less DRAM for inner nodes. Smaller: shorter searches within a leaf.
  uint32_t nv_leaf_size = 4096;

  // ---- Regions and persistent memory. A region is one pool of persistent memory on one NUMA node.

  // Number of regions. Stored. Default: 0. Range: 0 to 16; 0 is the stored number, or for a new database one per NUMA node.
  uint32_t regions = 0;
  // Which entries upper layers link. Stored: an open uses the stored kind, which GetOptions() returns. With one region both kinds
  // are the same. kOblivious exists for measuring what braiding gains. Default: kBraided.
  ListKind list_kind = ListKind::kBraided;
  // The directory of each region, for example one per DAX mount. Default: empty. Empty: inside the database's directory for a new
  // database, the stored directories for an existing one. For an existing database the paths must be its own; a closed database's
  // regions may be moved. InvalidArgument: a directory holds files of another database, or of its unfinished creation.
  //
  // A path may also be a devdax device, e.g. /dev/dax0.0:
  //   size       the region takes the whole device and never grows; max_region_size does not apply
  //   creation   clears the device, up to one write of all its bytes; InvalidArgument if its first 4 KiB are not zero
  //   removal    DB::Destroy zeroes the first 4 KiB
  //   directory  the database directory holds a link to the device
  //   reading    OpenForReadOnly and CheckDatabase copy the region's data to DRAM
  std::vector<std::string> region_paths;
  // For each region, the NUMA node (as the system numbers them) whose threads write to the region. Any open may choose others.
  // Default: empty, which is -1 for all regions. -1: the node of the device below the region, looked up by each open. Name a node
  // if the system reports none, or a wrong one. Property "braiddb.region-nodes" shows the result.
  // For tmpfs on a machine with several nodes, a named node also provides the memory that the region takes from this open on.
  // With -1, memory stays where it is, and the regions of a new database are assigned to the nodes in rotation.
  // InvalidArgument: the number of nodes is not the number of regions, or the machine has no such node.
  std::vector<int> region_nodes;
  // Address space reserved for each region, and so the most that it can grow to; bytes. Default: 0. Range: at least 32 MiB, or 0
  // for the capacity of the file system.
  uint64_t max_region_size = 0;
  // Space that each region has at least, from the open on; bytes, rounded up to 2 MiB. Default: 0. Range: up to max_region_size.
  // Larger: writes do not wait for the region to grow. Smaller: less unused space, as this space is never given back.
  // NoSpace if the file system has too little; a database created by that open exists then, and is empty.
  uint64_t initial_region_size = 0;
  // Log space is taken from a region in segments of this size; bytes. Young regions take smaller segments. Default: 8 MiB.
  // Range: 256 KiB to 1 GiB. Larger: fewer allocations. Smaller: space is reclaimed in smaller pieces.
  uint64_t segment_size = 8ull << 20;
  // How stores become durable. The LOG names the mode that kAuto chose. Default: kAuto.
  PersistMode persist_mode = PersistMode::kAuto;
  // Latency to inject in PersistMode::kEmulated. Default: none.
  EmulationOptions emulation;

  // ---- DRAM

  // The DRAM that the database may take; bytes. Default: 0. Range: 64 MiB, plus 20 MiB for each region after the first, to 1 PiB;
  // 0 is no limit, and the sizes below apply. Larger: more lookup cache hits. Smaller: more merges for the same writes.
  //   covered               memtables, indexes of L0 and of the last level, lookup cache, filter, and the work on them
  //   not covered           persistent memory that is emulated in DRAM, iterators, batches (one batch may enlarge a memtable),
  //                         merges of sorted runs, the ordered index of kHybrid, an L0 that grows by disable_auto_compaction
  //   become upper limits   memtable_max_entries, max_immutable_memtables, l0_compaction_trigger, l0_slowdown_writes_trigger,
  //                         l1_index_size
  //   lookup cache          takes the rest; the inner nodes of a growing NV-Tree take from it; none with lookup_cache_size 0
  //   filter                is dropped when its share has no room for all keys
  // GetOptions() returns the sizes that were chosen; property "braiddb.dram-bytes" shows what is in use.
  uint64_t dram_budget = 0;

  // ---- Memtable, flush, checkpoint

  // The kind of memtable. Not stored. Default: kHash. kHash: fewer cache misses per put and get. kSkipList: an iterator need not
  // sort the entries written since the previous iterator. A comparator of the user's own always has kSkipList.
  MemtableKind memtable = MemtableKind::kHash;
  // A memtable is rotated when its log entries reach this size; bytes. RocksDB: write_buffer_size. Default: 16 MiB.
  // Range: at least 16 KiB. Larger: fewer tables to read and merge. Smaller: shorter recovery.
  uint64_t memtable_size = 16ull << 20;
  // A memtable is also rotated when it holds this many entries. A full memtable takes 26 (kSkipList)
  // or 75 (kHash) bytes of DRAM per entry. Default: 65,536. Range: at least 1024. Larger: fewer tables. Smaller: less DRAM, and
  // faster inserts while the memtable fits the CPU's L2 cache.
  uint64_t memtable_max_entries = 65536;
  // Writers are slowed down smoothly when more than this many memtables wait for their flush. They stop beyond 2n + 2 memtables;
  // a batch of an eighth of a memtable or more stops beyond n. Default: 4. Range: at least 1 (0 is taken as 1).
  // Larger: longer bursts at full speed. Smaller: less DRAM and shorter recovery.
  uint32_t max_immutable_memtables = 4;
  // Lazy group checkpoint (ListDB): after this many flushed tables, the pointers of L0 are made durable and the log boundary
  // moves. Default: 4. Range: at least 1 (0 is taken as 1). Larger: fewer flushed cache lines. Smaller: less to replay after
  // a crash.
  uint32_t checkpoint_tables = 4;

  // Log entries become the nodes of L0 in place (index-unified logging, ListDB). Stored: an open uses the stored value, which
  // GetOptions() returns. Default: true. false: a flush copies the entries of its memtable to new segments, makes the copies
  // durable and releases the log. Every entry is written twice, as with a usual write-ahead log, and checkpoint_tables does not
  // apply. false exists for measuring what index-unified logging gains.
  bool index_unified_logging = true;

  // ---- Background work

  // Writers are slowed down smoothly when more than this many L0 tables wait for their merge. The delay per entry grows with the
  // number of tables, and is paid in sleeps of 0.2 to 20 ms. At full load L0 settles where merges keep up, about 50 tables above
  // this number. Default: 0. Range: at least l0_compaction_trigger (a smaller value has no effect); no effect with
  // disable_auto_compaction. 0: the number of tables that the entries of the last level would fill, limited to 64 to 256.
  // Larger: longer bursts at full speed. Smaller: less DRAM (about 2 MiB per 65,536 entries, kept until the table's merge ends)
  // and less space for overwritten entries. Reads that miss the lookup cache are faster then while writers are busy.
  uint32_t l0_slowdown_writes_trigger = 0;
  // DRAM for the index over the nodes of a braided skiplist or of sorted runs, where searches begin; bytes for all regions
  // together. No effect on trees; kHybrid: see L1Kind. The index takes what its nodes need, twice that while it is replaced.
  // Default: 1 GiB. Range: any; 0 is no index. A braided skiplist in one region needs 17 MiB per million entries to index every
  // node, so the default is enough for 63 million entries. Keys whose first eight bytes are alike need 2 to 5 MiB more; without
  // them, searches among such keys read more entries. Larger, up to that need: a lookup compares two nodes, and iterators
  // prefetch entries. Smaller: only tall nodes are indexed, a lookup compares 4, 16, … nodes, and merges search the last level.
  uint64_t l1_index_size = 1ull << 30;
  // Limit of the lookup cache, which maps keys to the addresses of their newest versions; bytes. A get that hits the cache
  // searches no level. Default: 32 MiB. Range: at least 64, rounded down to 64; 0 is no cache. The cache starts at 32 KiB
  // or less and grows with the number of keys: 21 to 85 bytes per key, about 9 at its limit. While it grows, a quarter of its
  // size exists as well. After a minute without Get, MultiGet or write it is released and starts small.
  // Not used with a comparator of the user's own, as keys that are equal to it may have different bytes.
  // Larger: more gets answered by the cache. Smaller: less DRAM.
  uint64_t lookup_cache_size = 32ull << 20;
  // The lookup caches of all databases opened with this object stay together within its capacity, and each within its own
  // lookup_cache_size. Default: null, no common limit.
  std::shared_ptr<CacheLimit> lookup_cache_limit;
  // DRAM of the filter; bits for each key that it has room for. The filter answers gets of absent keys without a search.
  // Default: 10. Range: 0 to 64; 0 is no filter. Larger: fewer searches for absent keys (with 10, about one in a hundred, and
  // more while the database grows). Smaller: less DRAM.
  // From 8,193 keys on it has room for 4 million or more, by default: with 10, a million keys get 42 bits each. An open builds
  // the filter in the background by reading all entries. Not used with a comparator of the user's own.
  uint32_t filter_bits_per_key = 10;
  // Threads of one compaction. Default: 0. Range: any; 0 is half of the CPUs, at least 1. Braided skiplist: all threads scan and
  // one also merges. NV-Tree: all threads merge. Sorted runs: one thread does everything.
  // Larger: faster merges. Smaller: more CPU time for writers and readers.
  uint32_t compaction_threads = 0;
  // Compaction starts when this many L0 tables exist, or when writers pause. Writers pause when no memtable was flushed for four
  // times the interval between the last two flushes, limited to 0.1 to 2 s. While writers and flushes use all CPUs,
  // compaction waits for l0_slowdown_writes_trigger tables instead (64 if that is 0; at most 80).
  // RocksDB: level0_file_num_compaction_trigger.
  // Default: 4, as in RocksDB. Range: at least 1 (0 is taken as 1).
  // Larger: faster writes, as one merge of many tables costs less per table. Smaller: faster scans while writers are busy, and
  // the space of overwritten entries is reclaimed sooner.
  uint32_t l0_compaction_trigger = 4;
  // Relocation starts when the log takes more than this factor times its live bytes, plus space_slack. The live entries of the
  // sparsest segments are copied to other segments in the background, and the segments are released. Default: 1.2. Range: at
  // least 1.05, or 0: a segment is released only when no entry in it is live. Larger: fewer copies. Smaller: less space.
  double max_space_amplification = 1.2;
  // Log space that may be taken beyond max_space_amplification; bytes. Default: 32 MiB. Range: any. Larger: fewer copies, and
  // with bound_space fewer stops of writers. Smaller: less space.
  uint64_t space_slack = 32ull << 20;
  // Free space of the log that keeps its blocks in the file system; bytes, in all regions together. Free segments beyond it that
  // no write has used for three seconds give their blocks back to the file system (fallocate with FALLOC_FL_PUNCH_HOLE). A write
  // that needs them takes the blocks again, or gets NoSpace if the file system is full. Default: 64 MiB. Range: any; the largest
  // value keeps all blocks. Larger: fewer blocks are given back and taken again under a changing load. Smaller: less space.
  // A region keeps at least four segments. A region of one small file, a device without a file system and a file system without
  // this call keep all blocks.
  uint64_t kept_free_space = 64ull << 20;
  // Writers wait while the log takes more than max_space_amplification × live bytes + space_slack and merges or relocations can
  // make room. Default: false. InvalidArgument with max_space_amplification 0; no effect if the default family is kSortedRuns.
  // With false, space may grow to several times the bound under constant overwrites, above all where the data is small.
  // It shrinks when writers pause. With true, writes are slower: with 1.3, 64 MiB of slack and 150 MiB of entries under constant
  // overwrites, a write takes four times as long. Writers then stop for some hundredths of a second at a time.
  //   not yet merged    entries do not count as live, so a program that fills a database waits for merges, too
  //   memtables         take at most 1/16 of space_slack
  //   exceeded by       copies of a relocation (at most 16 MiB) if the slack is below 64 MiB or 8 segments; entries that
  //                     readers hold; unfilled parts of writers' segments
  //   after an open     the log of earlier sessions counts as live until it has been counted; CompactRange counts it at once
  //   locks             a transaction keeps its locks while its write waits
  //   other writes      a write made inside a compaction filter waits for up to 10 s
  bool bound_space = false;
  // How long a write may wait for room in a full region while merges and relocations make some; milliseconds. Default: 5,000.
  // Range: any; 0 is no wait. Larger: fewer NoSpace errors. Smaller: a full database refuses writes sooner.
  // The wait ends early when no merge or relocation can free space and no iterator, snapshot or pinned value may hold some: the
  // data does not fit, and the write is refused with NoSpace. For one second after that, and after a wait for readers that was in
  // vain, writes are refused without a wait, until an update succeeds or a segment is released. A region
  // that cannot grow keeps two to three segments for deletions and for making room. A transaction keeps its locks while it waits.
  uint32_t no_space_timeout_ms = 5000;
  // Threads that replay the log at open. Default: 0. Range: any; 0 is all CPUs, and at most four for each CPU are used. Larger:
  // faster recovery. Smaller: less CPU.
  uint32_t recovery_threads = 0;
  // Compact only in CompactRange(), for tests and bulk loads. RocksDB: disable_auto_compactions. Default: false.
  bool disable_auto_compaction = false;
  // Decides during compaction which keys are removed and which values change (compaction_filter.h). Not stored; any open may
  // choose another. Not owned: must outlive the database. Costs a few instructions for each get that hits the lookup cache.
  // Default: null, none.
  const CompactionFilter* compaction_filter = nullptr;
  // Creates a filter for each thread of each compaction. Ignored if compaction_filter is set. Default: null.
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;

  // ---- Damage

  // Check everything on media before serving, as CheckDatabase does (check.h); the open is Corruption if anything is wrong. Reads
  // all data. With ReadOptions::verify_checksums as well, damage never shows as wrong data. Default: false.
  bool verify_at_open = false;

  // ---- Observing

  // Receives each line of the info log. Default: empty, the file LOG in the database directory, of up to 4 MiB; older files are
  // LOG.old (the newest), LOG.old.2, LOG.old.3 and LOG.old.4. A database whose LOG cannot be written works without it.
  // The function must be thread-safe and must not throw. While the database is open, one thread of the database calls it, a
  // little late and without a lock. So it may do what an EventListener may (event_listener.h). A close returns after all lines.
  std::function<void(std::string_view line)> info_log;
  // Called for flushes, compactions and other events (event_listener.h), in this order. None may be null. An empty list costs
  // nothing. Default: none.
  std::vector<std::shared_ptr<EventListener>> listeners;
  // Collect distributions of the time and size of calls and background work (DB::GetHistograms). Costs two reads of the clock,
  // about 50 ns, per get and write, and 90 KiB of DRAM per thread. Default: false.
  bool histograms = false;
  // Count what all threads write back to persistent memory, in Statistics::pm_written_lines, pm_written_xplines and pm_fences.
  // Default: false. Costs some nanoseconds per flush and fence, and DRAM for the lines between two fences. Not stored.
  //   XPLine        a unit of 256 bytes in which Optane memory writes; counted once between two fences of a thread
  //   not counted   lines that the CPU evicts by itself, and flushes inside libpmemobj
  //   kEadr         counts the lines that would be flushed without eADR
  //   kPage         counts nothing, like a database that is open for reading only
  bool count_pm_writes = false;
  // A live reader (DB::OpenForReadOnly beside a writer) calls DB::Refresh when a read without a snapshot would return Expired,
  // and reads again. Iterators do not. Default: false.
  bool refresh_live_readers = false;
  // Options of an interface above this one by name, such as RocksDB's in the C API: those of the database. They are written to
  // the options file and can be loaded from it (options_file.h); they have no other effect. A name has one character or more, no
  // blank and none of = # [ ] : \ and ", and is neither "comparator" nor "prefix_extractor"; otherwise InvalidArgument. Default:
  // empty.
  std::map<std::string, std::string> foreign_options;
  // The same for the default column family. Default: empty.
  std::map<std::string, std::string> foreign_family_options;
  // The same for RocksDB's block-based tables of the default column family. Default: empty.
  std::map<std::string, std::string> foreign_table_options;
};

struct ReadOptions {
  // Read the state of this snapshot. Default: null, the newest acknowledged state.
  const Snapshot* snapshot = nullptr;
  // Verify the checksum of each log entry that decides the answer, puts and deletions alike. Corruption on a mismatch (iterators:
  // in status()). Costs one more pass over key and value. It cannot find damage that hides an entry; Options::verify_at_open
  // can. Default: false (RocksDB: true).
  bool verify_checksums = false;
  // Iterators only: the smallest key to show, inclusive. The bytes are copied. Default: no bound.
  std::optional<Slice> iterate_lower_bound;
  // Iterators only: the end of the keys to show, exclusive. The bytes are copied. Default: no bound.
  std::optional<Slice> iterate_upper_bound;
  // Iterators only: show only keys that begin with these bytes. Needs BytewiseComparator(). Default: all keys.
  std::optional<Slice> prefix;
  // Iterators only, with an Options::prefix_extractor: end, in both directions, where the prefix of the sought key ends; see
  // NewPrefixIterator. Default: false.
  bool prefix_same_as_start = false;
  // No effect; for programs written for RocksDB. Every iterator shows keys of all prefixes in order, unless prefix_same_as_start
  // limits it. Default: false.
  bool total_order_seek = false;
  // No effect, as total_order_seek. Default: false.
  bool auto_prefix_mode = false;
  // Iterators only: a movement that skips more hidden entries than this (tombstones, the entries below them, older versions) ends
  // with status() Incomplete. The next seek starts again. Default: 0. Range: any; 0 is no limit.
  // Larger: more seeks succeed. Smaller: a shorter wait in ranges of many deletions.
  uint64_t max_skippable_internal_keys = 0;
  // Families with timestamps only, and necessary there: read the newest version of each key that is not newer than this. The
  // bytes must be valid during the call; iterators copy them. InvalidArgument in a family without timestamps, if the size is not
  // Comparator::timestamp_size(), or if it is older than DB::GetFullHistoryTsLow. Default: none.
  std::optional<Slice> timestamp;
  // Iterators of families with timestamps only: show all versions from this timestamp to `timestamp`, both inclusive, deletions
  // included, the newest of a key first. Iterator::key() is then RocksDB's internal key: key, timestamp, and eight bytes
  // (little-endian) of sequence number << 8 | type: 1 for a put, 7 for a single deletion, 20 for a deletion. Default: none.
  std::optional<Slice> iter_start_ts;
};

struct WriteOptions {
  // PersistMode::kPage only: acknowledge a write after msync. With false, a write is acknowledged when the page cache has it: it
  // survives a crash of the process, but not one of the operating system. In all other modes every write is durable.
  // Default: true (RocksDB: false).
  bool sync = true;
  // Skip updates of column families that do not exist or were dropped, and write the rest of the batch. With false, such a batch
  // is InvalidArgument and nothing of it is written. An id of 1024 or more is Corruption either way. Default: false.
  bool ignore_missing_column_families = false;
};

// What DB::SetOptions can change while a database is open. Each field is the one of that name in Options. Fields without a value
// stay as they are.
struct ChangedOptions {
  std::optional<uint64_t> memtable_size;
  std::optional<uint32_t> max_immutable_memtables;
  std::optional<uint32_t> l0_compaction_trigger;
  std::optional<uint32_t> l0_slowdown_writes_trigger;
  std::optional<bool> disable_auto_compaction;
  // Of the column family given to SetOptions. Written to the options file.
  std::map<std::string, std::string> foreign_family_options;
};

// How thorough DB::CompactRange is.
struct CompactRangeOptions {
  // Also walk the last level, and drop the versions that only released snapshots needed. Default: true.
  bool sweep_last_level = true;
  // Families with timestamps only: calls DB::IncreaseFullHistoryTsLow before the compaction, which then trims the history below.
  // Default: none.
  std::optional<Slice> full_history_ts_low = std::nullopt;
};

}  // namespace braiddb
#pragma GCC visibility pop
