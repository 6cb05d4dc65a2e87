// Format: printf into a string.
#pragma once

#include <string>

namespace braiddb {

[[nodiscard]] std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace braiddb
