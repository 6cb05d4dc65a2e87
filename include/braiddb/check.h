// CheckDatabase and RepairDatabase: for a database that is not open, and that may be damaged.
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
  // The order of keys, of the default column family. Null: that of the two built-in comparators which the database names.
  const Comparator* comparator = nullptr;
  // More orders that column families may have. Each family has that whose name the database gives: one of these, `comparator`, or
  // a built-in one.
  std::vector<const Comparator*> comparators;
  // Lets a database open again after an unsafe shutdown, whatever the check finds. A memory module (NVDIMM) counts an unsafe
  // shutdown if it lost what was on its way to media at a power loss. If a database was open then, its opens are Corruption, and
  // a check without this option finds it, since acknowledged writes may be missing. With the option, the check does not look for
  // unsafe shutdowns. At its end it writes the present counts of the modules to the file DEVICES of each region, and changes no
  // other file. Default: false.
  bool acknowledge_unsafe_shutdown = false;
  // Called now and then with the bytes of log that were looked at, and all there are; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct CheckFinding {
  std::string what;    // is wrong
  std::string where;   // file and byte, and the structure there
  std::string advice;  // what to do
};

struct CheckReport {
  static constexpr size_t kMaxFindings = 100;

  std::vector<CheckFinding> findings;  // the first kMaxFindings
  uint64_t more_findings = 0;          // beyond these

  // What there is; complete if the database is sound.
  uint64_t regions = 0;
  uint64_t families =
      0;  // column families, with the default one and that of prepared transactions; of dropped ones entries are dead
  uint64_t segments = 0;            // with log entries
  uint64_t free_segments = 0;       // kept for reuse
  uint64_t tables = 0;              // of L0
  uint64_t l0_entries = 0;          // in tables; those that a running merge has dealt with are not counted
  uint64_t l1_entries = 0;          // in the last level
  uint64_t obsolete_entries = 0;    // … of these, older versions that only snapshots of the last session kept
  uint64_t log_entries = 0;         // behind the log boundary: the next open replays them
  uint64_t dead_entries = 0;        // in no list any more; they take space until their segment is reclaimed
  bool merge_running = false;       // the next open resumes it
  bool allocation_pending = false;  // … finishes an allocation of PMDK's that was cut short; space was not accounted for

  bool sound() const { return findings.empty(); }
};

// Verifies everything that is on media: files, headers, checksums, every log entry, every list, and that each entry that counts
// is in exactly one list. Changes nothing, not a byte, but for `acknowledge_unsafe_shutdown`. A database whose process was
// killed is sound: what the next open would replay or finish is taken as that. OK if it could look, whatever it found; Busy while
// the database is open anywhere, NotFound, IOError and NotSupported (another format, an unknown comparator of some column family)
// if it could not. Takes time in proportion to the data, and little memory. No one may cut the files meanwhile.
Status CheckDatabase(const CheckOptions& options, const std::string& path, CheckReport* report);

struct RepairOptions {
  // How to look, as for CheckDatabase. A damaged MANIFEST does not name the comparator: then null is BytewiseComparator().
  CheckOptions source;
  // Of the new database: regions (0: as many as there were), region_paths, max_region_size, persist_mode, nv_leaf_size.
  // Comparator and last level of each column family are those that it had; where a damaged MANIFEST does not name them, the last
  // level is that of these options.
  Options target;
};

struct RepairReport {
  std::vector<CheckFinding> damage;  // that was come upon; not all of it costs data
  std::vector<std::string> lost;     // each line says what could not be saved, and where it was
  uint64_t families = 0;             // column families of the new database
  uint64_t keys = 0;                 // in these
  uint64_t entries = 0;              // intact ones that were found, of all versions
  uint64_t damaged_stretches = 0;    // of log
  uint64_t damaged_bytes = 0;        // in these
  uint64_t broken_batches = 0;       // left out because a part of them is gone
  uint64_t doubtful_keys = 0;        // left out because their newest version is marked obsolete, though an older one is not
};

// Saves what is intact of a damaged database into a new one: of each key the newest version whose checksum matches, unless that
// is a deletion; of batches, whole ones; each in the column family in which it was. With a damaged MANIFEST their names are not
// known: then families but the default one are called "family-<id>" and ordered bytewise, and `lost` says so. Needs neither
// MANIFEST nor lists: it looks for log entries in all segments, and for segments in all of the regions. The old database is not
// changed. InvalidArgument if there is something at `new_path` already but an empty directory. The new database is made as
// `new_path`.tmp, and has its name when it is whole; what a failed or killed repair left there, the next one removes. It is
// closed when this returns. DRAM: 16 bytes per entry.
Status RepairDatabase(const RepairOptions& options, const std::string& path, const std::string& new_path, RepairReport* report);

}  // namespace braiddb
#pragma GCC visibility pop
