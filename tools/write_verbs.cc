// braiddb put, delete, compact, flush: verbs that change keys or levels.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "braiddb/metrics.h"
#include "tools/database_verb.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;

// Reads a value from a file, or from the standard input for "-".
Status ReadValueFile(const std::string& path, std::string* value) {
  std::FILE* const file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return StatusFromErrno(errno, path);
  char buffer[16 << 10];
  value->clear();
  while (const size_t bytes = std::fread(buffer, 1, sizeof buffer, file)) value->append(buffer, bytes);
  Status status = std::ferror(file) != 0 ? StatusFromErrno(errno, path) : Status::OK();
  if (file != stdin) std::fclose(file);
  return status;
}

// The entries of all families that are in no last level.
uint64_t UnmergedEntries(const Session& session) {
  auto entries = static_cast<uint64_t>(session.db->GetMetrics().Value("braiddb_merge_backlog_entries"));
  for (const auto& family : session.families) {
    for (const char* name : {"braiddb.num-entries-active-mem-table", "braiddb.num-entries-imm-mem-tables"}) {
      uint64_t in_memtables = 0;
      if (session.db->GetIntProperty(family.get(), name, &in_memtables)) entries += in_memtables;
    }
  }
  return entries;
}

}  // namespace

void AddPutOptions(VerbOptions add) {
  add("create", "create the database if it does not exist");
  add("value-file", po::value<std::string>()->value_name("FILE"), "take the value from FILE, as it is; - is the standard input");
}

void AddDeleteOptions(VerbOptions add) {
  add("begin", po::value<std::string>()->value_name("KEY"), "delete all keys from KEY on, up to --end");
  add("end", po::value<std::string>()->value_name("KEY"), "the key behind the last one; needs --begin");
}

int PutVerb(Session& session, const VerbArguments& arguments) {
  const bool from_file = arguments.Has("value-file");
  if (from_file == (arguments.positional().size() == 2)) {
    std::fprintf(stderr, "braiddb: put takes a value or --value-file\n");
    return kCannotLook;
  }
  std::string key;
  std::string value;
  if (!ReadBytes(session, arguments.positional()[0], &key)) return kCannotLook;
  if (!from_file && !ReadBytes(session, arguments.positional()[1], &value)) return kCannotLook;
  ColumnFamilyHandle* family = nullptr;
  Status status = session.Current(&family);
  if (status.ok() && from_file) status = ReadValueFile(arguments.Get<std::string>("value-file"), &value);
  if (status.ok()) status = session.db->Put({}, family, key, value);
  return status.ok() ? kSound : Failed(status);
}

int DeleteVerb(Session& session, const VerbArguments& arguments) {
  const bool has_range = arguments.Has("begin") && arguments.Has("end");
  if (arguments.Has("begin") != arguments.Has("end") || has_range == !arguments.positional().empty()) {
    std::fprintf(stderr, "braiddb: delete takes keys, or --begin and --end\n");
    return kCannotLook;
  }
  ColumnFamilyHandle* family = nullptr;
  Status status = session.Current(&family);
  WriteBatch batch;
  if (has_range) {
    std::string begin;
    std::string end;
    if (!ReadBytes(session, arguments.Get<std::string>("begin"), &begin)) return kCannotLook;
    if (!ReadBytes(session, arguments.Get<std::string>("end"), &end)) return kCannotLook;
    batch.DeleteRange(family, begin, end);
  }
  for (const std::string& text : arguments.positional()) {
    std::string key;
    if (!ReadBytes(session, text, &key)) return kCannotLook;
    batch.Delete(family, key);
  }
  if (status.ok()) status = session.db->Write({}, batch);
  return status.ok() ? kSound : Failed(status);
}

int CompactVerb(Session& session, const VerbArguments& arguments) {
  if (arguments.Has("prefix")) {
    std::fprintf(stderr, "braiddb: compact takes --begin and --end, no --prefix\n");
    return kCannotLook;
  }
  std::optional<std::string> keys[2];
  Slice bounds[2];
  const char* const names[] = {"begin", "end"};
  for (size_t i = 0; i < 2; ++i) {
    if (!arguments.Has(names[i])) continue;
    if (!ReadBytes(session, arguments.Get<std::string>(names[i]), &keys[i].emplace())) return kCannotLook;
    bounds[i] = *keys[i];
  }
  ColumnFamilyHandle* family = nullptr;
  Status status = session.Current(&family);
  const InterruptGuard guard;  // in the shell: a compaction goes on to its end, and a second signal ends the shell
  const uint64_t total = UnmergedEntries(session);
  const PolledProgress progress("compacting", Progress::Unit::kEntries, total,
                                [&session, total] { return total - std::min(total, UnmergedEntries(session)); });
  if (status.ok()) status = session.db->CompactRange({}, family, keys[0] ? &bounds[0] : nullptr, keys[1] ? &bounds[1] : nullptr);
  return status.ok() ? kSound : Failed(status);
}

int FlushVerb(Session& session, const VerbArguments&) {
  const Status status = session.db->Flush();
  return status.ok() ? kSound : Failed(status);
}

}  // namespace braiddb::tools
