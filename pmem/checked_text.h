// Small text files whose last line, "checksum <16 hexadecimal digits>", is the XXH3 of all bytes before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braiddb {

// The first word of the last line. A text without it is not complete.
inline constexpr std::string_view kChecksumWord = "checksum ";

// Returns `body` and its checksum line. REQUIRES: `body` ends with a newline.
std::string WithChecksum(std::string body);

// Sets *body to the text before the checksum line. Returns false, with *body unchanged, if that line is missing or wrong.
bool CheckedBody(std::string_view text, std::string_view* body);

// Returns the lines of CheckedBody without their newlines; empty if the checksum is missing or wrong.
std::vector<std::string> CheckedLines(std::string_view text);

}  // namespace braiddb
