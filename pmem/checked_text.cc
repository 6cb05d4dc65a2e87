#include "pmem/checked_text.h"

#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "util/check.h"

namespace braiddb {
namespace {

std::string ChecksumLine(std::string_view body) {
  char line[32];
  std::snprintf(line, sizeof(line), "checksum %016" PRIx64 "\n", static_cast<uint64_t>(XXH3_64bits(body.data(), body.size())));
  return line;
}

}  // namespace

std::string WithChecksum(std::string body) {
  BRAIDDB_DCHECK(!body.empty() && body.back() == '\n');
  return body + ChecksumLine(body);
}

bool CheckedBody(std::string_view text, std::string_view* body) {
  const size_t checksum = text.rfind(kChecksumWord);
  if (checksum == std::string_view::npos || text.substr(checksum) != ChecksumLine(text.substr(0, checksum))) return false;
  *body = text.substr(0, checksum);
  return true;
}

std::vector<std::string> CheckedLines(std::string_view text) {
  std::string_view rest;
  std::vector<std::string> lines;
  if (!CheckedBody(text, &rest)) return lines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1);
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace braiddb
