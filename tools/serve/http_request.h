// HttpRequest: the head of an HTTP request, and its strict parser.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braiddb::tools {

struct HttpRequest {
  bool is_head = false;  // HEAD; else GET
  std::string path;      // decoded; begins with '/', has no "..", no backslash and no control character
  std::vector<std::pair<std::string, std::string>> query;    // decoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // Null if there is none; the first, if there are several.
  const std::string* FindQuery(std::string_view name) const;
  const std::string* FindHeader(std::string_view lower_case_name) const;
};

inline constexpr size_t kMaxHeadBytes = 8 << 10;
inline constexpr size_t kMaxTargetBytes = 2 << 10;
inline constexpr size_t kMaxHeaders = 64;
inline constexpr size_t kMaxQueryFields = 16;

// The status code of a request that is complete and right is 200. kIncomplete: more bytes are needed.
inline constexpr int kIncomplete = 0;

// Parses `bytes`, which begin with a request. Returns 200 and fills *request; kIncomplete; or the status code of the error:
//   400  not of the form of RFC 9112, a bad escape, a path with "..", no Host or several, a body by Transfer-Encoding
//   405  a method other than GET and HEAD
//   413  a body
//   414  a target longer than kMaxTargetBytes
//   431  a head longer than kMaxHeadBytes, or more than kMaxHeaders headers
//   505  a version other than HTTP/1.0 and HTTP/1.1
// `bytes` may be any bytes. Bytes behind the head are ignored.
int ParseHttpRequest(std::string_view bytes, HttpRequest* request);

}  // namespace braiddb::tools
