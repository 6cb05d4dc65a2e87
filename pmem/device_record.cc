#include "pmem/device_record.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "pmem/checked_text.h"
#include "pmem/device.h"
#include "pmem/device_record_for_test.h"
#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRecordBytes = 1u << 20;
constexpr std::string_view kDevicesTitle = "braiddb-devices 1\n";
constexpr std::string_view kInUse = "state in-use\n";
constexpr std::string_view kClosed = "state closed\n";
constexpr std::string_view kModule = "module ";
// Directories of a module in /sys that hold its identity and its count, one for each kind of platform.
constexpr const char* kBuses[] = {"nfit", "papr", "cxl"};

// The prefix that SetDeviceRootForTest has set.
std::string& DeviceRoot() {
  static std::string root;
  return root;
}

// Removes the prefix from the text. Returns false if the text begins otherwise.
bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// Moves the text before `end` to *word, and removes `end`. Returns false if there is no `end`.
bool TakeUntil(char end, std::string_view* text, std::string_view* word) {
  const size_t length = text->find(end);
  if (length == std::string_view::npos) return false;
  *word = text->substr(0, length);
  text->remove_prefix(length + 1);
  return true;
}

// Returns the decimal number that the text is; none for every other text, such as an empty one.
std::optional<uint64_t> ParseCount(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count;
}

// Parses and removes one line of a module. The identity is the rest of the line, so it may hold blanks.
bool ParseModule(std::string_view* text, MemoryModule* module) {
  std::string_view name, count, identity;
  if (!TakePrefix(kModule, text) || !TakeUntil(' ', text, &name) || !TakeUntil(' ', text, &count) ||
      !TakeUntil('\n', text, &identity)) {
    return false;
  }
  module->name = name;
  module->unsafe_shutdowns = ParseCount(count);
  module->identity = identity;
  return module->unsafe_shutdowns.has_value() || count == "-";
}

// Returns the first line of a file in /sys; "" if there is none.
std::string FirstLine(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Returns true for the name of a region of modules, such as "region0"; false for "region0.1" and others.
bool IsRegion(const std::string& name) {
  constexpr std::string_view kRegion = "region";
  return name.starts_with(kRegion) && ParseCount(std::string_view(name).substr(kRegion.size())).has_value();
}

// Reads identity and count of a module from the first bus that has an identity. A module without one has an empty identity.
MemoryModule ReadModule(const fs::path& directory) {
  MemoryModule module;
  module.name = directory.filename();
  for (const char* bus : kBuses) {
    module.identity = FirstLine(directory / bus / "id");
    if (module.identity.empty()) continue;
    module.unsafe_shutdowns = ParseCount(FirstLine(directory / bus / "dirty_shutdown"));
    break;
  }
  return module;
}

// Appends the modules of a device. In /sys a block or dax device of persistent memory lies below its region, and the modules
// lie beside the region. Each file mappingN of the region names one module before its first comma.
void AddModulesOf(fs::path device, std::vector<MemoryModule>* modules) {
  while (device.has_relative_path() && !IsRegion(device.filename())) device = device.parent_path();
  for (int i = 0; IsRegion(device.filename()); ++i) {
    const std::string mapping = FirstLine(device / ("mapping" + std::to_string(i)));
    if (mapping.empty()) return;
    MemoryModule module = ReadModule(device.parent_path() / mapping.substr(0, mapping.find(',')));
    if (!module.identity.empty()) modules->push_back(std::move(module));
  }
}

// Texts of messages: a count, and a module with the device to which it belongs.
std::string CountText(const std::optional<uint64_t>& count) { return count.has_value() ? std::to_string(*count) : "unknown"; }

std::string NameOfModule(const MemoryModule& module, const std::string& device) {
  return "memory module " + module.name + " (" + module.identity + ")" + (device.empty() ? "" : " of " + device);
}

}  // namespace

void SetDeviceRootForTest(const std::string& root) { DeviceRoot() = root; }

// ---- The record

std::string DeviceRecord::ToText() const {
  std::string text{kDevicesTitle};
  text += in_use ? kInUse : kClosed;
  for (const MemoryModule& module : modules) {
    const std::string count = module.unsafe_shutdowns.has_value() ? std::to_string(*module.unsafe_shutdowns) : "-";
    text.append(kModule).append(module.name).append(" ").append(count).append(" ").append(module.identity).append("\n");
  }
  return WithChecksum(std::move(text));
}

// The text is consumed from its front: title, state, one line for each module.
Status DeviceRecord::Parse(std::string_view text, const std::string& path, DeviceRecord* record) {
  const auto damaged = [&] { return Status::Corruption("the record of memory modules " + path + " is damaged"); };
  // The checksum is checked first, so everything behind it was written by ToText.
  *record = DeviceRecord();
  if (!CheckedBody(text, &text)) return damaged();
  if (!TakePrefix(kDevicesTitle, &text)) return damaged();
  record->in_use = TakePrefix(kInUse, &text);
  if (!record->in_use && !TakePrefix(kClosed, &text)) return damaged();
  while (!text.empty()) {
    if (!ParseModule(&text, &record->modules.emplace_back())) return damaged();
  }
  return Status::OK();
}

// Devices can share modules (interleave sets), so modules are sorted and made unique.
Status FindMemoryModules(const std::string& directory, std::vector<MemoryModule>* modules, std::string* device) {
  modules->clear();
  Device found;
  const std::string part = posix::JoinPath(directory, PartName(0));  // may be a link to a device or another file system
  const std::string& place = posix::Exists(part) ? part : directory;
  if (Status status = FindDevice(place, DeviceRoot(), &found); !status.ok()) return status;
  *device = found.name;
  for (const std::string& bottom : found.bottom) AddModulesOf(bottom, modules);
  const auto by_identity = [](const MemoryModule& a, const MemoryModule& b) { return a.identity < b.identity; };
  std::sort(modules->begin(), modules->end(), by_identity);
  const auto same = [](const MemoryModule& a, const MemoryModule& b) { return a.identity == b.identity; };
  modules->erase(std::unique(modules->begin(), modules->end(), same), modules->end());
  return Status::OK();
}

// A module without a count is skipped: on such a machine an unsafe shutdown cannot be detected.
std::string FindUnsafeShutdown(const DeviceRecord& record, const std::vector<MemoryModule>& now, const std::string& device) {
  if (!record.in_use) return "";
  for (const MemoryModule& before : record.modules) {
    const auto is_it = [&](const MemoryModule& module) { return module.identity == before.identity; };
    const auto found = std::find_if(now.begin(), now.end(), is_it);
    if (found == now.end()) {
      return "it was not closed on " + NameOfModule(before, "") + ", and is on " +
             (now.empty() ? "another device" : NameOfModule(now[0], device)) + " now: what was written last may be missing";
    }
    if (before.unsafe_shutdowns.has_value() && found->unsafe_shutdowns.has_value() &&
        *found->unsafe_shutdowns > *before.unsafe_shutdowns) {
      return NameOfModule(*found, device) + " counts " + CountText(found->unsafe_shutdowns) + " unsafe shutdowns, and " +
             CountText(before.unsafe_shutdowns) +
             " when the region was opened last, which was not closed since: " + "what was written may be lost";
    }
  }
  return "";
}

Status UnsafeShutdown(const std::string& directory, const std::string& what) {
  return Status::Corruption("the region in " + directory + ": " + what +
                            "; run `braiddb check`. If it finds nothing else, `braiddb check --acknowledge-unsafe-shutdown` lets "
                            "the database open again; else restore a copy, or run `braiddb repair`");
}

// ---- The record of a region

// A region on media whose devices cannot be found, for example without /proc, is opened without a record: the check is a help,
// and no reason to refuse a database.
Status RegionDevices::Load(std::optional<DeviceRecord>* stored) {
  stored->reset();
  const Status found = FindMemoryModules(directory_, &modules_, &device_);
  known_ = found.ok();
  if (!known_) {
    if (log_) log_("cannot find the memory modules: " + found.ToString());
    return Status::OK();
  }
  const std::string path = posix::JoinPath(directory_, kDeviceRecordName);
  std::string text;
  Status status = posix::ReadSmallFile(path, kMaxRecordBytes, &text);
  if (status.IsNotFound()) return Status::OK();
  if (status.ok()) status = DeviceRecord::Parse(text, path, &stored->emplace());
  return status;
}

// A damaged record counts like an unsafe shutdown: it cannot tell that nothing was lost.
Status RegionDevices::Examine(std::string* what) {
  what->clear();
  std::optional<DeviceRecord> stored;
  const Status status = Load(&stored);
  if (status.IsCorruption()) *what = status.message();
  if (status.ok() && stored.has_value()) *what = FindUnsafeShutdown(*stored, modules_, device_);
  return status.IsCorruption() ? Status::OK() : status;
}

// CRASH  after the record is durable and before PMDK opens the pool: the next open compares counts, which have not changed.
Status RegionDevices::Enter() {
  std::string what;
  if (Status status = Examine(&what); !status.ok()) return status;
  return what.empty() ? Store(true) : UnsafeShutdown(directory_, what);
}

// A full file system is no reason to refuse an open. This session then has no record, and its unsafe shutdowns go undetected.
Status RegionDevices::Store(bool in_use) {
  const std::string path = posix::JoinPath(directory_, kDeviceRecordName);
  if (!known_) return Status::OK();
  if (modules_.empty()) return posix::Exists(path) ? posix::Remove(path) : Status::OK();  // copied from other media
  DeviceRecord record;
  record.in_use = in_use;
  record.modules = modules_;
  const Status status = posix::ReplaceSmallFile(directory_, kDeviceRecordName, record.ToText());
  recorded_ = status.ok() && in_use;
  if (!status.IsNoSpace()) return status;
  if (log_) log_("memory modules are not recorded: " + status.ToString());
  return Status::OK();
}

Status RegionDevices::BeforeGrowth() {
  if (!recorded_) return Status::OK();
  const std::vector<MemoryModule> before = modules_;
  if (Status status = FindMemoryModules(directory_, &modules_, &device_); !status.ok()) return status;
  return modules_ == before ? Status::OK() : Store(true);
}

// REQUIRES: PMDK has closed the pool, and Persistence has not failed.
void RegionDevices::Leave() {
  if (!recorded_) return;
  const Status status = Store(false);
  if (!status.ok() && log_) log_("the record of memory modules does not say that the region was closed: " + status.ToString());
}

// Ignores a damaged record: the user has decided to replace it.
Status RegionDevices::Acknowledge() {
  std::optional<DeviceRecord> ignored;
  if (Status status = Load(&ignored); !status.ok() && !status.IsCorruption()) return status;
  return Store(false);
}

}  // namespace braiddb
