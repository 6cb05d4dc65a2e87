// Requests of `braiddb serve`: any bytes give a request or an error, whole or in parts, and what is accepted keeps the promises
// of HttpRequest.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tools/serve/http_request.h"

namespace {

using braiddb::test::FuzzInput;
using braiddb::tools::HttpRequest;
using braiddb::tools::kIncomplete;
using braiddb::tools::ParseHttpRequest;

// Parts that mean something, so that the later checks are reached.
const char* const kParts[] = {"GET ",
                              "HEAD ",
                              "POST ",
                              "/",
                              "/api/keys.json?",
                              "prefix=",
                              "%2e%2e",
                              "%",
                              "..",
                              "&",
                              "=",
                              " HTTP/1.1",
                              " HTTP/1.0",
                              "\r\n",
                              "\r\n\r\n",
                              "\n",
                              "Host: localhost\r\n",
                              "Content-Length: ",
                              "0",
                              "99999999999999999999",
                              "Transfer-Encoding: chunked\r\n",
                              " folded\r\n",
                              ":",
                              "A: b\r\n",
                              "%00",
                              "\\",
                              "#"};

void Expect(bool holds) {
  if (!holds) abort();
}

std::string Text(FuzzInput* input) {
  std::string text = input->Bool() ? "GET / HTTP/1.1\r\nHost: localhost\r\n" : "";
  for (uint32_t parts = input->Below(40); parts > 0; --parts) {
    const uint32_t part = input->Below(std::size(kParts) + 2);
    text += part < std::size(kParts) ? std::string(kParts[part]) : input->Bytes(100);
  }
  if (input->Bool()) text += "\r\n\r\n";
  return text;
}

void Check(const std::string& text, size_t cut) {
  HttpRequest request;
  const int status = ParseHttpRequest(text, &request);
  // A part of a request is incomplete, or it is refused for its size as the whole.
  HttpRequest part;
  const size_t head = text.find("\r\n\r\n");
  if (cut < std::min(head, braiddb::tools::kMaxHeadBytes)) Expect(ParseHttpRequest(text.substr(0, cut), &part) == kIncomplete);
  Expect(status == kIncomplete || status == 200 || (status >= 400 && status < 600));
  if (status == kIncomplete) Expect(head == std::string::npos && text.size() < braiddb::tools::kMaxHeadBytes);
  if (status != 200) return;
  Expect(head + 4 <= braiddb::tools::kMaxHeadBytes);
  Expect(request.path.starts_with('/') && request.path.find("..") == std::string::npos);
  Expect(request.path.find_first_of(std::string("\0\\\r\n", 4)) == std::string::npos);
  Expect(request.headers.size() <= braiddb::tools::kMaxHeaders && request.query.size() <= braiddb::tools::kMaxQueryFields);
  for (const auto& [name, value] : request.headers) Expect(!name.empty() && value.find_first_of("\r\n") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const size_t cut = input.Below(65536);
  Check(input.Bool() ? Text(&input) : input.Rest(), cut);
  return 0;
}
