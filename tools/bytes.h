// Keys and values as text on the command line, in output and in files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "braiddb/slice.h"

namespace braiddb::tools {

enum class ByteForm : uint8_t {
  kRaw,     // the bytes themselves
  kHex,     // two digits for each byte; 0x in front is accepted
  kEscape,  // printable ASCII as it is; other bytes and % as %XX
};

std::string Encode(ByteForm form, Slice bytes);
// Returns false if `text` is not of this form.
[[nodiscard]] bool Decode(ByteForm form, std::string_view text, std::string* bytes);

void AppendHex(Slice bytes, std::string* text);
// Digits without 0x. Returns false for an odd number of digits and for other characters.
[[nodiscard]] bool DecodeHex(std::string_view digits, std::string* bytes);
// Returns -1 if `c` is no hexadecimal digit.
int HexDigit(char c);

// Well-formed UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms.
bool IsUtf8(Slice bytes);
// Appends `text` as a JSON string. REQUIRES: IsUtf8(text).
void AppendJsonString(Slice text, std::string* json);
// Appends "name":"text", or "name_hex":"digits" if the bytes are not UTF-8.
void AppendJsonField(std::string_view name, Slice bytes, std::string* json);

}  // namespace braiddb::tools
