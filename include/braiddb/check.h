// CheckDatabase finds damage in a database that is not open. RepairDatabase saves its intact data into a new database.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/options.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

struct CheckOptions {
  // As Options::region_paths.
  std::vector<std::string> region_paths;
  // The comparator of the default column family. Null: the built-in comparator whose name is stored in the database.
  const Comparator* comparator = nullptr;
  // More comparators, for column families. Each family uses the comparator whose name is stored for it, among these, `comparator`
  // and the built-in ones.
  std::vector<const Comparator*> comparators;
  // Lets a database open again after an unsafe shutdown. A memory module (NVDIMM) counts an unsafe shutdown if a power loss took
  // data on its way to media. If a database was open then, acknowledged writes may be missing: its opens are Corruption, and a
  // check without this option reports it. With this option the check ignores unsafe shutdowns. At its end, whatever it finds, it
  // writes the present counts of the modules to the file DEVICES of each region, and changes no other file. Default: false.
  bool acknowledge_unsafe_shutdown = false;
  // Called from time to time with the bytes of log that were read, and the total. A check makes two passes over the log: it reads
  // all segments, and it follows all lists. A repair makes three: it reads all segments, sorts the entries, and writes them. Each
  // pass begins with a call with `done` 0, and the bytes of later passes are estimates. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct CheckFinding {
  std::string what;    // the damage
  std::string where;   // file, byte offset, and the structure there
  std::string advice;  // what to do
};

struct CheckReport {
  static constexpr size_t kMaxFindings = 100;

  std::vector<CheckFinding> findings;  // the first kMaxFindings
  uint64_t more_findings = 0;          // number of findings beyond these

  // Counts; complete if the database is sound.
  uint64_t regions = 0;
  uint64_t families = 0;            // column families, with the default one and the internal ones, without dropped ones
  uint64_t segments = 0;            // with log entries
  uint64_t free_segments = 0;       // kept for reuse
  uint64_t tables = 0;              // of L0
  uint64_t l0_entries = 0;          // in L0 tables, without those that a running merge has finished
  uint64_t l1_entries = 0;          // in the last level
  uint64_t obsolete_entries = 0;    // of l1_entries: older versions that only snapshots of the last session needed
  uint64_t log_entries = 0;         // beyond the log boundary: the next open replays them
  uint64_t dead_entries = 0;        // in no list; they take space until their segment is reclaimed
  bool merge_running = false;       // a merge was interrupted; the next open resumes it
  bool allocation_pending = false;  // a PMDK allocation was interrupted; the next open finishes it. Space was not checked

  bool sound() const { return findings.empty(); }
};

// Verifies everything on media: files, headers, checksums, every log entry, every list, and that each live entry is in exactly
// one list. Changes no byte (but see acknowledge_unsafe_shutdown). A database whose process was killed is sound: pending replay
// and unfinished work of the next open are not damage. Time in proportion to the data; little DRAM. No process may truncate the
// files in the meantime.
//   OK                the check ran; *report has the findings
//   Busy              the database is open in some process
//   NotFound          there is no database
//   IOError           the files could not be read
//   NotSupported      the database has another format, or a column family has an unknown comparator
Status CheckDatabase(const CheckOptions& options, const std::string& path, CheckReport* report);

struct RepairOptions {
  // How to read the damaged database, as for CheckDatabase. If a damaged MANIFEST does not name the comparator, null is
  // BytewiseComparator().
  CheckOptions source;
  // Of the new database: regions (0: the old number), region_paths, max_region_size, persist_mode, nv_leaf_size. Column families
  // keep their comparators and last levels; if a damaged MANIFEST does not name the last level, `l1` of these options is used.
  Options target;
};

struct RepairReport {
  std::vector<CheckFinding> damage;  // all damage found; not all of it costs data
  std::vector<std::string> lost;     // data that could not be saved, and its place; one line each
  uint64_t families = 0;             // column families of the new database
  uint64_t keys = 0;                 // keys of the new database
  uint64_t entries = 0;              // intact log entries found, of all versions
  uint64_t damaged_stretches = 0;    // damaged ranges of log
  uint64_t damaged_bytes = 0;        // bytes of these ranges
  uint64_t broken_batches = 0;       // batches skipped because an update is missing
  uint64_t doubtful_keys = 0;        // keys skipped because the newest version is marked obsolete and an older one is not
};

// Saves the intact data of a damaged database into a new database at `new_path`, which is closed when the call returns.
//   keys      the newest version with a matching checksum of each key, if it is not a deletion
//   batches   only complete ones
//   families  each key in its column family. Without a readable MANIFEST, families other than the default one are named
//             "family-<id>" and ordered bytewise; `lost` says so
//   needs     neither MANIFEST nor lists: it searches all regions for segments and all segments for log entries
//   changes   nothing in the old database
//   crash     the new database is `new_path`.tmp until it is complete; the next repair removes an unfinished one
//   DRAM      16 bytes per entry
// InvalidArgument if `new_path` exists and is not an empty directory.
Status RepairDatabase(const RepairOptions& options, const std::string& path, const std::string& new_path, RepairReport* report);

}  // namespace braiddb
#pragma GCC visibility pop
