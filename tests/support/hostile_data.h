// Keys and values that text formats get wrong.
#pragma once

#include <map>
#include <string>

namespace braiddb::test {

// Empty, NUL, newline, quotes, separators and escapes of all formats, 0xff, bytes that are not UTF-8, and a key of 64 KiB.
inline std::map<std::string, std::string> HostileData() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  std::map<std::string, std::string> data;
  const std::string parts[] = {"",
                               std::string(1, '\0'),
                               "\n",
                               "\r\n",
                               "\r",
                               "\t",
                               ",",
                               "\"",
                               "\"\"",
                               "\\",
                               "\\n",
                               "%41",
                               "0x00",
                               " ",
                               " ==> ",
                               " : ",
                               "DATA=END",
                               "HEADER=END",
                               "VERSION=3",
                               "{\"key\":1}",
                               "\xff",
                               "\xff\xff",
                               "\xc3\x28",
                               "\xed\xa0\x80",
                               "\xf4\x90\x80\x80",
                               "\xc3\xa9",
                               "\xf0\x9f\x98\x80",
                               "\x7f",
                               "Keys in range: 1",
                               "#",
                               "'",
                               all_bytes,
                               "a,b\n\"c\"",
                               "\xef\xbb\xbf"};
  int number = 0;
  for (const std::string& part : parts) {
    data[part] = "value " + std::to_string(number);
    data["key " + std::to_string(number)] = part;
    data[part + part + "x"] = part + "\n" + part;
    ++number;
  }
  data[std::string(64 << 10, '\xfe')] = std::string(100'000, '\0');
  data[std::string((64 << 10) - 1, '"')] = "";
  return data;
}

}  // namespace braiddb::test
