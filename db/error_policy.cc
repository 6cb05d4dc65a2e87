#include "db/error_policy.h"

#include <cstddef>

namespace braiddb {
namespace {

constexpr auto kReport = Outcome::kReport;
constexpr auto kLater = Outcome::kLater;
constexpr auto kEnds = Outcome::kEndsWriting;

struct WorkRow {
  Work work;
  Outcome outcomes[static_cast<size_t>(Cause::kCount)];
};

// Only a failed persist ends writing, with one exception: if a part of the work is already done, every error ends writing,
// because DRAM and media may differ, or because a retry would meet the same damage again. kEnds also stands where no way is known
// in which the error could occur.
constexpr WorkRow kOutcomes[] = {
    // work                 kPersist kCorruption kNoSpace kRefused kNoMemory kStopped kCaller
    {Work::kReserveLog, {kEnds, kEnds, kReport, kReport, kReport, kReport, kReport}},
    {Work::kAppend, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},       // the entry may be durable but is not visible
    {Work::kSeal, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},         // the segment has no owner any more
    {Work::kRelease, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},      // the segment may or may not be free on media
    {Work::kFlushCopies, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},  // the index of L0 has a part of the copies
    {Work::kCheckpoint, {kEnds, kEnds, kLater, kLater, kLater, kLater, kLater}},
    // A merge that fails for lack of DRAM leaves the index of the last level incomplete. The next open resumes a merge that a
    // close stopped.
    {Work::kMerge, {kEnds, kEnds, kLater, kLater, kEnds, kReport, kEnds}},
    {Work::kMakeCopies, {kEnds, kEnds, kLater, kLater, kLater, kLater, kLater}},
    {Work::kInstall, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},
    {Work::kCreateFamily, {kEnds, kReport, kReport, kReport, kReport, kReport, kReport}},
    {Work::kDropFamily, {kEnds, kReport, kReport, kReport, kReport, kReport, kReport}},
    {Work::kPurgeFamily, {kEnds, kEnds, kEnds, kEnds, kEnds, kEnds, kEnds}},
    {Work::kOptionsFile, {kLater, kLater, kLater, kLater, kLater, kLater, kLater}},
};

constexpr bool IsInOrder() {
  size_t number = 0;
  for (const WorkRow& row : kOutcomes) {
    if (static_cast<size_t>(row.work) != number++) return false;
  }
  return number == static_cast<size_t>(Work::kCount);
}
static_assert(IsInOrder());

}  // namespace

Cause CauseOf(const Status& status, bool persist_failed) noexcept {
  switch (status.code()) {
    case Status::Code::kCorruption:
      return Cause::kCorruption;
    case Status::Code::kNoSpace:
      return Cause::kNoSpace;
    case Status::Code::kMemoryLimit:
      return Cause::kNoMemory;
    case Status::Code::kAborted:
      return Cause::kStopped;
    case Status::Code::kIOError:
      return persist_failed ? Cause::kPersist : Cause::kRefused;
    case Status::Code::kNotFound:  // ENOENT: a directory was moved away
    case Status::Code::kBusy:
    case Status::Code::kTimedOut:
      return Cause::kRefused;
    case Status::Code::kOk:
    case Status::Code::kNotSupported:
    case Status::Code::kInvalidArgument:
    case Status::Code::kReadOnly:
    case Status::Code::kExpired:
    case Status::Code::kIncomplete:
      break;
  }
  return Cause::kCaller;
}

Outcome OutcomeOf(Work work, Cause cause) noexcept {
  return kOutcomes[static_cast<size_t>(work)].outcomes[static_cast<size_t>(cause)];
}

}  // namespace braiddb
