#include "pmem/metadata_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/part_list.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "pmem/region_files.h"

namespace braiddb {
namespace {

constexpr size_t kMaxListBytes = 1u << 20;
constexpr uint64_t kMaxMetadataBytes = 64ull << 20;

// The parts of a region as one file.
class PoolFiles {
 public:
  explicit PoolFiles(std::string directory) : directory_(std::move(directory)) {}

  Status ReadList() {
    const std::string path = posix::JoinPath(directory_, "PARTS");
    std::string text;
    Status status = posix::ReadSmallFile(path, kMaxListBytes, &text);
    if (status.ok()) status = PartList::Parse(text, path, &list_);
    return status;
  }
  const PartList& list() const { return list_; }
  const std::string& directory() const { return directory_; }

  Status Read(uint64_t offset, uint64_t bytes, void* to) const {
    auto* out = static_cast<uint8_t*>(to);
    uint64_t begin = 0;
    for (size_t part = 0; part < list_.parts.size() && bytes > 0; begin += list_.parts[part++]) {
      const uint64_t end = begin + list_.parts[part];
      if (offset >= end) continue;
      const uint64_t here = std::min(bytes, end - offset);
      if (Status status = ReadPart(part, offset - begin, here, out); !status.ok()) return status;
      offset += here;
      bytes -= here;
      out += here;
    }
    return bytes == 0 ? Status::OK() : Damaged("something lies behind its parts");
  }

  Status Damaged(const std::string& what) const {
    return Status::Corruption("the region in " + directory_ + " is damaged: " + what + "; restore it from a backup");
  }

 private:
  Status ReadPart(size_t part, uint64_t offset, uint64_t bytes, uint8_t* to) const {
    const std::string path = posix::JoinPath(directory_, PartName(part));
    const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
    while (bytes > 0) {
      const ssize_t got = pread(fd.get(), to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return posix::ErrnoStatus(errno, "read", path);
      if (got == 0) return Damaged(path + " is short");
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
      to += got;
    }
    return Status::OK();
  }

  const std::string directory_;
  PartList list_;
};

Status ReadRoot(const PoolFiles& files, uint64_t* identity, RegionRoot* root) {
  std::vector<uint64_t> head(kPoolHeapSizeOffset / 8 + 1);
  if (Status status = files.Read(0, head.size() * 8, head.data()); !status.ok()) return status;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(head.data());
  const PoolView pool(bytes, head.size() * 8);
  uint32_t major = 0;
  memcpy(&major, bytes + kPoolMajorOffset, sizeof(major));
  if (memcmp(bytes, kPoolSignature, sizeof(kPoolSignature)) != 0 || major != kPoolMajor)
    return files.Damaged("it has no pool signature that is known");
  *identity = pool.identity();
  if (pool.root_size() < sizeof(*root)) return files.Damaged("it has no root object");
  if (Status status = files.Read(pool.root_offset(), sizeof(*root), root); !status.ok()) return status;
  if (root->magic != RegionRoot::kMagic) return files.Damaged("its root has no signature");
  if (root->format_version != kRegionFormatVersion) return UnknownFormat(files.directory(), root->format_version);
  if (root->checksum != RootChecksum(*root)) return files.Damaged("the checksum of its root is wrong");
  const PartList& list = files.list();
  if (root->database_id != list.database_id || root->region != list.region || root->region_count != list.region_count)
    return files.Damaged("its root is of another region or database");
  return Status::OK();
}

}  // namespace

Status ReadMetadata(const RegionSetOptions& options, uint32_t region, MetadataSlot slot, MetadataCopy* copy) {
  const std::vector<std::string> directories = RegionDirectories(options, region + 1);
  if (region >= directories.size()) return Status::InvalidArgument("region_paths names too few directories");
  PoolFiles files(directories[region]);
  if (!RegionSet::Exists(options)) return Status::NotFound("no database in " + directories[0] + "; check the path");
  if (Status status = files.ReadList(); !status.ok()) return status;
  uint64_t identity = 0;
  RegionRoot root;
  if (Status status = ReadRoot(files, &identity, &root); !status.ok()) return status;
  const auto index = static_cast<uint32_t>(slot);
  const ObjectId& id = root.metadata[index];
  copy->bytes = root.metadata_bytes[index];
  if (id.pool != identity || id.offset == 0 || root.metadata_check[index] != MetadataCheck(root, index) ||
      copy->bytes > kMaxMetadataBytes) {
    return files.Damaged("a metadata object is missing, or the pointer to it is damaged");
  }
  copy->words.assign(copy->bytes / 8 + 1, 0);
  copy->regions = root.region_count;
  return files.Read(AlignToLine(id.offset), copy->bytes, copy->words.data());
}

}  // namespace braiddb
