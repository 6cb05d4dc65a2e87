// Options of a database, of reads and of writes. Every field states its default, its unit and what it trades.
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

// The structure that holds the last level. Chosen when a database is created and stored in it.
enum class L1Kind : uint8_t {
  kBraidedSkipList = 0,  // entries are linked where they lie: merges write pointers, lookups walk entries
  kNvTree = 1,  // a B+-tree of the entries' addresses: lookups and scans read leaves; more flushed lines per merged entry
  // Copies in the order of their keys, in runs with disjoint key ranges, as in LSM trees: merges write anew the runs they touch,
  // and need space for one at a time; scans read memory in order.
  kSortedRuns = 2,
};

// Which entries the upper layers of lists link, in L0 and in a braided skiplist of the last level. Chosen when a database is
// created and stored in it.
enum class ListKind : uint8_t {
  kBraided = 0,    // those of one region: a search stays in its reader's region down to the bottom layer
  kOblivious = 1,  // those of all regions: with n of them (n - 1) / n of the nodes that a search visits are remote
};

// The DRAM index over the newest entries.
enum class MemtableKind : uint8_t {
  kSkipList = 0,  // always in order
  kHash = 1,      // found by hash, and put in order when an iterator or the flush needs it
};

// How stores become durable.
enum class PersistMode : uint8_t {
  kAuto = 0,       // found at open from the file system and the CPU
  kCacheLine = 1,  // clwb and sfence: persistent memory mapped with DAX
  kEadr = 2,       // sfence only: caches are inside the persistence domain
  kPage = 3,       // msync: an ordinary file system on any disk
  kEmulated = 4,   // clwb and sfence on tmpfs: persistent memory stood in for by DRAM
};

// Extra latency in PersistMode::kEmulated, to study slower memory. 0 injects nothing and costs nothing.
struct EmulationOptions {
  uint32_t write_latency_ns = 0;   // per flushed cache line, one after the other, paid behind the fence. Default: 0
  uint32_t read_latency_ns = 0;    // per node or leaf that a get visits; not in iterators, memtables and merges. Default: 0
  uint32_t remote_latency_ns = 0;  // more per such node in a region on another NUMA node than the reader's. Default: 0
  // Flush with CLFLUSH, which takes the line out of the CPU's cache, as was done before there was CLWB. Default: false.
  bool flush_invalidates = false;
};

struct Options {
  // Create the database if it does not exist. Default: false, as RocksDB.
  bool create_if_missing = false;
  // DB::Open with column families creates those that are not there. Default: false.
  bool create_missing_column_families = false;
  // Fail if it exists. Default: false.
  bool error_if_exists = false;
  // The order of keys. Default: unsigned bytes. Must have the name that the database was created with.
  const Comparator* comparator = BytewiseComparator();
  // What prefixes keys have, for ReadOptions::prefix_same_as_start. Nothing that is stored depends on it: any open may have
  // another one. Default: null, none.
  std::shared_ptr<const SliceTransform> prefix_extractor;
  // What DB::Merge does. Null: it is NotSupported, reads of keys that have operands are InvalidArgument, and their operands stay
  // as they are. Any open may give another one. Default: null.
  std::shared_ptr<const MergeOperator> merge_operator;
  // Last level; fixed at creation. An open with another kind is InvalidArgument. Default: kBraidedSkipList.
  L1Kind l1 = L1Kind::kBraidedSkipList;
  // Leaves of an NV-Tree; bytes: 512, 1024, 2048 or 4096. Fixed at creation; an open takes what is stored. Larger: fewer
  // leaves, and less DRAM for the nodes above them; smaller: shorter searches in a leaf. Default: 4096.
  uint32_t nv_leaf_size = 4096;

  // ---- Regions and persistent memory

  // Number of regions (pools of persistent memory), 1 to 16. 0: as stored, and one per NUMA node for a new database. Fixed at
  // creation. Default: 0.
  uint32_t regions = 0;
  // Fixed at creation; an open takes what is stored, and GetOptions() says it. kOblivious shows what braiding gives; there is no
  // other use for it. With one region both are the same. Default: kBraided.
  ListKind list_kind = ListKind::kBraided;
  // A directory for each region, e.g. one per DAX mount. Empty: inside the database's directory for a new database, where they
  // are for one that exists. Default: empty. Named for a database that exists, they must be its own; regions may be moved while
  // it is closed. InvalidArgument if a directory holds files of another database, or of another one's unfinished creation.
  // In place of a directory, a device of persistent memory without a file system (devdax, e.g. /dev/dax0.0): its region takes the
  // whole device, and never grows; max_region_size has no meaning for it. The database directory has a link to the device then.
  // Creation clears the device, which can take as long as writing all of it, and is InvalidArgument if the first 4 KiB are not
  // zero. DB::Destroy makes these zero. OpenForReadOnly and CheckDatabase copy all data of such a region to DRAM.
  std::vector<std::string> region_paths;
  // For each region the NUMA node, as the system numbers them, whose threads write to it; -1: the node of the device that the
  // region is on, which each open looks up. Empty: -1 for all. Name a node if the system says none of the device, or a wrong one.
  // Of regions on tmpfs, on a machine with several nodes, it says where their memory is taken from the open on; -1
  // leaves that where it is, and a new database takes the nodes in turn. Any open may choose others. InvalidArgument: not one for
  // each region, or a node that the machine does not have. Property "braiddb.region-nodes" says what was found. Default: empty.
  std::vector<int> region_nodes;
  // Address space kept free for each region, the most it can grow to; bytes. 0: the capacity of its file system. At least 32
  // MiB. Default: 0.
  uint64_t max_region_size = 0;
  // What each region has at least from the open on; bytes, rounded up to 2 MiB. Regions grow by themselves; what they have before
  // costs writes no time. It is taken from the file system whether it is used or not, and does not go back. NoSpace if there is
  // too little; a new database is there then, and empty. Default: 0.
  uint64_t initial_region_size = 0;
  // Log space is taken from a region in segments of this size; bytes, 256 KiB to 1 GiB. Young regions take smaller ones.
  // Larger: fewer allocations; smaller: space comes back in smaller pieces. Default: 8 MiB.
  uint64_t segment_size = 8ull << 20;
  PersistMode persist_mode = PersistMode::kAuto;  // how stores become durable; the LOG says what kAuto found. Default: kAuto.
  EmulationOptions emulation;                     // of PersistMode::kEmulated. Default: no latency.

  // ---- DRAM

  // What the database may take of DRAM, in bytes: for memtables, what finds entries in L0 and the last level, lookup cache,
  // filter, and the work on these; at least 64 MiB, and 20 for each region after the first. It sets sizes below:
  // memtable_max_entries, max_immutable_memtables, l0_compaction_trigger, l0_slowdown_writes_trigger and l1_index_size are
  // upper limits then, and the lookup cache takes what is left (lookup_cache_size 0: none). As the data grows, an NV-Tree's
  // inner nodes take from the cache, and a filter that has no room in its share is given up. GetOptions() says what was chosen;
  // property "braiddb.dram-bytes" what is taken. Not in it: persistent memory that stands in DRAM, iterators, and batches, of
  // which one may make a memtable larger than others, merges of sorted runs, and L0 when disable_auto_compaction lets it grow.
  // Smaller: fewer hits, and more merges for the same writes. 0: no limit; the sizes below. Default: 0.
  uint64_t dram_budget = 0;

  // ---- Memtable, flush, checkpoint

  // Any open may choose another. kHash: puts and gets take fewer cache misses; an iterator first sorts what was written since the
  // one before it. With a comparator of the user's own it is a skiplist whatever is chosen. Default: kHash.
  MemtableKind memtable = MemtableKind::kHash;
  // A memtable is rotated when its log entries reach this size; bytes, at least 16 KiB. Larger: fewer tables to read and merge;
  // smaller: shorter recovery. Default: 16 MiB.
  uint64_t memtable_size = 16ull << 20;
  // … or when it holds this many entries, at least 1024. A full memtable takes 26 (kSkipList) or 75 (kHash) bytes of DRAM per
  // entry; inserts are fastest while that fits the CPU's second-level cache. Default: 65,536.
  uint64_t memtable_max_entries = 65536;
  // Writers are slowed down smoothly when more than this many memtables wait for their flush. No write begins while more than
  // twice as many and two wait; a batch of an eighth of a memtable or more waits until no more than this many do. Default: 4.
  uint32_t max_immutable_memtables = 4;
  // Lazy group checkpoint: L0 pointers are made durable, and the log boundary moved, after this many flushed tables.
  // Larger: fewer flushes; smaller: less to replay after a crash. Default: 4.
  uint32_t checkpoint_tables = 4;

  // Whether log entries become the nodes of L0 where they lie. Without, a flush copies the entries of its memtable into segments
  // of its own, makes the copies durable, and the log is released: a write-ahead log as others have it, which writes everything
  // twice. It shows what index-unified logging gives; there is no other use for it. checkpoint_tables has no meaning then. Fixed
  // at creation; an open takes what is stored, and GetOptions() says it. Default: true.
  bool index_unified_logging = true;

  // ---- Background work

  // Writers are slowed down smoothly when more than this many L0 tables wait to be merged, the more the more wait, so that the
  // database settles where merges keep up: about 50 tables above this at full load. Each table takes about 2 MiB of DRAM per
  // 65536 entries, and those that a merge is at work on are there until its end. For these a write sleeps at most 20 ms. Not
  // below l0_compaction_trigger, nor with disable_auto_compaction. 0: as many as the entries of the last level would fill, with
  // memtable_max_entries in each, but at least 64 and at most 256. Smaller: less DRAM, less space that overwrites take, and
  // faster reads of what the lookup cache does not have while writers are busy or behind an open; larger: longer bursts at full
  // speed. Default: 0.
  uint32_t l0_slowdown_writes_trigger = 0;
  // Braided skiplist, sorted runs: DRAM for the index over nodes of the last level, where searches begin; bytes for all regions
  // together, while it is replaced twice that. With 17 MiB for a million entries, one region and a braided skiplist, all nodes
  // are indexed, a lookup looks at two, and an iterator fetches what comes next; with less only tall ones, and lookups are four,
  // 16 … steps long, and merges search the last level. It takes no more than its nodes need: a limit for 63 million entries.
  // 0: none. Default: 1 GiB.
  uint64_t l1_index_size = 1ull << 30;
  // Lookup cache: the most DRAM, in bytes, for the addresses of the newest versions of keys. A get that finds its key there
  // searches nothing else. The cache takes 21 to 85 bytes for each key, and once it has this size about nine. It begins with
  // 32 KiB at most and grows with the number of keys; while it grows, the quarter that it had before exists as well. After a
  // minute without a call of Get, MultiGet or a write it begins anew. Rounded down to 64 bytes; at least these. 0: none. Not
  // used with a comparator of one's own, whose equal keys may differ in bytes. Default: 32 MiB.
  uint64_t lookup_cache_size = 32ull << 20;
  // The lookup caches of all databases that are opened with this object stay together within its capacity, each within its
  // lookup_cache_size. Null: they do not know of each other. Default: null.
  std::shared_ptr<CacheLimit> lookup_cache_limit;
  // Filter: DRAM in bits for each key that it has room for, so that a get of a key that is not there need not search; 0 to 64.
  // From 8,193 keys on it has room for 4 million or more, by default: with 10, a million keys get 42 bits each. With 10 about one
  // key in a hundred is searched for in vain, and more while a database grows, until its next open, which makes the filter in the
  // background, by a walk along all entries. 0: none. Not used with a comparator of one's own. Default: 10.
  uint32_t filter_bits_per_key = 10;
  // Threads of a compaction (braided skiplist: all scan, one also merges; NV-Tree: all merge; sorted runs: one does all). 0: half
  // of the CPUs, at least 1. Default: 0.
  uint32_t compaction_threads = 0;
  // Compaction starts when this many L0 tables exist, or writers pause: no memtable was flushed for 0.1 to 2 s, by how often they
  // were before. While writers and their flushes take all CPUs, it waits for l0_slowdown_writes_trigger (64 where that is 0).
  // Larger: a merge of many tables takes less time for each than one of few, so writes are faster; smaller: scans while writers
  // are busy, and space that overwrites take comes back sooner. Default: 4, as RocksDB.
  uint32_t l0_compaction_trigger = 4;
  // Relocation: when the log takes more than this times what lives in it, and space_slack bytes more, what lives in the sparsest
  // segments is copied to others in the background, and their space comes back. Nearer to 1: less space, more copies. At least
  // 1.05; 0: segments come back only when nothing in them lives any more. Default: 1.2.
  double max_space_amplification = 1.2;
  uint64_t space_slack = 32ull << 20;  // Default: 32 MiB.
  // Whether writers wait where the log would take more than max_space_amplification times what lives in it and space_slack
  // bytes more, as long as merges and relocations make room: a bound for who overwrites without a pause. Without it space may
  // grow meanwhile, by several times where the data is small, and comes back when writers pause. The price: with 1.3 and 64
  // MiB, and 150 MiB of entries that are overwritten all the time, a write takes as long as four, in stops of some hundredths
  // of a second. What no merge has taken yet does not count as living, so who fills a database waits for merges, too. Memtables
  // take a sixteenth of space_slack at the most. With less than 64 MiB, or eight segments, the bound is exceeded by the copies
  // of a relocation, at most 16 MiB. Above it are, besides, what readers hold and what writers have not filled of their
  // segments. After an open, what earlier sessions left counts as living until it has been counted (CompactRange does so at
  // once). Keys that a transaction has locked stay locked meanwhile, and a write that is made in a compaction filter waits for
  // up to 10 s. No effect if the default family's l1 is kSortedRuns. Default: false.
  bool bound_space = false;
  // How long a write may wait for room in a full region, in milliseconds, while merges and relocations make some. It ends sooner
  // where they find nothing to do: then the data does not fit, and the write is refused with NoSpace, as others are for a second
  // without a wait, unless somebody has written or deleted meanwhile. Of a region that cannot grow, the space of two to three
  // segments is kept for deletions and for making room. Keys that a transaction has locked stay locked meanwhile. 0: no wait.
  // Default: 5,000.
  uint32_t no_space_timeout_ms = 5000;
  // Threads that replay the log at open. 0: all CPUs. Default: 0.
  uint32_t recovery_threads = 0;
  // No compaction except by CompactRange(). For tests and bulk loads. Default: false.
  bool disable_auto_compaction = false;
  // Asked about keys that are compacted, see compaction_filter.h. Not owned: must outlive the database. Any open may choose
  // another, or none. Without one nothing is paid; with one, gets that the lookup cache answers take a few instructions more.
  // Null: none. Default: null.
  const CompactionFilter* compaction_filter = nullptr;
  // Makes filters, for who wants one per compaction; owned together with whoever else has it. compaction_filter goes before it.
  // Default: null.
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;

  // ---- Damage

  // Check everything that is on media before serving, as CheckDatabase does (braiddb/check.h); Corruption if anything is wrong.
  // Default: false: it reads all of the data. Together with ReadOptions::verify_checksums, damage never shows as wrong data.
  bool verify_at_open = false;

  // ---- Observing

  // Receives each line of the info log. Empty: the file LOG in the database directory, of 4 MiB; older ones are LOG.old (the
  // newest), LOG.old.2 to LOG.old.4. A database whose LOG cannot be written works without. Must be thread-safe, and not throw.
  // While the database is open, lines come from one thread of it, a little late and with no lock held. So the function may do
  // what an EventListener may (event_listener.h), and the close returns when the function has all lines. Default: empty.
  std::function<void(std::string_view line)> info_log;
  // Are told of flushes, compactions and the like (event_listener.h), in this order; owned together with whoever else has them.
  // Without any, nothing is paid. None may be null. Default: none.
  std::vector<std::shared_ptr<EventListener>> listeners;
  // Distributions of what calls and background work take (DB::GetHistograms). Each get and write pays two looks at the clock,
  // some 50 ns, and each thread 90 KiB of DRAM. Without, nothing is paid. Default: false.
  bool histograms = false;
  // Counts what all threads, in foreground and background, write back to persistent memory: cache lines, fences, and XPLines, the
  // units of 256 bytes in which Optane memory writes; of one, what a thread flushes between two of its fences counts once
  // (Statistics::pm_written_lines, pm_written_xplines, pm_fences). What the CPU writes back on its own, and what libpmemobj
  // flushes for itself, is not seen. PersistMode::kEadr counts what would be flushed without it; kPage, which writes pages by
  // msync, counts nothing, nor does a database that is only read. Each flush and each fence pays some ns, and DRAM for what lies
  // between two fences. Without, nothing is paid. Any open may choose. Default: false.
  bool count_pm_writes = false;
  // Options of an interface above this one (RocksDB's, in the C API), by name: of databases, and of column families. They are put
  // into the options file and can be loaded from it (braiddb/options_file.h); nothing else is done with them. Default: empty.
  std::map<std::string, std::string> foreign_options;
  std::map<std::string, std::string> foreign_family_options;
};

struct ReadOptions {
  // Read as of this snapshot; null: the newest acknowledged state. Default: null.
  const Snapshot* snapshot = nullptr;
  // Verify the checksum of each log entry that decides the answer, values and deletions alike; Corruption if it does not match
  // (iterators: status()). Default: false: a read that costs a pass over key and value more is asked for. It does not notice
  // damage that hides an entry; for that there is Options::verify_at_open.
  bool verify_checksums = false;
  // Iterators only: keys in [iterate_lower_bound, iterate_upper_bound). The bytes are copied. Default: no bounds.
  std::optional<Slice> iterate_lower_bound;
  std::optional<Slice> iterate_upper_bound;
  // Iterators only: just the keys that start with these bytes. Needs BytewiseComparator(). Default: all keys.
  std::optional<Slice> prefix;
  // Iterators only: with an Options::prefix_extractor they end, in both directions, where the prefix of what was sought ends; see
  // NewPrefixIterator. Default: false.
  bool prefix_same_as_start = false;
  // As in RocksDB, where they tell whether an iterator sees keys of other prefixes than the one it was sought for. Here every
  // iterator does, unless prefix_same_as_start limits it, whatever these say. Default: false.
  bool total_order_seek = false;
  bool auto_prefix_mode = false;
  // Iterators only: a movement that passes more entries than so many that it does not show, tombstones, what these hide and older
  // versions, ends with status() Incomplete; the next seek begins anew. For who would rather know of many deletions than wait.
  // 0: no limit. Default: 0.
  uint64_t max_skippable_internal_keys = 0;
};

struct WriteOptions {
  // Only PersistMode::kPage looks at this. true: acknowledged after msync. false: acknowledged when the page cache has
  // it: it survives the process, but not the operating system. All other modes are always durable. Default: true.
  bool sync = true;
  // true: updates of column families that do not exist, or were dropped, are skipped, and the rest of the batch is written.
  // false: a batch with such an update is InvalidArgument, and nothing of it is written. Default: false. An id of 1024 or more,
  // which no family can have, is Corruption in both cases.
  bool ignore_missing_column_families = false;
};

// DB::SetOptions: what can change while a database is open, each as in Options; what is not given stays as it is.
struct ChangedOptions {
  std::optional<uint64_t> memtable_size;
  std::optional<uint32_t> max_immutable_memtables;
  std::optional<uint32_t> l0_compaction_trigger;
  std::optional<uint32_t> l0_slowdown_writes_trigger;
  std::optional<bool> disable_auto_compaction;
  // Of the column family. They go into the options file.
  std::map<std::string, std::string> foreign_family_options;
};

// CompactRange: how thorough.
struct CompactRangeOptions {
  // Also walk the last level and drop what only released snapshots kept. Default: true.
  bool sweep_last_level = true;
};

}  // namespace braiddb
#pragma GCC visibility pop
