#include "pmem/pool_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pmem/dax_device.h"
#include "pmem/layout_check.h"
#include "pmem/part_list.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"

namespace braiddb {
namespace {

constexpr int kTries = 1000;  // reads of one descriptor before its checksum counts as damage
// Many more than segments are taken between a read of the generation limit and a list.
constexpr uint64_t kMostNewGenerations = 1 << 20;

}  // namespace

Status PoolFiles::Open() {
  Status status = ReadList(&list_);
  return status.ok() ? ReadRoot() : status;
}

// The owner replaces the list by renames, so a read finds a complete list.
Status PoolFiles::ReadList(PartList* list) const {
  const std::string path = posix::JoinPath(directory_, "PARTS");
  std::string text;
  Status status = posix::ReadSmallFile(path, kMaxPartListBytes, &text);
  return status.ok() ? PartList::Parse(text, path, list) : status;
}

Status PoolFiles::Damaged(const std::string& what) const {
  return Status::Corruption("the region in " + directory_ + " is damaged: " + what + "; restore it from a backup");
}

// A pointer behind the listed parts was written after Open, when the region had grown. By then the list named the new part, or
// announced it as `next` and its file existed (region_files.h, STEPS 2 to 5). An announced part is added only if the range
// needs it: a part to which no pointer leads may still be removed.
Status PoolFiles::FindParts(uint64_t offset, uint64_t bytes, PartList* parts) const {
  const auto has = [&](const PartList& list) { return offset <= list.TotalBytes() && bytes <= list.TotalBytes() - offset; };
  *parts = list_;
  if (has(*parts)) return Status::OK();
  if (Status status = ReadList(parts); !status.ok()) return status;
  if (parts->next != 0 && posix::Exists(posix::JoinPath(directory_, PartName(parts->parts.size()))))
    parts->parts.push_back(parts->next);
  return has(*parts) ? Status::OK() : Damaged("something lies behind its parts");
}

// REQUIRES: `to` has room for `bytes` bytes.
Status PoolFiles::Read(uint64_t offset, uint64_t bytes, void* to) const {
  PartList parts;
  Status status = FindParts(offset, bytes, &parts);
  return status.ok() ? ReadParts(parts, offset, bytes, to) : status;
}

Status PoolFiles::Read(uint64_t offset, uint64_t bytes, std::vector<uint64_t>* to, uint64_t at) const {
  PartList parts;
  if (Status status = FindParts(offset, bytes, &parts); !status.ok()) return status;
  // A damaged list may have larger parts than the files. The last byte shows whether the files have the range.
  uint8_t last = 0;
  if (bytes > 0) {
    if (Status status = ReadParts(parts, offset + bytes - 1, 1, &last); !status.ok()) return status;
  }
  to->resize(std::max<size_t>(to->size(), (at + bytes) / 8 + 1));
  return ReadParts(parts, offset, bytes, reinterpret_cast<uint8_t*>(to->data()) + at);
}

// The parts lie one after the other in the pool's address range.
Status PoolFiles::ReadParts(const PartList& list, uint64_t offset, uint64_t bytes, void* to) const {
  auto* out = static_cast<uint8_t*>(to);
  uint64_t begin = 0;
  for (size_t part = 0; part < list.parts.size() && bytes > 0; begin += list.parts[part++]) {
    const uint64_t end = begin + list.parts[part];
    if (offset >= end) continue;
    const uint64_t here = std::min(bytes, end - offset);
    if (Status status = ReadPart(part, offset - begin, here, out); !status.ok()) return status;
    offset += here;
    bytes -= here;
    out += here;
  }
  return Status::OK();
}

// O_NONBLOCK keeps the open of a FIFO from waiting. A read that ends early is damage: the list promises more bytes.
Status PoolFiles::ReadPart(size_t part, uint64_t offset, uint64_t bytes, uint8_t* to) const {
  const std::string path = posix::JoinPath(directory_, PartName(part));
  const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
  while (bytes > 0) {
    const int64_t got = ReadPartAt(fd.get(), to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return posix::ErrnoStatus(errno, "read", path);
    if (got == 0) return Damaged(path + " is short");
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
    to += got;
  }
  return Status::OK();
}

// STEPS  1 read the pool header and PMDK's descriptor  2 check signature and version  3 read the root object  4 check its
//        magic, version, checksums, and that it belongs to the listed region.
Status PoolFiles::ReadRoot() {
  std::vector<uint64_t> head(kPoolHeapSizeOffset / 8 + 1);
  if (Status status = Read(0, head.size() * 8, head.data()); !status.ok()) return status;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(head.data());
  const PoolView pool(bytes, head.size() * 8);
  uint32_t major = 0;
  memcpy(&major, bytes + kPoolMajorOffset, sizeof(major));
  if (memcmp(bytes, kPoolSignature, sizeof(kPoolSignature)) != 0 || major != kPoolMajor)
    return Damaged("it has no pool signature that is known");
  identity_ = pool.identity();
  if (pool.root_size() < sizeof(root_)) return Damaged("it has no root object");
  if (Status status = Read(pool.root_offset(), sizeof(root_), &root_); !status.ok()) return status;
  if (root_.magic != RegionRoot::kMagic) return Damaged("its root has no signature");
  if (!IsKnownRootVersion(root_.format_version)) return UnknownFormat(directory_, root_.format_version, kRootFormatVersion);
  if (!IsRootSound(root_)) return Damaged("the checksum of its root is wrong");
  if (root_.database_id != list_.database_id || root_.region != list_.region || root_.region_count != list_.region_count)
    return Damaged("its root is of another region or database");
  return Status::OK();
}

// A block that is being linked at this moment may be missed. Its descriptors are unused then, so no segment is missed.
Status PoolFiles::ListSegments(std::vector<ListedSegment>* segments, NewestSlot* newest) const {
  segments->clear();
  if (newest != nullptr) *newest = {};
  ObjectId link = root_.directory;
  for (uint64_t number = 0; link.offset != 0; ++number) {
    if (link.pool != identity_) return Damaged("a link to a block of its segment directory");
    DirectoryBlock block;
    const uint64_t place = AlignToLine(link.offset);
    if (Status status = Read(place, sizeof(block), &block); !status.ok()) return status;
    if (block.tag != DirectoryBlockTag(root_.database_id, root_.region, number, link.offset))
      return Damaged("a link to a block of its segment directory");
    for (uint32_t i = 0; i < DirectoryBlock::kDescriptors; ++i) {
      const uint64_t at = place + offsetof(DirectoryBlock, descriptors) + i * sizeof(SegmentDescriptor);
      const size_t before = segments->size();
      if (Status status = ReadDescriptor(at, block.descriptors[i], segments); !status.ok()) return status;
      if (newest == nullptr) continue;
      const bool is_used = segments->size() > before;
      const uint64_t generation = is_used ? segments->back().generation : block.descriptors[i].generation;
      // A much larger one than the limit, which may have risen since Open, is damage.
      if (generation > newest->generation && (is_used || generation < (root_.generation_word >> 16) + kMostNewGenerations))
        *newest = {generation, is_used, block.descriptors[i].sealed_last_sequence};
    }
    link = block.next;
    if (Status status = ReadLink(place + offsetof(DirectoryBlock, next), &link); !status.ok()) return status;
  }
  return Status::OK();
}

// The two words of a link that is just being stored may not fit each other. The link is read again then.
Status PoolFiles::ReadLink(uint64_t place, ObjectId* link) const {
  for (int i = 0; i < kTries && link->offset != 0 && link->pool != identity_; ++i) {
    if (Status status = Read(place, sizeof(*link), link); !status.ok()) return status;
  }
  return Status::OK();
}

// A descriptor that changes while it is read does not match its state word, and is read again. A damaged one never matches.
Status PoolFiles::ReadDescriptor(uint64_t place, SegmentDescriptor descriptor, std::vector<ListedSegment>* segments) const {
  for (int i = 0; i < kTries; ++i) {
    const auto state = static_cast<SegmentState>(descriptor.state_word & 0xff);
    if (!IsUsed(state)) return Status::OK();
    if (state <= kLastSegmentState && descriptor.state_word == SegmentStateWord(descriptor, state)) {
      if (descriptor.object.pool != identity_ || descriptor.chunks == 0) return Damaged("a segment descriptor");
      ListedSegment segment{
          state, descriptor.generation, EntrySeed(descriptor), SegmentDataOffset(descriptor), SegmentCapacity(descriptor), 0};
      if (state == SegmentState::kSealed) {
        segment.sealed_bytes = descriptor.sealed_bytes;
        segment.sealed_last_sequence = descriptor.sealed_last_sequence;
      }
      if (segment.sealed_bytes > segment.capacity) return Damaged("a segment descriptor");
      segments->push_back(segment);
      return Status::OK();
    }
    if (Status status = Read(place, sizeof(descriptor), &descriptor); !status.ok()) return status;
  }
  return Damaged("the checksum of a segment descriptor is wrong");
}

}  // namespace braiddb
