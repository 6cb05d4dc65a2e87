#include "tools/follow_log.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "braiddb/options_file.h"
#include "tools/database_verb.h"
#include "tools/interrupt.h"
#include "txn/log_tail.h"

namespace braiddb::tools {
namespace {

// The time between two reads of the log. An update is printed by the second read after its write.
constexpr std::chrono::milliseconds kPollInterval{100};

const char* NameOf(LogTail::Kind kind) {
  switch (kind) {
    case LogTail::Kind::kPut:
      return "put";
    case LogTail::Kind::kDelete:
      return "delete";
    case LogTail::Kind::kMerge:
      return "merge";
    case LogTail::Kind::kDeleteRange:
      return "delete-range";
  }
  return "";
}

void Print(const std::vector<LogTail::Update>& updates, RowPrinter* rows) {
  for (const LogTail::Update& update : updates) {
    rows->Print({std::to_string(update.sequence), std::to_string(update.family), NameOf(update.kind), update.key, update.value});
  }
}

// Says on the standard error how many segments were missed since `known`. Returns their number since the start.
uint64_t ReportMissed(const LogTail& tail, uint64_t known) {
  const uint64_t missed = tail.missed_segments();
  if (missed != known) {
    std::fprintf(stderr, "braiddb: %llu log segments were reused before their end was read; updates may be missing here\n",
                 static_cast<unsigned long long>(missed - known));
  }
  return missed;
}

}  // namespace

RowPrinter UpdateRows(const Style& style) { return {style, {"sequence", "family", "update", "key", "value"}, {0, 1}}; }

int FollowLog(const std::string& path, uint64_t since, const Style& style) {
  LoadedOptions stored;
  Status status = LoadLatestOptions(path, &stored, true);
  if (!status.ok() && !status.IsNotFound()) return Failed(status);
  LogTail tail(stored.options, path);
  status = tail.Start(since);
  RowPrinter rows = UpdateRows(style);
  uint64_t missed = 0;
  const InterruptGuard guard;
  while (status.ok() && !IsInterrupted()) {
    std::vector<LogTail::Update> updates;
    status = tail.Poll(&updates);
    Print(updates, &rows);
    if (!rows.Flush()) return kCannotLook;  // the end of the program says why
    missed = ReportMissed(tail, missed);
    if (status.ok() && !IsInterrupted()) std::this_thread::sleep_for(kPollInterval);
  }
  std::vector<LogTail::Update> rest;
  tail.TakeRest(&rest);
  Print(rest, &rows);
  if (!rows.Flush()) return kCannotLook;
  if (!status.ok()) return Failed(status);
  return missed == 0 ? kSound : kDamaged;
}

}  // namespace braiddb::tools
