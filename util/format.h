// Format: printf into a string. Escaped: bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace braiddb {

[[nodiscard]] std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Printable bytes as they are, the others and % as %XX.
[[nodiscard]] std::string Escaped(std::string_view bytes);

}  // namespace braiddb
