// Format: printf into a string. Escaped: arbitrary bytes as printable text.
#pragma once

#include <string>
#include <string_view>

namespace braiddb {

[[nodiscard]] std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Prints printable bytes unchanged; other bytes and % as %XX.
[[nodiscard]] std::string Escaped(std::string_view bytes);

}  // namespace braiddb
