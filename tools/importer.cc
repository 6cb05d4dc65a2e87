#include "tools/importer.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "tools/batch_writers.h"
#include "tools/interrupt.h"

namespace braiddb::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Result = RecordReader::Result;

constexpr size_t kBatchBytes = 1 << 20;
constexpr uint64_t kShownErrors = 10;
constexpr auto kSaveInterval = std::chrono::seconds(1);

class ImportRun {
 public:
  ImportRun(const ImportJob& job, ImportReport* report)
      : job_(job), report_(report), writers_(job.session->db.get(), job.threads), progress_("importing", job.unit, job.total) {}

  Status Run() {
    // A write or a save that fails later leaves this state.
    if (Status status = job_.save_state(job_.reader->SaveState()); !status.ok()) return status;
    Status status = ReadAll();
    const Status written = Write();
    report_->records = writers_.records();
    if (written.ok()) {
      const Status saved = Save();
      if (status.ok()) status = saved;
    }
    report_->is_complete = status.ok() && written.ok() && !IsInterrupted();
    return written.ok() ? status : written;
  }

 private:
  struct Target {
    ColumnFamilyHandle* handle = nullptr;
    std::string last_key;
    bool is_empty = true;
  };

  // Returns at the end of the source, after an interrupt and after an error.
  Status ReadAll() {
    Record record;
    while (!IsInterrupted()) {
      const Result result = job_.reader->Next(&record);
      if (result == Result::kEnd) break;
      if (result == Result::kFailed && IsInterrupted()) break;
      Status status;
      if (result == Result::kFailed) status = Named(job_.reader->status().message());
      if (result == Result::kBroken) status = Skip();
      if (result == Result::kRecord) status = Add(record);
      if (result == Result::kRecord && !status.ok()) job_.reader->GiveBack();
      if (!status.ok()) return status;
      progress_.Update(job_.reader->Done());
    }
    return Status::OK();
  }

  Status Named(std::string_view why) const { return Status::InvalidArgument(job_.source + ": " + std::string(why)); }

  Status Skip() {
    const std::string what = job_.reader->Position() + ": " + job_.reader->error();
    if (job_.skip_file.empty())
      return Named(what + "; correct it and import again with --resume, or keep broken records in a file with --skip-errors");
    if (!skipped_.is_open()) skipped_.open(job_.skip_file, std::ios::app | std::ios::binary);
    skipped_ << job_.reader->broken_text() << "\n" << std::flush;
    if (!skipped_) return Status::IOError(job_.skip_file + ": cannot be written");
    if (++report_->skipped <= kShownErrors) std::fprintf(stderr, "%s: %s\n", job_.source.c_str(), what.c_str());
    return Status::OK();
  }

  Status Find(const std::string& family, Target** target) {
    const std::string& name = family.empty() ? job_.session->family : family;
    if (last_target_ != nullptr && name == last_name_) {
      *target = last_target_;
      return Status::OK();
    }
    Target& found = targets_[name];
    if (found.handle == nullptr) {
      if (Status status = job_.session->FindOrCreate(name, &found.handle); !status.ok()) return status;
    }
    last_name_ = name;
    *target = last_target_ = &found;
    return Status::OK();
  }

  Status Add(const Record& record) {
    Target* target = nullptr;
    if (Status status = Find(record.family, &target); !status.ok()) return status;
    if (report_->is_sorted && !target->is_empty && Slice(record.key) <= Slice(target->last_key)) report_->is_sorted = false;
    target->is_empty = false;
    if (report_->is_sorted) target->last_key = record.key;
    batch_.Put(target->handle, record.key, record.value);
    if (batch_.ApproximateSize() < kBatchBytes) return Status::OK();
    if (Status status = Submit(); !status.ok()) return status;
    return Clock::now() < next_save_ ? Status::OK() : Save();
  }

  Status Submit() {
    WriteBatch batch;
    std::swap(batch, batch_);
    return writers_.Submit(std::move(batch), report_->is_sorted);
  }

  Status Write() {
    const Status status = batch_.Count() != 0 ? Submit() : Status::OK();
    const Status drained = writers_.Drain();
    return status.ok() ? drained : status;
  }

  // REQUIRES: the batch is empty.
  Status Save() {
    next_save_ = Clock::now() + kSaveInterval;
    if (Status status = writers_.Drain(); !status.ok()) return status;
    return job_.save_state(job_.reader->SaveState());
  }

  const ImportJob& job_;
  ImportReport* const report_;
  BatchWriters writers_;
  Progress progress_;
  std::ofstream skipped_;
  WriteBatch batch_;
  std::unordered_map<std::string, Target> targets_;
  std::string last_name_;
  Target* last_target_ = nullptr;  // unordered_map keeps the addresses of its elements
  Clock::time_point next_save_ = Clock::now() + kSaveInterval;
};

}  // namespace

Status Import(const ImportJob& job, ImportReport* report) {
  *report = {};
  return ImportRun(job, report).Run();
}

}  // namespace braiddb::tools
