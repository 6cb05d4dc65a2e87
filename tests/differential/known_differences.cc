#include "tests/differential/known_differences.h"

#include <fstream>
#include <sstream>

namespace braiddb::test {

namespace {

template <class... Names>
bool IsOf(const Difference& difference, Names... names) {
  const std::string operation = difference.call.substr(0, difference.call.find(' '));
  return ((operation == names) || ...);
}

bool Has(const Difference& difference, const char* words) { return difference.call.find(words) != std::string::npos; }

}  // namespace

const std::vector<KnownDifference>& KnownDifferences() {
  static const std::vector<KnownDifference> known{
      {"iterate-passes-ranges", "docs/C_API.md", "`writebatch_iterate` passes over them, as over operands", false,
       [](const Difference& d) {
         return IsOf(d, "BatchInspect") && d.expected.find("delete-range") != std::string::npos &&
                d.found.starts_with(d.expected);
       }},
      {"dropped-by-name", "docs/C_API.md", "RocksDB calls a dropped family by name", false,
       [](const Difference& d) {
         const size_t at = d.expected.find("Column family dropped");
         if (at == std::string::npos) return false;
         const std::string found = d.found.substr(std::min(at, d.found.size()));
         return d.found.substr(0, at) == d.expected.substr(0, at) &&
                (found == "Invalid argument" || (IsOf(d, "Flush") && found == "ok"));
       }},
      {"unfinished-files", "docs/C_API.md", "the file is there when `finish` has returned", false,
       [](const Difference& d) {
         return IsOf(d, "Ingest") && d.expected.ends_with("ingest Corruption") && d.found.ends_with("ingest IO error");
       }},
      {"ranges-with-transactions", "docs/C_API.md", "Databases with transactions refuse them", false,
       [](const Difference& d) {
         return IsOf(d, "BatchWrite") && d.expected == "Invalid argument" && d.found == "Not implemented";
       }},
      {"bounds-of-own-updates", "docs/C_API.md", "keep to the bounds and the prefix of their read options", false,
       [](const Difference& d) {
         return (IsOf(d, "IndexedIterate") || IsOf(d, "TransactionIterate")) &&
                (Has(d, " lower ") || Has(d, " upper ") || Has(d, " same-prefix"));
       }},
      {"seen-deletions", "docs/LIMITATIONS.md", "An optimistic commit that saw a deletion may be told of a conflict", true,
       [](const Difference& d) {
         return IsOf(d, "TransactionEnd") && d.expected == "ok, some absent" && d.found == "Resource busy, some absent";
       }},
      {"forgotten-deletions", "docs/C_API.md", "a deletion that a merge has forgotten is no conflict", true,
       [](const Difference& d) {
         return (IsOf(d, "TransactionEnd", "TransactionUpdate") && d.expected == "Resource busy, some absent" &&
                 d.found == "ok, some absent") ||
                (IsOf(d, "TransactionGetForUpdate") && d.expected == "Resource busy" && d.found == "none");
       }},
      {"flushed-history", "docs/C_API.md", "`Operation failed. Try again.`", true,
       [](const Difference& d) { return IsOf(d, "TransactionEnd") && d.expected.starts_with("Operation failed. Try again."); }},
      {"upper-bound-is-a-key", "docs/C_API.md", "the upper bound is itself a key", false,
       [](const Difference& d) {
         return IsOf(d, "CreateIterator", "CreateIterators", "MoveIterator") && Has(d, " same-prefix") && Has(d, " upper ") &&
                Has(d, " last");
       }},
      {"tailing-operands", "docs/C_API.md", "a tailing iterator over operands, sought again", false,
       [](const Difference& d) { return IsOf(d, "TailingIterator") && Has(d, " operands"); }},
      // ---- Not drawn, because RocksDB goes no further.
      {"inverted-ranges", "docs/C_API.md", "A deletion of a range that ends before its start", false, nullptr},
      {"dropped-families", "docs/C_API.md", "a write to a dropped family", false, nullptr},
      {"other-opens-after-two-phases", "docs/C_API.md", "by another function that reads a log with prepared transactions", false,
       nullptr},
      {"names-of-rolled-back", "docs/C_API.md", "A rollback sets the name free at once", false, nullptr},
      {"half-rebuilt", "docs/C_API.md", "a rebuild of a transaction that fails", false, nullptr},
      {"backups-of-other-orders", "docs/C_API.md", "a backup of a database with a comparator of one's own", false, nullptr},
      {"tailing-ranges", "docs/C_API.md", "a tailing iterator over deleted ranges", false, nullptr},
      {"counts", "docs/C_API.md", "snapshots that are not released, iterators with them", false, nullptr},
      {"released-snapshots", "docs/C_API.md", "an iterator after the release of its snapshot", false, nullptr},
      {"snapshots-of-nothing", "docs/C_API.md", "a snapshot of a database that was never written", false, nullptr},
      {"ingested-conflicts", "docs/C_API.md", "file ingested meanwhile", false, nullptr},
      {"two-reasons", "docs/C_API.md", "Of two reasons to refuse a call", false, nullptr},
      {"damaged-batches", "docs/C_API.md", "a damaged batch", false, nullptr},
      {"ranges-with-optimistic-transactions", "docs/C_API.md", "Databases with transactions refuse them", false, nullptr},
      {"indexed-operands", "docs/C_API.md", "(`Must provide a column_family`)", false, nullptr},
      {"numbers-of-families", "docs/C_API.md", "Ids go round", false, nullptr},
      {"numbers-of-batches", "docs/C_API.md", "The sequence number in it is 0", false, nullptr},
      {"error-texts", "docs/FROM_ROCKSDB.md", "mostly texts of their own behind them", false, nullptr},
  };
  return known;
}

std::optional<size_t> FindKnownDifference(const Difference& difference) {
  const std::vector<KnownDifference>& known = KnownDifferences();
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].matches != nullptr && known[i].matches(difference)) return i;
  }
  return std::nullopt;
}

std::string CheckKnownDifferences(const std::string& source_directory) {
  std::string missing;
  for (const KnownDifference& known : KnownDifferences()) {
    std::ifstream file(source_directory + "/" + known.document);
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(known.words) == std::string::npos) {
      missing += std::string(known.document) + " does not have the words of " + known.name + ": " + known.words + "\n";
    }
  }
  return missing;
}

}  // namespace braiddb::test
