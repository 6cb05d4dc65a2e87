#include "tools/bytes.h"

#include "util/format.h"

namespace braiddb::tools {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

bool DecodeEscapes(std::string_view text, std::string* bytes) {
  bytes->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes->push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  return true;
}

// The length of the UTF-8 sequence at the start of `bytes`; 0 if there is none. REQUIRES: bytes is not empty.
size_t SequenceLength(Slice bytes) {
  const auto byte = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_outside ? 0 : length;
}

}  // namespace

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void AppendHex(Slice bytes, std::string* text) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text->push_back(kDigits[byte >> 4]);
    text->push_back(kDigits[byte & 15]);
  }
}

bool DecodeHex(std::string_view digits, std::string* bytes) {
  bytes->clear();
  if (digits.size() % 2 != 0) return false;
  bytes->reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = HexDigit(digits[i]);
    const int low = HexDigit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

std::string Encode(ByteForm form, Slice bytes) {
  if (form == ByteForm::kEscape) return Escaped(bytes);
  if (form == ByteForm::kRaw) return std::string(bytes);
  std::string text;
  AppendHex(bytes, &text);
  return text;
}

bool Decode(ByteForm form, std::string_view text, std::string* bytes) {
  if (form == ByteForm::kEscape) return DecodeEscapes(text, bytes);
  if (form == ByteForm::kHex) return DecodeHex(text.starts_with("0x") ? text.substr(2) : text, bytes);
  bytes->assign(text);
  return true;
}

bool IsUtf8(Slice bytes) {
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

void AppendJsonString(Slice text, std::string* json) {
  json->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json->push_back('\\');
      json->push_back(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      json->append("\\u00");
      json->push_back(kDigits[byte >> 4]);
      json->push_back(kDigits[byte & 15]);
    } else {
      json->push_back(c);
    }
  }
  json->push_back('"');
}

void AppendJsonField(std::string_view name, Slice bytes, std::string* json) {
  const bool is_text = IsUtf8(bytes);
  json->push_back('"');
  json->append(name);
  if (!is_text) json->append("_hex");
  json->append("\":");
  if (is_text) return AppendJsonString(bytes, json);
  json->push_back('"');
  AppendHex(bytes, json);
  json->push_back('"');
}

}  // namespace braiddb::tools
