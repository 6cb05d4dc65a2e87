// The file INDEX: the indexes in DRAM of the last levels, and the filter, as a close has left them. The next open reads them
// instead of building them from the entries. [CC-77]
//
// LAYOUT  A block StoredHead. Then what the levels and the filter write (LastLevel::StoreIndex, KeyFilter::Store). At the end a
//         block with a StoredPart for each of them.
// VALID   If it names the newest record of the MANIFEST: it has the database's identity and the record's stamp
//         (Manifest::stamp), which each close that writes the file draws anew. Every change of a last level begins with a commit
//         of the MANIFEST [CC-4], so a file of an older state has another stamp. No segment that the indexes lead to is released
//         without such a change.
// ORDER   None. Nothing is synced. A file that a crash has torn has a wrong checksum somewhere, and is not used.
// SPACE   A close writes the file only if it takes at most 1/kShareOfFree of the free space, and half of what the process may
//         write into a file (RLIMIT_FSIZE). The first change of a last level removes it. A close without such a change only
//         replaces the stamp.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "db/db_impl.h"
#include "db/live_board.h"
#include "util/block_file.h"
#include "util/file.h"
#include "util/format.h"
#include "util/perf.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr const char* kIndexFile = "/INDEX";
constexpr const char* kTemporaryFile = "/INDEX.tmp";
// An index of fewer bytes is built in a few milliseconds.
constexpr uint64_t kLeastBytes = 4 << 20;
constexpr uint64_t kShareOfFree = 4;

struct StoredHead {
  static constexpr uint64_t kMagic = 0x58444e4944494152;  // "RAIDINDX"
  uint64_t magic = kMagic;
  uint64_t layout = kLiveLayout;  // of indexes and filters, as other processes know them
  uint64_t database_id = 0;
  uint64_t stamp = 0;
  uint64_t parts = 0;  // offset of the block with the parts
};

struct StoredPart {
  static constexpr uint64_t kFilter = UINT64_MAX;
  uint64_t family;  // its id; kFilter: the filter
  uint64_t number;  // Family::number
  uint64_t offset;
};

// The most bytes that the file may take. Beyond the limit of a process for the size of a file the system ends the process.
uint64_t MostBytes(const std::string& directory) {
  struct statvfs system;
  struct rlimit limit;
  if (statvfs(directory.c_str(), &system) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0) return 0;
  return std::min<uint64_t>(uint64_t{system.f_bavail} * system.f_frsize / kShareOfFree, limit.rlim_cur / 2);
}

}  // namespace

// Without memory nothing, or a part, is taken.
std::set<uint32_t> DBImpl::LoadIndexes() {
  std::set<uint32_t> loaded;
  const std::string temporary = path_ + kTemporaryFile;  // of a close that was killed
  if (!is_read_only() && FileExists(temporary)) (void)RemoveFile(temporary);
  // Since the open: INDEX has not been looked at, and describes the levels of before.
  if (last_levels_changed_) return loaded;
  try {
    bool fails = false;
    BRAIDDB_SYNC_POINT_ARG("DBImpl::LoadIndexes:Begin", &fails);
    if (fails) throw std::bad_alloc();
    if (const std::unique_ptr<BlockFileReader> file = BlockFileReader::Open(path_ + kIndexFile)) LoadIndexes(*file, &loaded);
  } catch (const std::bad_alloc&) {
  }
  BRAIDDB_SYNC_POINT_ARG("DBImpl::LoadIndexes", &loaded);
  return loaded;
}

void DBImpl::LoadIndexes(const BlockFileReader& file, std::set<uint32_t>* loaded) {
  const uint64_t begin_ns = perf::NowNs();
  StoredHead head;
  std::vector<StoredPart> parts;
  uint64_t at = 0;
  bool is_true = file.ReadBlock(&at, &head, sizeof head) && head.magic == StoredHead::kMagic && head.layout == kLiveLayout &&
                 head.database_id == regions_->database_id() && head.stamp == stamp_at_open_;
  is_true = is_true && file.ReadBlock(&(at = head.parts), &parts);
  bool has_filter = false;
  bool is_usable = is_true;  // no part was refused
  size_t indexes = 0;
  for (const StoredPart& part : parts) {
    indexes += part.family != StoredPart::kFilter;
    if (!is_true || stopping_.load(std::memory_order_acquire)) break;
    if (part.family == StoredPart::kFilter) {
      index_file_has_filter_ = true;
      if (!uses_filter_) continue;
      stored_filter_ = KeyFilter::Load(file, part.offset, options_.filter_bits_per_key, dram_.filter,
                                       live_heap_.load(std::memory_order_acquire));
      has_filter = stored_filter_ != nullptr;
      is_usable = is_usable && has_filter;
      continue;
    }
    const Family* const family = part.family < kMaxFamilies ? FindFamily(static_cast<uint32_t>(part.family)) : nullptr;
    if (family != nullptr && family->last_level != nullptr && family->number == part.number &&
        family->last_level->LoadIndex(file, part.offset)) {
      loaded->insert(family->id);
    } else {
      is_usable = false;
    }
  }
  // Otherwise the close would keep it.
  if (!is_usable && !is_read_only()) (void)RemoveFile(path_ + kIndexFile);
  index_file_is_true_ = is_usable && !is_read_only();
  Log(Format("index: INDEX, %llu bytes: %zu of %zu indexes, %s filter, in %.3f ms%s",
             static_cast<unsigned long long>(file.bytes()), loaded->size(), indexes, has_filter ? "one" : "no",
             static_cast<double>(perf::NowNs() - begin_ns) / 1e6,
             is_usable ? "" : "; not all is used: it is damaged, or of another state or other options of the database"));
}

// A CompactRange may come before the compaction thread has looked at the file.
void DBImpl::ForgetIndexFile() {
  stored_filter_.reset();
  const bool is_first = !std::exchange(last_levels_changed_, true);
  if (std::exchange(index_file_is_true_, false) || is_first) (void)RemoveFile(path_ + kIndexFile);
}

// STEPS  1 write INDEX.tmp  2 rename it to INDEX. If the last levels are as the file says, and it has the filter, only the stamp
// is replaced.
void DBImpl::StoreIndexes() try {
  const std::string path = path_ + kIndexFile;
  StoredHead head;
  head.database_id = regions_->database_id();
  const KeyFilter* const filter = current_filter_ != nullptr && !current_filter_->is_full() ? current_filter_.get() : nullptr;
  if (index_file_is_true_ && (filter == nullptr || index_file_has_filter_)) {
    if (manifest_.stamp() == stamp_at_open_ || !manifest_.DrawStamp()) return;
    head.stamp = manifest_.stamp();
    const std::unique_ptr<BlockFileReader> reader = BlockFileReader::Open(path);
    StoredHead before;
    uint64_t at = 0;
    if (reader == nullptr || !reader->ReadBlock(&at, &before, sizeof before)) return;
    head.parts = before.parts;
    const std::unique_ptr<BlockFileWriter> writer = BlockFileWriter::Open(path);
    if (writer != nullptr) writer->ReplaceBlock(0, &head, sizeof head);
    return;
  }
  // A merge that was cut short has changed a level without its index.
  if (manifest_state_.merge_id != 0) return;
  uint64_t bytes = 0;
  std::vector<const Family*> families;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    const Family* const family = FindFamily(id);
    if (family == nullptr || family->last_level == nullptr || family->dropped.load(std::memory_order_relaxed)) continue;
    const uint64_t storable = family->last_level->StorableBytes();
    if (storable == 0) continue;
    families.push_back(family);
    bytes += storable;
  }
  uint64_t least = kLeastBytes;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::StoreIndexes:Least", &least);
  if (bytes < least || families.empty()) return;
  if (filter != nullptr) bytes += filter->bytes();
  if (bytes > MostBytes(path_)) {
    Log("index: not stored: the file system of " + path_ +
        " has little free space, or the process may not write such large files; the next open builds it");
    return;
  }
  if (!manifest_.DrawStamp()) return;
  head.stamp = manifest_.stamp();
  const uint64_t begin_ns = perf::NowNs();
  const std::string temporary = path_ + kTemporaryFile;
  int error = 0;
  {
    const std::unique_ptr<BlockFileWriter> file = BlockFileWriter::Create(temporary);
    if (file == nullptr) {
      error = errno;
    } else {
      file->AppendBlock(&head, sizeof head);
      std::vector<StoredPart> parts;
      for (const Family* const family : families) {
        parts.push_back({family->id, family->number, file->offset()});
        family->last_level->StoreIndex(file.get());
      }
      if (filter != nullptr) {
        parts.push_back({StoredPart::kFilter, 0, file->offset()});
        filter->Store(file.get());
      }
      head.parts = file->offset();
      file->AppendBlock(parts);
      file->ReplaceBlock(0, &head, sizeof head);
      error = file->Finish();
    }
  }
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    (void)RemoveFile(temporary);
    Log("index: not stored: " + StatusFromErrno(error, temporary).ToString() + "; the next open builds it");
    return;
  }
  Log(Format("index: stored: %llu bytes in %.3f ms", static_cast<unsigned long long>(bytes),
             static_cast<double>(perf::NowNs() - begin_ns) / 1e6));
} catch (const std::bad_alloc&) {  // the next open removes INDEX.tmp
}

}  // namespace braiddb
