#include "util/format.h"

#include <cstdarg>
#include <cstdio>

namespace braiddb {

std::string Format(const char* format, ...) {
  char buffer[256];
  va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  if (length < 0) return {};
  const auto size = static_cast<size_t>(length);
  if (size < sizeof buffer) return std::string(buffer, size);
  std::string text(size, '\0');
  va_start(args, format);
  std::vsnprintf(text.data(), size + 1, format, args);
  va_end(args);
  return text;
}

std::string Escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c >= 0x20 && c < 0x7f && c != '%') {
      text += c;
    } else {
      text += Format("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

}  // namespace braiddb
