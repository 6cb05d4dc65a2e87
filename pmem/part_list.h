// PartList: the text file that says which files a region consists of, so that a missing or damaged one is found before PMDK
// maps it.
//
// LAYOUT    Lines of text, the last one is the XXH3 of all bytes before it, in hexadecimal:
//             braiddb-parts 1                  format version
//             database 00c0ffee00c0ffee        identity shared by the regions of one database
//             region 0 of 2
//             part 000000.pmem 8388608         one line for each part, in order; bytes
//             next 000001.pmem 8388608         a part that is being added; absent most of the time
//             checksum 0123456789abcdef
// COMMIT POINT  The rename of a complete, synced temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "pmem/layout.h"

namespace braiddb {

// A PmPtr has 48 bits for the offset in a region. Parts of more bytes in all are damage.
inline constexpr uint64_t kMaxTotalBytes = uint64_t{1} << 48;
// An open reads no longer list.
inline constexpr size_t kMaxPartListBytes = 1u << 20;

// By how many bytes a region with so many grows, unless an allocation needs more. A small region doubles; a large one grows by a
// fixed step, and a very large one by a fixed share, so that the list of kMaxTotalBytes stays shorter than kMaxPartListBytes.
uint64_t UsualGrowth(uint64_t reserved);

struct PartList {
  uint64_t database_id = 0;
  uint32_t region = 0;
  uint32_t region_count = 0;
  std::vector<uint64_t> parts;  // bytes of each
  uint64_t next = 0;            // bytes of the part being added, 0: none

  uint64_t TotalBytes() const;  // UINT64_MAX if the sum is larger
  std::string ToText() const;
  // Corruption if the text is damaged, NotSupported if another version wrote it. `path` is for the messages.
  static Status Parse(std::string_view text, const std::string& path, PartList* list);
};

// NotSupported: `what` is of another version than those up to `known`.
Status UnknownFormat(const std::string& what, uint32_t version, uint32_t known = kRegionFormatVersion);

// "000007.pmem", as PMDK names the parts of a directory.
std::string PartName(size_t index);

}  // namespace braiddb
