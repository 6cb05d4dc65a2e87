#include "pmem/part_list.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <numeric>

#include "pmem/checked_text.h"
#include "pmem/layout.h"

namespace braiddb {
namespace {

constexpr std::string_view kPartsTitle = "braiddb-parts ";

// Moves the first line of `text` to *line, and removes its newline. Returns false if there is no complete line.
bool TakeLine(std::string_view* text, std::string* line) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

// Returns the Corruption of a list, with advice.
Status Damaged(const std::string& path, const char* how) {
  return Status::Corruption("the part list " + path + " " + how + "; restore the region's files from a backup");
}

// Parses "<word> <name> <bytes>". Returns false if the name is not that of part `index`, or the size is 0.
bool ParsePart(const std::string& line, const char* word, size_t index, uint64_t* bytes) {
  const std::string prefix = std::string(word) + " " + PartName(index) + " ";
  return line.starts_with(prefix) && std::sscanf(line.c_str() + prefix.size(), "%" SCNu64, bytes) == 1 && *bytes != 0;
}

// Parses the lines before the checksum. A text whose checksum matches was written by ToText; the checks here find lists that
// another program has made.
bool ParseBody(std::string_view body, PartList* list) {
  std::string line;
  if (!TakeLine(&body, &line)) return false;  // the title, which Parse has checked
  if (!TakeLine(&body, &line) || std::sscanf(line.c_str(), "database %" SCNx64, &list->database_id) != 1) return false;
  if (!TakeLine(&body, &line) || std::sscanf(line.c_str(), "region %u of %u", &list->region, &list->region_count) != 2)
    return false;
  uint64_t total = 0;
  while (TakeLine(&body, &line)) {
    uint64_t bytes = 0;
    if (ParsePart(line, "part", list->parts.size(), &bytes)) {
      list->parts.push_back(bytes);
    } else if (list->next == 0 && ParsePart(line, "next", list->parts.size(), &bytes)) {
      list->next = bytes;
    } else {
      return false;
    }
    // The sum bounds what is mapped, so it must not overflow.
    if (bytes > kMaxTotalBytes - total) return false;
    total += bytes;
  }
  return body.empty() && !list->parts.empty();
}

}  // namespace

Status UnknownFormat(const std::string& what, uint32_t version, uint32_t known) {
  return Status::NotSupported(what + " has format version " + std::to_string(version) + ", this program knows version " +
                              std::to_string(known) + " only; " +
                              (version > known ? "use a newer BraidDB" : "use the BraidDB that wrote it"));
}

std::string PartName(size_t index) {
  char name[32];
  std::snprintf(name, sizeof(name), "%06zu.pmem", index);
  return name;
}

uint64_t UsualGrowth(uint64_t reserved) {
  constexpr uint64_t kLeast = 8ull << 20;
  constexpr uint64_t kMost = 128ull << 20;
  constexpr uint64_t kShare = 1024;  // a very large region grows by 1/kShare of its size
  return std::max(std::clamp(reserved / 4, std::min(reserved, kLeast), kMost), reserved / kShare);
}

// Saturates: a list that was not parsed may have any sizes.
uint64_t PartList::TotalBytes() const {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0},
                         [](uint64_t sum, uint64_t part) { return part > UINT64_MAX - sum ? UINT64_MAX : sum + part; });
}

std::string PartList::ToText() const {
  char head[128];
  std::snprintf(head, sizeof(head), "%s%u\ndatabase %016" PRIx64 "\nregion %u of %u\n", kPartsTitle.data(), kRegionFormatVersion,
                database_id, region, region_count);
  std::string text = head;
  for (size_t i = 0; i < parts.size(); ++i) text += "part " + PartName(i) + " " + std::to_string(parts[i]) + "\n";
  if (next != 0) text += "next " + PartName(parts.size()) + " " + std::to_string(next) + "\n";
  return WithChecksum(std::move(text));
}

Status PartList::Parse(std::string_view text, const std::string& path, PartList* list) {
  *list = PartList();
  // The version is checked first: in another version the rest may have another meaning.
  unsigned version = 0;
  if (!text.starts_with(kPartsTitle)) return Damaged(path, "is empty or not a part list");
  if (std::sscanf(std::string(text.substr(kPartsTitle.size(), 12)).c_str(), "%u", &version) != 1)
    return Damaged(path, "is damaged");
  if (version != kRegionFormatVersion) return UnknownFormat(path, version);
  std::string_view body;
  if (text.find(kChecksumWord) == std::string_view::npos) return Damaged(path, "is truncated");
  if (!CheckedBody(text, &body)) return Damaged(path, "has a wrong checksum");
  if (!ParseBody(body, list)) return Damaged(path, "cannot be understood");
  return Status::OK();
}

}  // namespace braiddb
