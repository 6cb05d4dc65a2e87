// PartList: the text file that lists the parts of a region with their sizes. A missing or damaged part is found before PMDK
// maps it.
//
// LAYOUT    Lines of text. The last line is the XXH3 of all bytes before it, in hexadecimal:
//             braiddb-parts 1                  format version
//             database 00c0ffee00c0ffee        identity shared by the regions of one database
//             region 0 of 2
//             part 000000.pmem 8388608         one line for each part, in order; bytes
//             next 000001.pmem 8388608         a part that is being added; absent most of the time
//             checksum 0123456789abcdef
// COMMIT POINT  The rename of a complete, synced temporary file.
// PERSIST ORDER  `next` is durable before the file of that part has its name, and `part` after the heap's size includes the
//           part (region_files.h, STEPS). [CC-31]
// RECOVERY  A list is valid if and only if its version is known, its checksum matches, and its parts are numbered without a
//           gap. A `next` part belongs to the region if and only if the heap's size includes it.
// CONCURRENCY  The process that holds the region's lock writes the list. Other processes may read it at any time: they find the
//           list before or after a rename.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "pmem/layout.h"

namespace braiddb {

// The largest sum of the parts' bytes: a PmPtr has 48 bits for the offset in a region. A list with a larger sum is damaged.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{1} << 48;
// The largest size of the file. An open refuses a longer list, and a region does not grow beyond it.
inline constexpr size_t kMaxPartListBytes = 1u << 20;

// Returns the bytes by which a region of `reserved` bytes grows, unless an allocation needs more. A small region grows by up to
// its own size, a large region by a fixed step, and a very large region by a fixed share. So the list of a region of
// kMaxTotalBytes stays shorter than kMaxPartListBytes.
uint64_t UsualGrowth(uint64_t reserved);

struct PartList {
  uint64_t database_id = 0;
  uint32_t region = 0;
  uint32_t region_count = 0;
  std::vector<uint64_t> parts;  // bytes of each part
  uint64_t next = 0;            // bytes of the part that is being added; 0: none

  uint64_t TotalBytes() const;  // UINT64_MAX if the sum is larger
  std::string ToText() const;
  // Parses the text of a list. `path` is for messages. Corruption: the text is damaged. NotSupported: another version wrote it.
  static Status Parse(std::string_view text, const std::string& path, PartList* list);
};

// Returns a NotSupported that says which version `what` has, and that this program knows versions up to `known`.
Status UnknownFormat(const std::string& what, uint32_t version, uint32_t known = kRegionFormatVersion);

// Returns the file name of a part, such as "000007.pmem". PMDK gives the parts of a directory these names.
std::string PartName(size_t index);

}  // namespace braiddb
