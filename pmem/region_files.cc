#include "pmem/region_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "pmem/checked_text.h"
#include "pmem/database_file.h"
#include "pmem/dax_device.h"
#include "pmem/device_record.h"
#include "pmem/free_ranges.h"
#include "pmem/layout.h"
#include "pmem/part_blocks.h"
#include "pmem/pool_format.h"
#include "pmem/pool_maker.h"
#include "util/check.h"
#include "util/deferred_syncs.h"
#include "util/file.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

constexpr size_t kMaxMarkBytes = 64u << 10;
constexpr uint64_t kStatBlockBytes = 512;  // unit of stat::st_blocks

constexpr const char* kUnfinishedMark = "CREATING.tmp";
constexpr std::string_view kMarkTitle = "The creation of this database is not complete. It holds no data yet.";

bool IsPartFile(const std::string& name) { return name.ends_with(".pmem"); }
bool IsPartName(const std::string& name) {
  return name.size() == PartName(0).size() && IsPartFile(name) &&
         std::all_of(name.begin(), name.begin() + 6, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns true for a name that this folder gives to a file, also with the suffix of a temporary file.
bool IsOurs(std::string name) {
  if (name.ends_with(".tmp")) name.resize(name.size() - 4);
  return name == "region.set" || name == "PARTS" || name == kDeviceRecordName || name == "CREATING" || IsPartName(name);
}

// Returns true if the file is a mark that was being written: a prefix of a mark, or a mark with more behind it. A file with
// other bytes under this name belongs to the user.
bool IsUnfinishedMark(const std::string& path) {
  std::string text;
  if (!posix::ReadSmallFile(path, kMaxMarkBytes, &text).ok()) return false;
  return kMarkTitle.starts_with(text) || text.starts_with(kMarkTitle);
}

bool ParseMark(std::string_view text, RegionIdentity* identity) {
  const std::vector<std::string> lines = CheckedLines(text);
  return lines.size() == 3 && lines[0] == kMarkTitle &&
         std::sscanf(lines[1].c_str(), "database %" SCNx64, &identity->database_id) == 1 && lines[2].starts_with("path ") &&
         UnescapePath(lines[2].substr(5), &identity->database_path);
}

uint64_t BlockBytes(const struct stat& file) { return static_cast<uint64_t>(file.st_blocks) * kStatBlockBytes; }

template <class T>
bool ReadAt(int fd, uint64_t offset, T* value) {
  return ReadPartAt(fd, value, sizeof(T), offset) == static_cast<int64_t>(sizeof(T));
}

}  // namespace

Status RegionFiles::Lock() {
  posix::Fd fd(OpenGuarded(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open directory", directory_);
  if (LockFile(fd.get(), LOCK_EX) == EWOULDBLOCK) {
    return Status::Busy(directory_ + " is in use; close the database in the process that has it open");
  }
  // Other errors of LockFile mean that the file system has no locks for directories. PMDK locks the parts as well.
  lock_ = std::move(fd);
  return Status::OK();
}

Status RegionFiles::FindFiles(bool* found) const {
  std::vector<std::string> names;
  Status status = posix::List(directory_, &names);
  *found = std::any_of(names.begin(), names.end(), [this](const std::string& name) {
    return IsOurs(name) && !(name == kUnfinishedMark && IsUnfinishedMark(Path(name)));
  });
  return status;
}

bool RegionFiles::CreationUnfinished() const { return posix::Exists(creating_path()); }

// CREATING is read first: an unfinished creation may have written PARTS already.
Status RegionFiles::ReadIdentity(RegionIdentity* identity) const {
  *identity = RegionIdentity();
  bool found = false;
  Status status = FindFiles(&found);
  if (status.IsNotFound() || !found) return status.IsNotFound() ? Status::OK() : status;
  identity->kind = RegionIdentity::Kind::kUnknown;
  std::string text;
  status = posix::ReadSmallFile(creating_path(), kMaxMarkBytes, &text);
  if (status.ok() && ParseMark(text, identity)) identity->kind = RegionIdentity::Kind::kCreating;
  if (!status.IsNotFound()) return status;
  PartList list;
  status = posix::ReadSmallFile(Path("PARTS"), kMaxPartListBytes, &text);
  if (status.ok() && PartList::Parse(text, Path("PARTS"), &list).ok()) {
    identity->kind = RegionIdentity::Kind::kRegion;
    identity->database_id = list.database_id;
  }
  return status.ok() || status.IsNotFound() || status.IsCorruption() ? Status::OK() : status;
}

// The mark is text that a person can read: a title, the identity, the directory of the database, and a checksum.
Status RegionFiles::WriteCreatingMark(uint64_t database_id, const std::string& database_path) {
  char id[48];
  std::snprintf(id, sizeof id, "\ndatabase %016" PRIx64 "\npath ", database_id);
  const std::string text = std::string(kMarkTitle) + id + EscapePath(database_path) + "\n";
  return posix::ReplaceSmallFile(directory_, "CREATING", WithChecksum(text));
}

Status RegionFiles::RemoveCreatingMark() {
  if (BRAIDDB_MUTANT("creating-mark-stays")) return Status::OK();
  if (Status status = posix::Remove(creating_path()); !status.ok()) return status;
  return posix::SyncDirectory(directory_);
}

Status RegionFiles::RemoveUnfinishedMark(uint64_t database_id) const {
  const std::string path = Path(kUnfinishedMark);
  std::string text;
  if (!IsUnfinishedMark(path) || !posix::ReadSmallFile(path, kMaxMarkBytes, &text).ok()) return Status::OK();
  RegionIdentity identity;
  const bool is_others = ParseMark(text, &identity) && identity.database_id != database_id;
  return is_others ? Status::OK() : posix::Remove(path);
}

Status RegionFiles::MakeFirstPart(bool checks_bad_blocks, bool syncs) const {
  const posix::Fd fd(OpenOwnFile(part_path(0), O_RDWR | O_CREAT | O_TRUNC));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "create", part_path(0));
  Status status = MakeSmallPool(fd.get(), part_path(0), checks_bad_blocks);
  if (status.ok() && syncs && DeferredSyncs::Sync(fd.get()) != 0) status = posix::ErrnoStatus(errno, "sync", part_path(0));
  return status.ok() ? posix::SyncDirectory(directory_) : status;
}

Status RegionFiles::HoldFirstPart() {
  first_part_ = posix::Fd(open(part_path(0).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return first_part_.valid() ? Status::OK() : posix::ErrnoStatus(errno, "open", part_path(0));
}

Status RegionFiles::FillFirstPart(Filled filled) {
  if (!first_part_.valid()) {
    if (Status status = HoldFirstPart(); !status.ok()) return status;
  }
  BRAIDDB_DCHECK(first_part_.valid());
  Status status = FillMappedPart(first_part_.get(), filled);
  if (status.ok()) posix::Fd(std::move(first_part_));  // closes it
  return status;
}

// A full file system may refuse to allocate blocks that a file has already. So the blocks are counted first.
Status RegionFiles::FillMappedPart(int fd, Filled filled) const {
  struct stat st;
  if (fstat(fd, &st) != 0) return posix::ErrnoStatus(errno, "examine", part_path(0));
  const uint64_t begin = filled == Filled::kWhole ? 0 : kSmallFirstChunk;
  const uint64_t wanted = kSmallPartBytes - (filled == Filled::kWhole ? 0 : kSmallFirstChunk - kSmallHeadEnd);
  if (BlockBytes(st) >= wanted) return Status::OK();
  const int error = Allocate(fd, begin, kSmallPartBytes);
  return error == 0 ? Status::OK() : posix::ErrnoStatus(error, "reserve the blocks of", part_path(0));
}

// The size is read from the file, since pmemobj_create chooses it for pools with all lanes.
Status RegionFiles::CommitFirstPart(uint64_t database_id, uint32_t region, uint32_t region_count) {
  const posix::Fd fd(open(part_path(0).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", part_path(0));
  list_ = PartList();
  list_.database_id = database_id;
  list_.region = region;
  list_.region_count = region_count;
  const uint64_t bytes = PartBytes(fd.get());
  if (bytes == 0) return posix::ErrnoStatus(errno, "find the size of", part_path(0));
  list_.parts.push_back(bytes);
  return posix::ReplaceSmallFile(directory_, "PARTS", list_.ToText());
}

Status RegionFiles::ReadList() {
  device_ = IsCharacterDevice(part_path(0)) ? part_path(0) : std::string();
  std::string text;
  Status status = posix::ReadSmallFile(Path("PARTS"), kMaxPartListBytes, &text);
  if (status.IsNotFound()) {
    return Status::Corruption("the part list " + Path("PARTS") + " is missing; restore the region's files from a backup");
  }
  if (!status.ok()) return status;
  return PartList::Parse(text, Path("PARTS"), &list_);
}

// PMDK splits a line of the poolset at blanks, ends it at a '#', and appends names of parts to the path.
bool RegionFiles::HasPlainPath() const {
  constexpr size_t kMaxPlainBytes = 3 << 10;
  return directory_.size() <= kMaxPlainBytes && std::all_of(directory_.begin(), directory_.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte > ' ' && byte != 127 && byte != '#';
         });
}

Status RegionFiles::MakeSet(uint64_t reserve_bytes, PoolSet* set) {
  const auto text = [this, reserve_bytes](const std::string& directory) {
    const std::string part =
        device_.empty() ? std::to_string(reserve_bytes) + " " + directory + "/" : "AUTO " + directory + "/" + PartName(0);
    return "PMEMPOOLSET\nOPTION SINGLEHDR\n" + part + "\n";
  };
  if (HasPlainPath()) {
    set->path = set_path();
    return WriteSetFile(text(directory_));
  }
  const std::string directory = "/proc/self/fd/" + std::to_string(lock_.get());
  set->file = posix::Fd(memfd_create("region.set", MFD_CLOEXEC));
  set->path = "/proc/self/fd/" + std::to_string(set->file.get());
  const std::string lines = text(directory);
  if (!set->file.valid() || write(set->file.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    return posix::ErrnoStatus(errno, "make the poolset of", directory_);
  }
  if (access(set->path.c_str(), R_OK) == 0) return Status::OK();
  return Status::NotSupported("the path " + directory_ + " is very long, or has bytes that PMDK's poolset files do not allow; " +
                              "this needs /proc: mount it, or rename the directory");
}

Status RegionFiles::WriteSetFile(const std::string& text) {
  std::string stored;
  if (posix::ReadSmallFile(set_path(), kMaxPartListBytes, &stored).ok() && stored == text) return Status::OK();
  return posix::ReplaceSmallFile(directory_, "region.set", text);
}

// ---- Devices

Status RegionFiles::CheckDeviceIsFree() const {
  DaxDevice device;
  if (Status status = DaxDevice::Map(device_, DaxDevice::Access::kWrite, &device); !status.ok()) return status;
  const uint8_t* const end = device.base() + kDeviceHeaderBytes;
  if (std::all_of(device.base(), end, [](uint8_t byte) { return byte == 0; })) return Status::OK();
  return Status::InvalidArgument(device_ +
                                 " is not free: its first page is not zero; destroy the database that is on it, or make " +
                                 "the namespace anew with ndctl if nobody needs what is on it");
}

// ORDER: the whole device is zero before the link exists, and so before a pool exists there.
Status RegionFiles::LinkDevice() const {
  DaxDevice device;
  if (Status status = DaxDevice::Map(device_, DaxDevice::Access::kWrite, &device); !status.ok()) return status;
  device.Clear(device.bytes());
  std::error_code error;
  const std::string target = std::filesystem::absolute(device_, error).string();
  if (symlink(target.c_str(), part_path(0).c_str()) != 0) return posix::ErrnoStatus(errno, "create the link", part_path(0));
  return posix::SyncDirectory(directory_);
}

// Devices can change their names, so the link may lead to another user's device. A pool without a root counts as this region's:
// its creation was cut short, and no creation begins on a device with a pool.
// CRASH  after the page is cleared: the link still exists, and a repetition finds zeros.
Status RegionFiles::ReleaseDevice() const {
  DaxDevice device;
  if (Status status = DaxDevice::Map(part_path(0), DaxDevice::Access::kWrite, &device); !status.ok()) return status;
  if (std::memcmp(device.base(), kPoolSignature, sizeof(kPoolSignature)) == 0 && !IsPoolOfThisRegion(device)) {
    return Status::Corruption(part_path(0) +
                              " leads to a device that holds another pool; remove the link, and clear the device " +
                              "if nobody needs what is on it");
  }
  device.Clear(kDeviceHeaderBytes);
  return Status::OK();
}

// Compares the root with PARTS. The pointer to the root is checked, since the device may hold anything.
bool RegionFiles::IsPoolOfThisRegion(const DaxDevice& device) const {
  if (std::memcmp(device.base() + kPoolLayoutOffset, kPoolLayout, sizeof(kPoolLayout)) != 0) return false;
  const PoolView pool(device.base(), device.bytes());
  const uint64_t at = pool.root_offset();
  if (pool.root_size() < sizeof(RegionRoot) || at % 8 != 0 || at > device.bytes() - sizeof(RegionRoot)) return true;
  const auto* const root = reinterpret_cast<const RegionRoot*>(device.base() + at);
  if (root->magic != RegionRoot::kMagic) return true;
  RegionFiles files(directory_);
  return files.ReadList().ok() && root->database_id == files.list().database_id && root->region == files.list().region;
}

Status RegionFiles::CheckDevice(const std::string& named) const {
  if (!IsCharacterDevice(named) || IsSameDevice(named, part_path(0))) return Status::OK();
  return Status::InvalidArgument("the region in " + directory_ + " is not on " + named + ": " + part_path(0) +
                                 " leads elsewhere; name its device, or correct the link if the device has a new name");
}

// ---- Checking

// STEPS  1 open, not through a link, except the link of the first part to a device  2 type and size  3 the first part begins
//        with a pool's signature. O_NONBLOCK keeps the open of a FIFO from waiting.
Status RegionFiles::CheckPart(size_t index, uint64_t bytes) const {
  const std::string path = part_path(index);
  const std::string restore = "; restore it from a backup";
  // Only the first part may be a link: to a device.
  const int no_follow = index == 0 && IsCharacterDevice(path) ? 0 : O_NOFOLLOW;
  const posix::Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | no_follow));
  if (!fd.valid() && errno == ENOENT) return Status::Corruption("part file " + path + " is missing" + restore);
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
  const uint64_t size = S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : PartBytes(fd.get());
  if (size == 0 && S_ISCHR(st.st_mode))
    return Status::Corruption(path + " leads to a device that is no persistent memory" + restore);
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) return Status::Corruption(path + " is not a regular file" + restore);
  if (size == 0) return Status::Corruption("part file " + path + " is empty" + restore);
  if (size != bytes) {
    return Status::Corruption("part file " + path + (size < bytes ? " is truncated: it has " : " is not ours: it has ") +
                              std::to_string(size) + " bytes, recorded are " + std::to_string(bytes) + restore);
  }
  char signature[sizeof(kPoolSignature)];
  const int64_t got = index == 0 ? ReadPartAt(fd.get(), signature, sizeof(signature), 0) : 0;
  if (got < 0) return posix::ErrnoStatus(errno, "read", path);
  if (index == 0 && (got != sizeof(signature) || std::memcmp(signature, kPoolSignature, sizeof(signature)) != 0)) {
    return Status::Corruption("part file " + path + " is foreign or damaged: it has no pool signature" + restore);
  }
  return Status::OK();
}

bool RegionFiles::IsSmallPool() const {
  PoolExtent extent;
  return list_.parts.size() == 1 && list_.parts[0] == kSmallPartBytes && ReadPoolExtent(part_path(0), &extent).ok() &&
         extent.heap_begin == kSmallHeapBegin;
}

// The first part is created with holes (pool_maker.h). These stay while the part is the only one and no object is allocated
// there.
Status RegionFiles::FillSmallPool(int fd, uint64_t blocks) const {
  const uint64_t end = IsBornPool(fd) ? kSmallFirstChunk + kBornChunks * kChunkBytes : kSmallPartBytes;
  if (blocks >= kSmallHeadEnd + end - kSmallFirstChunk) return Status::OK();
  if (!CanAllocate(fd)) return FillRange(fd, part_path(0), 0, kSmallPartBytes);
  Status status = FillRange(fd, part_path(0), 0, kSmallHeadEnd);
  return status.ok() ? FillRange(fd, part_path(0), kSmallFirstChunk, end) : status;
}

// A store into a hole ends the process if the file system is full. So holes get blocks before PMDK maps the parts. Holes inside
// free segments stay: the segment allocator takes their blocks before the segment's next use. All other holes come from a copy of
// the database in which pages of zeros became holes.
Status RegionFiles::FillRangeOfPool(PoolRange range) const {
  uint64_t begin = 0;  // of the part, from the start of the pool
  for (size_t i = 0; i < list_.parts.size(); begin += list_.parts[i++]) {
    const uint64_t from = std::max(range.begin, begin);
    const uint64_t to = std::min(range.end, begin + list_.parts[i]);
    if (from >= to) continue;
    const posix::Fd fd(open(part_path(i).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) return posix::ErrnoStatus(errno, "examine", part_path(i));
    const uint64_t first_page = (from - begin) / kBlockPageBytes * kBlockPageBytes;
    if (Status status = FillHolesOfRange(fd.get(), part_path(i), first_page, to - begin); !status.ok()) return status;
  }
  return Status::OK();
}

Status RegionFiles::FillHoles() {
  has_free_holes_ = false;
  if (!device_.empty()) return Status::OK();
  const bool is_small = IsSmallPool();
  std::vector<PoolRange> free_ranges;
  bool has_holes = false;
  uint64_t begin = 0;  // of the part, from the start of the pool
  for (size_t i = 0; i < list_.parts.size(); begin += list_.parts[i++]) {
    const posix::Fd fd(open(part_path(i).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat st;
    if (!fd.valid() || fstat(fd.get(), &st) != 0) return posix::ErrnoStatus(errno, "examine", part_path(i));
    if (BlockBytes(st) >= list_.parts[i]) continue;
    if (is_small) return FillSmallPool(fd.get(), BlockBytes(st));
    if (!std::exchange(has_holes, true)) {
      const auto back = [this](PoolRange range) { return FillRangeOfPool(range); };
      if (Status status = FindFreeRanges(directory_, back, &free_ranges); !status.ok()) return status;
    }
    uint64_t at = 0;
    for (const PoolRange& range : free_ranges) {
      const uint64_t from = std::clamp(range.begin, begin, begin + list_.parts[i]) - begin;
      const uint64_t to = std::clamp(range.end, begin, begin + list_.parts[i]) - begin;
      if (Status status = FillHolesOfRange(fd.get(), part_path(i), at, from); !status.ok()) return status;
      at = std::max(at, to);
    }
    if (Status status = FillHolesOfRange(fd.get(), part_path(i), at, list_.parts[i]); !status.ok()) return status;
  }
  has_free_holes_ = !free_ranges.empty();
  return Status::OK();
}

Status RegionFiles::CheckParts() {
  if (Status status = CheckSizes(); !status.ok()) return status;
  if (list_.next != 0) {
    if (Status status = FinishAddPart(); !status.ok()) return status;
  }
  // PMDK trusts the heap's size in its header, and crashes if the size is wrong. PMDK checks the rest of the header itself.
  PoolExtent extent;
  if (ReadPoolExtent(part_path(0), &extent).ok() &&
      (extent.heap_begin >= extent.heap_end || extent.heap_end != list_.TotalBytes())) {
    return Status::Corruption("the pool header in " + part_path(0) +
                              " is damaged: its heap does not end where the parts do; restore it from a backup");
  }
  if (Status status = FillHoles(); !status.ok()) return status;
  return CheckNoOthers();
}

Status RegionFiles::CheckSizes() const {
  for (size_t i = 0; i < list_.parts.size(); ++i) {
    if (Status status = CheckPart(i, list_.parts[i]); !status.ok()) return status;
  }
  return Status::OK();
}

// CRASH  Repeated by the next open: the removal of a missing file is no error, and the heap's size does not change here.
Status RegionFiles::FinishAddPart() {
  BRAIDDB_DCHECK(list_.next != 0);
  const size_t index = list_.parts.size();
  const uint64_t bytes = std::exchange(list_.next, 0);
  PoolExtent extent;
  if (Status status = ReadPoolExtent(part_path(0), &extent); !status.ok()) return status;
  if (extent.heap_end > list_.TotalBytes() && !BRAIDDB_MUTANT("announced-part-removed")) {
    if (Status status = CheckPart(index, bytes); !status.ok()) return status;
    list_.parts.push_back(bytes);
  } else if (Status status = posix::Remove(part_path(index)); !status.ok()) {
    return status;
  }
  return posix::ReplaceSmallFile(directory_, "PARTS", list_.ToText());
}

// PMDK would take any *.pmem for a part, so a foreign file is an error.
Status RegionFiles::CheckNoOthers() const {
  std::vector<std::string> names;
  if (Status status = posix::List(directory_, &names); !status.ok()) return status;
  for (const std::string& name : names) {
    if (name.ends_with(".tmp") && IsOurs(name)) {
      if (Status status = posix::Remove(Path(name)); !status.ok()) return status;
    } else if (IsPartFile(name) && !(IsPartName(name) && std::stoul(name) < list_.parts.size())) {
      return Status::Corruption(Path(name) + " is not a part of this region; move it to another directory");
    }
  }
  return Status::OK();
}

// ---- Growing

// After an error before step 3 nothing remains: both names are removed, and PARTS may announce a part without a file, which the
// next open or AddPart ignores.
Status RegionFiles::AddPart(uint64_t bytes, const Fill& fill) {
  BRAIDDB_DCHECK(bytes > 0 && list_.next == 0);
  if (commit_pending_) {
    if (Status status = CommitPart(); !status.ok()) return status;
  }
  // A line `next` is as long as a line `part`, so this is the length of the list after step 5 as well.
  PartList longer = list_;
  longer.next = bytes;
  if (longer.ToText().size() > kMaxPartListBytes) {
    return Status::NoSpace("the list of parts " + Path("PARTS") + " has no room for another part; delete data, or restore the " +
                           "database from a backup, which makes fewer and larger parts");
  }
  if (list_.parts.size() == 1 && list_.parts[0] == kSmallPartBytes) {
    if (Status status = FillFirstPart(Filled::kWhole); !status.ok()) return status;
  }
  const std::string path = part_path(list_.parts.size());
  const std::string temporary = path + ".tmp";
  const posix::Fd fd(OpenOwnFile(temporary, O_RDWR | O_CREAT | O_TRUNC));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "create", temporary);
  if (fill) fill(fd.get(), bytes);
  Status status = FillRange(fd.get(), temporary, 0, bytes);
  if (status.ok() && fsync(fd.get()) != 0) status = posix::ErrnoStatus(errno, "sync", temporary);
  if (status.ok()) {
    list_.next = bytes;
    if (!BRAIDDB_MUTANT("part-not-announced")) status = posix::ReplaceSmallFile(directory_, "PARTS", list_.ToText());
    list_.next = 0;
  }
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = posix::ErrnoStatus(errno, "rename into place", path);
  if (status.ok()) status = posix::SyncDirectory(directory_);
  if (!status.ok()) {
    (void)posix::Remove(temporary);
    (void)posix::Remove(path);
    return status;
  }
  list_.parts.push_back(bytes);
  commit_pending_ = true;
  return Status::OK();
}

Status RegionFiles::CommitPart() {
  BRAIDDB_DCHECK(list_.next == 0);
  Status status = posix::ReplaceSmallFile(directory_, "PARTS", list_.ToText());
  commit_pending_ = !status.ok();
  return status;
}

Status RegionFiles::RemoveFiles() {
  std::vector<std::string> names;
  Status status = posix::List(directory_, &names);
  if (!status.ok()) return status;
  const bool has_device = IsCharacterDevice(part_path(0));
  PartList list;
  std::string text;
  const bool is_listed =
      posix::ReadSmallFile(Path("PARTS"), kMaxPartListBytes, &text).ok() && PartList::Parse(text, Path("PARTS"), &list).ok();
  // A crash in AddPart may leave the part behind the last listed one. Parts behind that one are the user's files, and stay.
  std::erase_if(names, [&](const std::string& name) {
    if (!IsOurs(name) || name == "CREATING" || name == "PARTS") return true;
    return is_listed && IsPartName(name.substr(0, PartName(0).size())) && std::stoul(name) > list.parts.size();
  });
  if (posix::Exists(Path("PARTS"))) names.emplace_back("PARTS");  // last, since it tells the owner of the others
  for (const std::string& name : names) {
    struct stat st;
    if (has_device && name == PartName(0)) continue;  // the link to the device
    if (lstat(Path(name).c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
      return Status::IOError(Path(name) + " is not a regular file, so it is none of a region; move it to another directory");
    }
  }
  if (has_device) {
    if (status = ReleaseDevice(); !status.ok()) return status;
  }
  for (const std::string& name : names) {
    if (name == "PARTS") {  // ORDER: the removal of all others is durable before the removal of PARTS. [CC-60]
      if (status = posix::SyncDirectory(directory_); !status.ok()) return status;
    }
    if (status = posix::Remove(Path(name)); !status.ok()) return status;
  }
  return Status::OK();
}

uint64_t RegionFiles::AvailableBytes() const {
  if (!device_.empty()) return 0;
  struct statvfs fs;
  if (statvfs(directory_.c_str(), &fs) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
}

uint64_t RegionFiles::FileSystemId() const {
  struct stat directory;
  return stat(directory_.c_str(), &directory) == 0 ? directory.st_dev : 0;
}

uint64_t RegionFiles::CapacityBytes() const {
  if (uint64_t bytes = 0; !device_.empty() && DaxDevice::FindBytes(device_, &bytes).ok()) return bytes;
  struct statvfs fs;
  if (statvfs(directory_.c_str(), &fs) != 0 || fs.f_blocks == 0) return UINT64_MAX;
  return static_cast<uint64_t>(fs.f_blocks) * fs.f_frsize;
}

Status ReadPoolExtent(const std::string& first_part, PoolExtent* extent) {
  const posix::Fd fd(open(first_part.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", first_part);
  uint32_t major = 0;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t lanes = 0;
  if (!ReadAt(fd.get(), kPoolMajorOffset, &major) || !ReadAt(fd.get(), kPoolHeapOffset, &begin) ||
      !ReadAt(fd.get(), kPoolHeapSizeOffset, &bytes) || !ReadAt(fd.get(), kPoolLaneCountOffset, &lanes)) {
    return posix::ErrnoStatus(EIO, "read the pool header of", first_part);
  }
  if (major != kPoolMajor) {
    return Status::NotSupported(first_part + " has pool format " + std::to_string(major) + " of PMDK, known is " +
                                std::to_string(kPoolMajor) + "; use a BraidDB that was built for it, or pmempool convert");
  }
  *extent = PoolExtent{begin, begin + bytes, lanes};
  return Status::OK();
}

}  // namespace braiddb
