#include "tools/serve/source.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "db/db_impl.h"
#include "log/log_reader.h"
#include "tools/stored_families.h"

namespace braiddb::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLogBytes = 256 << 10;  // that are read from the end of the file
constexpr size_t kMaxLineBytes = 1000;

}  // namespace

Status Source::Open(const SourceOptions& options, std::unique_ptr<Source>* source) {
  std::unique_ptr<Source> made(new Source(options));
  Options own;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status status = LoadStoredFamilies(options.path, options.region_paths, options.comparator, &own, &descriptors);
  if (!status.ok()) return status;
  status = DB::OpenForReadOnly(own, options.path, descriptors, &made->families_, &made->db_);
  if (status.ok() && dynamic_cast<DBImpl*>(made->db_->GetRootDB()) == nullptr) {
    // A live reader has no figures.
    made->families_.clear();
    made->db_.reset();
    status = Status::Busy("a program has the database open");
  }
  if (status.IsBusy() || status.IsNotSupported()) status = made->OpenSecondary(std::move(own), descriptors, status);
  if (!status.ok()) return status;
  if (made->is_secondary_) {
    made->worker_ = std::thread([raw = made.get()] { raw->Follow(); });
  } else if (options.counts_dead) {
    made->worker_ = std::thread([raw = made.get()] { raw->CountDead(); });
  }
  *source = std::move(made);
  return Status::OK();
}

Status Source::OpenSecondary(Options options, const std::vector<ColumnFamilyDescriptor>& descriptors, const Status& busy) {
  std::string path = options_.secondary_path;
  if (path.empty()) {
    const char* const base = std::getenv("TMPDIR");
    temporary_path_ = std::string(base == nullptr ? "/tmp" : base) + "/braiddb-serve-XXXXXX";
    if (mkdtemp(temporary_path_.data()) == nullptr) {
      const std::string wanted = std::exchange(temporary_path_, std::string());
      return Status::IOError("cannot create " + wanted + "; name a directory with --secondary");
    }
    path = temporary_path_;
  }
  std::fprintf(stderr, "braiddb: %s is open in a program; copying it to %s\n", options_.path.c_str(), path.c_str());
  options.dram_budget = 0;
  const Status status = DB::OpenAsSecondary(options, options_.path, path, descriptors, &families_, &db_);
  if (!status.ok()) {
    return Status::Busy(std::string(busy.message()) + "; a copy beside the running program cannot be opened either (" +
                        status.ToString() +
                        "); close the database, or serve DB::GetMetrics from the program (examples/metrics.cc)");
  }
  is_secondary_ = true;
  return Status::OK();
}

Source::~Source() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  stops_counting_.store(true, std::memory_order_relaxed);
  if (worker_.joinable()) worker_.join();
  families_.clear();
  if (db_ != nullptr) (void)db_->Close();
  db_.reset();
  std::error_code error;
  if (!temporary_path_.empty()) fs::remove_all(temporary_path_, error);
}

void Source::Follow() {
  using Clock = std::chrono::steady_clock;
  constexpr int kPausePerWork = 9;  // a large database is not read all the time
  Clock::duration pause = options_.catch_up_interval;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return stopping_; })) {
    lock.unlock();
    const auto begin = Clock::now();
    const Status status = db_->TryCatchUpWithPrimary();
    pause = std::max<Clock::duration>(options_.catch_up_interval, kPausePerWork * (Clock::now() - begin));
    lock.lock();
    catch_up_status_ = status;
  }
}

// As DBImpl::AccountOneSegment, which a database that is open for reading does not call. Nothing else changes these counters
// there.
void Source::CountDead() {
  auto* const db = static_cast<DBImpl*>(db_.get());
  db->segments()->ForEachLog([this](Segment* segment) {
    if (segment->state() != SegmentState::kSealed) return;
    LogReader reader(*segment, segment->sealed_bytes());
    uint64_t entries = 0;
    uint64_t dead_bytes = 0;
    while (!stops_counting_.load(std::memory_order_relaxed)) {
      const LogEntry* const entry = reader.NextTrusted();
      if (entry == nullptr) {
        segment->dead_bytes.store(dead_bytes, std::memory_order_relaxed);
        segment->entries.store(entries, std::memory_order_relaxed);
        return;
      }
      ++entries;
      if (entry->is_obsolete()) dead_bytes += LogSpace(reader.entry_offset(), LogEntrySize(*entry));
    }
  });
}

Status Source::catch_up_status() const {
  const std::lock_guard lock(mutex_);
  return catch_up_status_;
}

ColumnFamilyHandle* Source::FindFamily(const std::string& name) const {
  for (const auto& family : families_) {
    if (family->GetName() == name) return family.get();
  }
  return nullptr;
}

std::vector<std::string> Source::LogLines(size_t count) const {
  std::vector<std::string> lines;
  std::ifstream file(options_.path + "/LOG", std::ios::binary | std::ios::ate);
  if (!file) return lines;
  const auto size = static_cast<size_t>(std::max<std::streamoff>(0, file.tellg()));
  const size_t begin = size - std::min(size, kMaxLogBytes);
  file.seekg(static_cast<std::streamoff>(begin));
  std::string line;
  if (begin > 0) std::getline(file, line);  // the rest of a line
  while (std::getline(file, line)) lines.push_back(line.substr(0, kMaxLineBytes));
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

}  // namespace braiddb::tools
