#include "check/doctor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "pmem/persist_mode.h"
#include "pmem/pool_maker.h"
#include "pmem/posix.h"
#include "pmem/region_files.h"
#include "util/numa_topology.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFewOpenFiles = 1024;   // a lower limit of open files is a note
constexpr uint64_t kTooFewOpenFiles = 64;  // a lower limit of open files needs a change

std::string FirstLine(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Returns the chosen word of a setting in /sys, such as madvise in "always [madvise] never".
std::string Chosen(const std::string& line) {
  const size_t begin = line.find('['), end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? line : line.substr(begin + 1, end - begin - 1);
}

// Maps a new file with MAP_SYNC. The file has no name (O_TMPFILE), or loses it at once, so that it is removed even if the
// process is killed.
int TryMapSync(const std::string& directory) {
  posix::Fd fd(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = posix::JoinPath(directory, "braiddb-doctor-XXXXXX");
    fd = posix::Fd(mkostemp(name.data(), O_CLOEXEC));
    if (fd.valid()) unlink(name.c_str());
  }
  if (!fd.valid()) return errno;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapping = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd.get(), 0);
  if (mapping == MAP_FAILED) return errno;
  munmap(mapping, page);
  return 0;
}

// Makes one diagnosis. Each method examines one topic and adds its findings.
class Doctor {
 public:
  Doctor(const DoctorOptions& options, Diagnosis* diagnosis) : options_(options), diagnosis_(diagnosis) {}

  Status FindExamined();
  Status Examine();

 private:
  void Add(DoctorLevel level, const char* topic, std::string what, std::string advice = {}) {
    diagnosis_->findings.push_back({level, topic, std::move(what), std::move(advice)});
  }
  std::string System(const std::string& path) const { return options_.system_root + path; }
  bool IsPersistentMemory() const;

  void ExamineMedia();
  void ExaminePlainDisk();
  void ExamineAccess();
  void ExamineMapSync();
  void ExamineFlushing();
  void ExamineNode();
  void ExamineShutdowns();
  void ExamineHugePages();
  void ExamineLimits();
  void ExamineSpace();
  void Conclude();

  const DoctorOptions& options_;
  Diagnosis* const diagnosis_;
  bool is_missing_ = false;
  bool is_file_ = false;
  bool may_write_ = true;
  bool maps_sync_ = false;
  uint64_t capacity_bytes_ = 0;
};

// Sets `examined` to the path, or to its nearest parent that exists, and finds the device.
Status Doctor::FindExamined() {
  std::error_code error;
  fs::path at = fs::absolute(diagnosis_->path, error);
  if (diagnosis_->path.empty() || error) return Status::InvalidArgument("the path is empty; name a directory");
  struct stat st;
  while (stat(at.c_str(), &st) != 0) {
    if ((errno != ENOENT && errno != ENOTDIR) || !at.has_relative_path())
      return posix::ErrnoStatus(errno, "examine", at.string());
    is_missing_ = true;
    at = at.parent_path();
  }
  diagnosis_->examined = at.string();
  is_file_ = !S_ISDIR(st.st_mode);
  return FindDevice(diagnosis_->examined, options_.system_root, &diagnosis_->device);
}

Status Doctor::Examine() {
  const Device& device = diagnosis_->device;
  if (is_missing_) Add(DoctorLevel::kGood, "path", "it does not exist; what is said is of " + diagnosis_->examined);
  if (is_file_ && device.kind != DeviceKind::kDeviceDax) {
    Add(DoctorLevel::kChange, "path", diagnosis_->examined + " is no directory", "name a directory, or a path that is free");
  }
  ExamineMedia();
  ExamineAccess();
  if (device.kind != DeviceKind::kDeviceDax) ExamineMapSync();
  ExamineFlushing();
  ExamineNode();
  ExamineShutdowns();
  ExamineHugePages();
  ExamineSpace();
  ExamineLimits();
  Conclude();
  return Status::OK();
}

// Returns true if all bottom devices are block devices of persistent memory.
bool Doctor::IsPersistentMemory() const {
  const auto& bottom = diagnosis_->device.bottom;
  const auto is_pmem = [](const std::string& directory) { return fs::path(directory).filename().string().starts_with("pmem"); };
  return !bottom.empty() && std::all_of(bottom.begin(), bottom.end(), is_pmem);
}

// A file system without DAX: tells a disk from persistent memory that is mounted or configured without DAX. Names of block
// devices in sector mode end with an 's'.
void Doctor::ExaminePlainDisk() {
  const std::string& name = diagnosis_->device.name;
  if (!IsPersistentMemory()) {
    Add(DoctorLevel::kNote, "dax",
        "the file system has no DAX: writes become durable by msync, page by page, and only with WriteOptions::sync",
        "for speed use a file system on persistent memory that is mounted with -o dax, see docs/MEDIA.md");
  } else if (name.ends_with('s')) {
    Add(DoctorLevel::kChange, "dax", name + " is persistent memory in sector mode, which has no DAX",
        "make the namespace anew with `ndctl create-namespace --mode=fsdax`; that removes what is on it");
  } else {
    Add(DoctorLevel::kChange, "dax", name + " is persistent memory, but the file system is mounted without DAX",
        "mount it with -o dax (or -o dax=always)");
  }
}

void Doctor::ExamineMedia() {
  const Device& device = diagnosis_->device;
  std::string what = NameOf(device.kind);
  if (!device.name.empty()) {
    what +=
        ", device " + device.name + " (" + std::to_string(device.major_number) + ":" + std::to_string(device.minor_number) + ")";
  }
  Add(DoctorLevel::kGood, "media", what);
  if (!device.mount_point.empty()) {
    Add(DoctorLevel::kGood, "mount",
        device.file_system + " on " + device.mount_point + " (" + device.mount_options + "), from " + device.mount_source);
  }
  std::string ignored;
  if (FindMountOption(device.mount_options, "ro", &ignored)) {
    Add(DoctorLevel::kChange, "mount", device.mount_point + " is mounted read-only", "mount it with -o remount,rw");
  }
  if (device.kind == DeviceKind::kMemory) {
    Add(DoctorLevel::kNote, "durability",
        "what is on " + device.file_system + " survives a crash of the process, and is lost with power and when it is unmounted",
        "for data that must stay, use persistent memory or a disk");
  } else if (device.kind == DeviceKind::kDisk) {
    ExaminePlainDisk();
  } else if (device.kind == DeviceKind::kDeviceDax) {
    Add(DoctorLevel::kNote, "media", "it has no file system: one region takes all of it, and cannot grow",
        "name the device in Options::region_paths, and give the database a directory on a file system; for regions that grow use "
        "`ndctl create-namespace --mode=fsdax` and mount -o dax, see docs/MEDIA.md");
  }
}

void Doctor::ExamineAccess() {
  if (diagnosis_->device.kind == DeviceKind::kDeviceDax) {
    if (access(diagnosis_->examined.c_str(), R_OK | W_OK) == 0) return;
    return Add(DoctorLevel::kChange, "permission", diagnosis_->examined + " cannot be opened: " + std::strerror(errno),
               "give the user permission to read and to write");
  }
  may_write_ = !is_file_ && access(diagnosis_->examined.c_str(), W_OK | X_OK) == 0;
  if (may_write_ || is_file_) return;
  Add(DoctorLevel::kChange, "permission", "files cannot be made in " + diagnosis_->examined + ": " + std::strerror(errno),
      "run as its owner, or give the user write permission");
}

// Only a trial mapping tells whether the kernel grants MAP_SYNC. EOPNOTSUPP and EINVAL are refusals; another errno is a problem
// of the file.
void Doctor::ExamineMapSync() {
  const DeviceKind kind = diagnosis_->device.kind;
  if (!may_write_) return Add(DoctorLevel::kGood, "map_sync", "not tried, since no file can be made there");
  const int error = options_.try_map_sync ? options_.try_map_sync(diagnosis_->examined) : TryMapSync(diagnosis_->examined);
  maps_sync_ = error == 0;
  if (maps_sync_) return Add(DoctorLevel::kGood, "map_sync", "accepted: flushed cache lines are durable");
  const std::string refused = std::string("refused: ") + std::strerror(error);
  if (error != EOPNOTSUPP && error != EINVAL) {
    return Add(DoctorLevel::kChange, "map_sync", "no file could be mapped: " + std::string(std::strerror(error)),
               "make that possible first");
  }
  if (kind != DeviceKind::kDax) return Add(DoctorLevel::kGood, "map_sync", refused);
  Add(DoctorLevel::kChange, "map_sync", refused + ", although it is mounted with DAX",
      "use ext4 or xfs on a namespace of mode fsdax; others, such as virtiofs, cannot promise that flushed lines are durable");
}

// Decides as PMDK does: eADR counts only if the persistence domain of all regions of persistent memory includes the CPU caches.
void Doctor::ExamineFlushing() {
  const DeviceKind kind = diagnosis_->device.kind;
  PersistMode& mode = diagnosis_->persist_mode;
  mode = kind == DeviceKind::kMemory ? PersistMode::kEmulated : PersistMode::kPage;
  if (kind == DeviceKind::kMemory) {
    return Add(DoctorLevel::kGood, "persist_mode", "emulated: lines are flushed as on persistent memory, and nothing is durable");
  }
  if (!maps_sync_ && kind != DeviceKind::kDeviceDax) {
    return Add(DoctorLevel::kGood, "persist_mode", "page: without MAP_SYNC, msync is what makes pages durable");
  }
  size_t regions = 0;
  std::string without;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(System("/sys/bus/nd/devices"), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("region")) continue;
    const std::string domain = FirstLine((entry.path() / "persistence_domain").string());
    ++regions;
    if (domain != "cpu_cache") without = name + " says " + (domain.empty() ? "nothing" : domain);
  }
  if (regions != 0 && without.empty()) {
    mode = PersistMode::kEadr;
    Add(DoctorLevel::kGood, "persist_mode", "eadr: persistence_domain of all regions is cpu_cache, so caches need no flush");
  } else {
    mode = PersistMode::kCacheLine;
    const std::string why = regions == 0 ? "the system names no persistence domain" : "of persistence domains " + without;
    Add(DoctorLevel::kGood, "persist_mode", "cache-line: " + why + ", so lines are flushed one by one");
  }
}

void Doctor::ExamineNode() {
  const Device& device = diagnosis_->device;
  const NumaTopology topology = NumaTopology::Read(options_.system_root);
  const size_t nodes = topology.system_nodes().size();
  if (device.numa_node != kUnknownNumaNode) {
    Add(DoctorLevel::kGood, "numa",
        "node " + std::to_string(device.numa_node) + " of " + std::to_string(nodes) + ", says " + device.numa_node_from);
  } else if (nodes == 1) {
    Add(DoctorLevel::kGood, "numa", "the machine has one node");
  } else if (device.kind == DeviceKind::kMemory) {
    Add(DoctorLevel::kGood, "numa", "a database puts its regions on the " + std::to_string(nodes) + " nodes in turn");
  } else {
    Add(DoctorLevel::kNote, "numa", "the system does not say on which of its " + std::to_string(nodes) + " nodes the device is",
        "if you know it, name it in Options::region_nodes");
  }
}

// Lists the modules' counts of unsafe shutdowns, and the modules with flags of the firmware. The region above a device lists
// its modules in the files mappingN, such as "nmem0,0,17179869184,0".
void Doctor::ExamineShutdowns() {
  const DeviceKind kind = diagnosis_->device.kind;
  if (kind != DeviceKind::kDax && kind != DeviceKind::kDeviceDax) return;
  std::string counts, broken;
  for (const std::string& bottom : diagnosis_->device.bottom) {
    fs::path region = bottom;
    std::error_code error;
    while (region.has_relative_path() && !fs::exists(region / "mappings", error)) region = region.parent_path();
    for (int i = 0; fs::exists(region / ("mapping" + std::to_string(i)), error); ++i) {
      const std::string line = FirstLine((region / ("mapping" + std::to_string(i))).string());
      const std::string module = line.substr(0, line.find(','));
      const std::string nfit = System("/sys/bus/nd/devices/" + module + "/nfit");
      const std::string count = FirstLine(nfit + "/dirty_shutdown");
      if (!count.empty()) counts += (counts.empty() ? "" : ", ") + module + " " + count;
      const std::string flags = FirstLine(nfit + "/flags");
      if (flags.find_first_not_of(' ') != std::string::npos) broken += (broken.empty() ? "" : ", ") + module + ": " + flags;
    }
  }
  Add(DoctorLevel::kGood, "unsafe_shutdowns",
      counts.empty() ? "the modules have no count of them" : "counts of the modules: " + counts);
  if (broken.empty()) return;
  Add(DoctorLevel::kChange, "health", "the firmware reports " + broken, "look at `ndctl list -DH`, and replace what has failed");
}

void Doctor::ExamineHugePages() {
  const std::string directory = System("/sys/kernel/mm/transparent_hugepage");
  const std::string enabled = Chosen(FirstLine(directory + "/enabled"));
  if (enabled == "always" || enabled == "madvise") {
    Add(DoctorLevel::kGood, "huge_pages", "transparent huge pages: " + enabled);
  } else {
    Add(DoctorLevel::kNote, "huge_pages", "transparent huge pages: " + (enabled.empty() ? "not there" : enabled),
        "for faster reads of large databases: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  }
  if (diagnosis_->device.kind != DeviceKind::kMemory) return;
  const std::string shared = Chosen(FirstLine(directory + "/shmem_enabled"));
  Add(DoctorLevel::kGood, "huge_pages", "of files in memory: " + (shared.empty() ? "not there" : shared));
}

// A region begins with one part; a dax device is taken as a whole.
void Doctor::ExamineSpace() {
  diagnosis_->first_part_bytes = kSmallPartBytes;
  if (diagnosis_->device.kind == DeviceKind::kDeviceDax) {
    for (const std::string& bottom : diagnosis_->device.bottom)
      capacity_bytes_ += std::strtoull(FirstLine(bottom + "/size").c_str(), nullptr, 10);
    diagnosis_->first_part_bytes = diagnosis_->available_bytes = capacity_bytes_;
    return Add(DoctorLevel::kGood, "space", "the device has " + MiB(capacity_bytes_));
  }
  struct statvfs space;
  if (statvfs(diagnosis_->examined.c_str(), &space) != 0) {
    return Add(DoctorLevel::kNote, "space", std::string("not known: ") + std::strerror(errno), "look at it with df");
  }
  diagnosis_->available_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  capacity_bytes_ = uint64_t{space.f_blocks} * space.f_frsize;
  const std::string what = MiB(diagnosis_->available_bytes) + " of " + MiB(capacity_bytes_) + " are free";
  if (diagnosis_->available_bytes >= diagnosis_->first_part_bytes) return Add(DoctorLevel::kGood, "space", what);
  Add(DoctorLevel::kChange, "space", what + ", and a region begins with " + MiB(diagnosis_->first_part_bytes),
      "free space there");
}

// Open files, locked memory and address space. Each region reserves address space for the capacity of its file system.
void Doctor::ExamineLimits() {
  const auto limit = [](auto which) {
    rlimit value{};
    return getrlimit(which, &value) == 0 ? value.rlim_cur : RLIM_INFINITY;
  };
  const rlim_t files = limit(RLIMIT_NOFILE);
  const std::string open_files = "open files: " + (files == RLIM_INFINITY ? "no limit" : std::to_string(files));
  if (files < kFewOpenFiles) {
    Add(files < kTooFewOpenFiles ? DoctorLevel::kChange : DoctorLevel::kNote, "limits", open_files,
        "raise it with ulimit -n " + std::to_string(kFewOpenFiles));
  } else {
    Add(DoctorLevel::kGood, "limits", open_files);
  }
  const rlim_t locked = limit(RLIMIT_MEMLOCK);
  Add(DoctorLevel::kGood, "limits",
      "locked memory: " + (locked == RLIM_INFINITY ? "no limit" : std::to_string(locked >> 10) + " KiB") +
          "; a database locks none");
  const rlim_t address_space = limit(RLIMIT_AS);
  if (address_space == RLIM_INFINITY) return Add(DoctorLevel::kGood, "limits", "address space: no limit");
  const std::string what = "address space: " + MiB(address_space);
  if (address_space > capacity_bytes_ + (capacity_bytes_ >> 2)) return Add(DoctorLevel::kGood, "limits", what);
  Add(DoctorLevel::kChange, "limits",
      what + ", and each region reserves the capacity of its file system, " + MiB(capacity_bytes_),
      "raise it with ulimit -v, or set Options::max_region_size to what the data needs");
}

// Adds the finding that says how a database there would work.
void Doctor::Conclude() {
  const Device& device = diagnosis_->device;
  if (is_file_ && device.kind != DeviceKind::kDeviceDax) return;
  std::string what = std::string("a database here uses persist_mode ") + NameOf(diagnosis_->persist_mode);
  if (device.numa_node != kUnknownNumaNode) {
    what += ", is written by threads of NUMA node " + std::to_string(device.numa_node);
  }
  const bool is_device = device.kind == DeviceKind::kDeviceDax;
  Add(DoctorLevel::kGood, "database",
      what + (is_device ? ", and its region has " : ", and begins with ") + MiB(diagnosis_->first_part_bytes) +
          (is_device ? "" : " for each region"));
}

}  // namespace

bool Diagnosis::needs_change() const {
  return std::any_of(findings.begin(), findings.end(), [](const auto& finding) { return finding.level == DoctorLevel::kChange; });
}

Status Diagnose(const std::string& path, const DoctorOptions& options, Diagnosis* diagnosis) {
  *diagnosis = Diagnosis();
  diagnosis->path = path;
  Doctor doctor(options, diagnosis);
  Status status = doctor.FindExamined();
  return status.ok() ? doctor.Examine() : status;
}

const char* NameOf(DoctorLevel level) {
  switch (level) {
    case DoctorLevel::kGood:
      return "good";
    case DoctorLevel::kNote:
      return "note";
    case DoctorLevel::kChange:
      return "change";
  }
  return "unknown";
}

}  // namespace braiddb
