// power_cut_client: one life of a database between two power cuts. Runs in the virtual machine of scripts/test-vm.
//
// The host keeps the oracle: which writes of each thread were acknowledged, and which were lost with an earlier cut. The client
// opens the database and compares its content with the state that follows from these numbers. One write of each thread can be
// pending at a cut: it is there whole, or not at all. Then the client writes until the power goes, and reports each acknowledged
// write before it begins the next write of the thread.
//
// Lines that it writes to the I/O port, byte by byte. A byte is on the host when the instruction has ended.
//   opened <milliseconds>     the database is open
//   found <thread> <write>    the content is that after this write
//   violation <text>          the content is wrong, or a call failed; the client ends
//   ack <thread> <write>      acknowledged
//   size <bytes>              of all parts of all regions, when it has changed
//   full <thread>             NoSpace; the thread writes no more
// A client that is killed leaves a part of a line. So each line begins with a line end, and a whole one ends with a semicolon.
#include <sys/io.h>
#include <unistd.h>

#include <atomic>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/vm/power_cut_model.h"

namespace braiddb::vm {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr uint16_t kReportPort = 0xe9;  // as in machine.py

struct Flags {
  std::string db;
  std::vector<std::string> region_paths;
  uint64_t seed = 0;
  std::vector<uint64_t> acknowledged;  // the last write of each thread; its size is the number of threads
  std::vector<std::string> lost;       // <thread>:<write>, not there after an earlier cut
  uint64_t max_writes = 0;
  bool destroy = false;
  std::string say;
};

class Client {
 public:
  explicit Client(const Flags& flags) : flags_(flags) {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    if (flags_.region_paths.empty()) options_.regions = 2;
    options_.region_paths = flags_.region_paths;
    options_.memtable_size = 1 << 20;
    options_.lookup_cache_size = 4 << 20;
    options_.segment_size = 1 << 20;
    for (uint32_t thread = 0; thread < flags.acknowledged.size(); ++thread) models_.emplace_back(flags.seed, thread);
  }

  int Run() {
    if (ioperm(kReportPort, 1, 1) != 0) return 2;  // also for threads that are begun from now on
    if (!flags_.say.empty()) {
      Say(flags_.say);
      return 0;
    }
    if (flags_.destroy && !Ok(DB::Destroy(options_, flags_.db), "Destroy")) return 1;
    if (!Open()) return 1;
    for (uint32_t thread = 0; thread < models_.size(); ++thread) {
      if (!Verify(thread)) return 1;
    }
    std::vector<std::thread> threads;
    running_ = models_.size();
    for (uint32_t thread = 0; thread < models_.size(); ++thread) threads.emplace_back([this, thread] { Write(thread); });
    while (running_ > 0) {
      ReportSize();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (std::thread& thread : threads) thread.join();
    ReportSize();
    if (failed_) return 1;
    handles_.clear();
    return Ok(db_->Close(), "Close") ? 0 : 1;
  }

 private:
  void Say(const std::string& line) {
    const std::lock_guard<std::mutex> lock(port_mutex_);
    for (const char c : "\n" + line + ";\n") outb(static_cast<unsigned char>(c), kReportPort);
  }

  bool Violation(const std::string& text) {
    failed_ = true;
    Say("violation " + text);
    return false;
  }

  bool Ok(const Status& status, const std::string& what) { return status.ok() || Violation(what + ": " + status.ToString()); }

  bool Open() {
    std::vector<ColumnFamilyDescriptor> families(kFamilies);
    families[0].name = "default";
    families[1].name = "other";
    const auto begin = std::chrono::steady_clock::now();
    if (!Ok(DB::Open(options_, flags_.db, families, &handles_, &db_), "Open")) return false;
    const auto taken = std::chrono::steady_clock::now() - begin;
    Say("opened " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
    return true;
  }

  // ---- What the cut has left

  bool Verify(uint32_t thread) {
    const PowerCutModel& model = models_[thread];
    PowerCutModel::State found;
    if (!Scan(model, &found)) return false;
    PowerCutModel::State expected;
    const uint64_t acknowledged = flags_.acknowledged[thread];
    const std::set<uint64_t> lost = LostOf(thread);
    for (uint64_t write = 1; write <= acknowledged; ++write) {
      if (!lost.contains(write)) model.Apply(write, &expected);
    }
    uint64_t last = acknowledged;
    if (found != expected) {
      PowerCutModel::State with_pending = expected;
      model.Apply(++last, &with_pending);
      if (found != with_pending) return Violation(Difference(thread, expected, found));
      expected = std::move(with_pending);
    }
    if (!CheckGets(model, expected)) return false;
    Say("found " + std::to_string(thread) + " " + std::to_string(last));
    next_.push_back(acknowledged + 2);  // the number of the pending write is not used again
    return true;
  }

  std::set<uint64_t> LostOf(uint32_t thread) const {
    std::set<uint64_t> lost;
    const std::string prefix = std::to_string(thread) + ":";
    for (const std::string& entry : flags_.lost) {
      if (entry.starts_with(prefix)) lost.insert(std::stoull(entry.substr(prefix.size())));
    }
    return lost;
  }

  bool Scan(const PowerCutModel& model, PowerCutModel::State* found) {
    ReadOptions options;
    options.verify_checksums = true;
    const std::string prefix = model.prefix();
    options.prefix = Slice(prefix);
    for (uint32_t family = 0; family < kFamilies; ++family) {
      const std::unique_ptr<Iterator> iterator = db_->NewIterator(options, handles_[family].get());
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        const std::string key(iterator->key());
        Origin origin;
        if (!model.OriginOf(iterator->value(), &origin)) return Violation("the value of " + key + " is not whole");
        (*found)[{family, key}] = origin;
      }
      if (!Ok(iterator->status(), "scan")) return false;
    }
    return true;
  }

  // One key in eight is also read by Get.
  bool CheckGets(const PowerCutModel& model, const PowerCutModel::State& expected) {
    uint64_t count = 0;
    for (const auto& [key, origin] : expected) {
      if (++count % 8 != 0) continue;
      std::string value;
      if (!Ok(db_->Get(ReadOptions(), handles_[key.first].get(), key.second, &value), "Get of " + key.second)) return false;
      Origin found;
      if (!model.OriginOf(value, &found) || found != origin) return Violation("Get of " + key.second + " gives another value");
    }
    return true;
  }

  std::string Difference(uint32_t thread, const PowerCutModel::State& expected, const PowerCutModel::State& found) const {
    std::string text = "thread " + std::to_string(thread) + " after write " + std::to_string(flags_.acknowledged[thread]) + ":";
    uint64_t count = 0;
    auto add = [&](const std::string& what, const auto& entry) {
      if (++count > 6) return;
      text += " " + what + " " + std::to_string(entry.first.first) + ":" + entry.first.second + " of write " +
              std::to_string(entry.second.write) + ";";
    };
    for (const auto& entry : expected) {
      const auto at = found.find(entry.first);
      if (at == found.end()) add("missing", entry);
      if (at != found.end() && at->second != entry.second) add("other value of", *at);
    }
    for (const auto& entry : found) {
      if (!expected.contains(entry.first)) add("unexpected", entry);
    }
    return text + " " + std::to_string(count) + " differences in all";
  }

  // ---- Writing

  void Write(uint32_t thread) {
    const PowerCutModel& model = models_[thread];
    uint64_t write = next_[thread];
    for (uint64_t done = 0; flags_.max_writes == 0 || done < flags_.max_writes; ++done, ++write) {
      const std::vector<Change> changes = model.ChangesOf(write);
      WriteBatch batch;
      for (uint32_t i = 0; i < changes.size(); ++i) {
        const ColumnFamilyHandle* family = handles_[changes[i].family].get();
        if (changes[i].deletion) {
          batch.Delete(family, changes[i].key);
        } else {
          batch.Put(family, changes[i].key, model.Value({write, i}));
        }
      }
      const Status status = db_->Write(WriteOptions(), batch);
      if (status.IsNoSpace()) {
        Say("full " + std::to_string(thread));
        break;
      }
      if (!Ok(status, "Write")) break;
      Say("ack " + std::to_string(thread) + " " + std::to_string(write));
    }
    --running_;
  }

  void ReportSize() {
    uint64_t size = 0;
    std::error_code error;
    for (const std::string& path : flags_.region_paths.empty() ? std::vector<std::string>{flags_.db} : flags_.region_paths) {
      for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        if (at->path().extension() == ".pmem") size += at->file_size(error);
      }
    }
    if (size != size_) Say("size " + std::to_string(size));
    size_ = size;
  }

  const Flags flags_;
  Options options_;
  std::mutex port_mutex_;
  std::vector<PowerCutModel> models_;
  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::vector<uint64_t> next_;  // the first write of each thread in this life
  std::atomic<uint64_t> running_{0};
  std::atomic<bool> failed_{false};
  uint64_t size_ = 0;
};

}  // namespace
}  // namespace braiddb::vm

int main(int argc, char** argv) {
  braiddb::vm::Flags flags;
  namespace po = boost::program_options;
  po::options_description known("power_cut_client: one life of a database between two power cuts; see scripts/test-vm");
  auto add = known.add_options();
  add("help", "print this and end");
  add("db", po::value(&flags.db), "directory of the database");
  add("say", po::value(&flags.say)->default_value(""), "write this line to the I/O port, and end");
  add("region_path", po::value(&flags.region_paths), "a directory or a device for a region");
  add("seed", po::value(&flags.seed), "of all writes, the same in all lives of a database");
  add("acknowledged", po::value(&flags.acknowledged), "a thread, and its last acknowledged write; 0: none");
  add("lost", po::value(&flags.lost), "<thread>:<write>, a write that an earlier life did not find");
  add("destroy", po::bool_switch(&flags.destroy), "first destroy the database that is there");
  add("max_writes", po::value(&flags.max_writes), "of each thread, after which the client closes the database; 0: no limit");
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(known).run(), values);
    if (values.count("help") != 0) {
      std::cout << known << std::flush;
      return 0;
    }
    po::notify(values);
  } catch (const std::exception& error) {
    std::cerr << "power_cut_client: " << error.what() << "; --help lists the flags\n";
    return 2;
  }
  return braiddb::vm::Client(flags).Run();
}
