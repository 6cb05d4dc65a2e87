#include "tools/serve/http_request.h"

#include <algorithm>

namespace braiddb::tools {
namespace {

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kBadMethod = 405;
constexpr int kHasBody = 413;
constexpr int kLongTarget = 414;
constexpr int kLargeHead = 431;
constexpr int kBadVersion = 505;

using Fields = std::vector<std::pair<std::string, std::string>>;

const std::string* FindField(const Fields& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [name](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A token of RFC 9110, section 5.6.2.
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || IsLetter(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Replaces %XX, and '+' by a space if `is_query`. False: an escape is cut short or has no hexadecimal digits.
bool Decode(std::string_view text, bool is_query, std::string* decoded) {
  decoded->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded->push_back(is_query && text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    decoded->push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

// The server opens no files, so such a path would name nothing. It is refused all the same.
bool IsSafePath(std::string_view path) {
  if (!path.starts_with('/')) return false;
  if (!std::all_of(path.begin(), path.end(), [](char c) { return c >= ' ' && c != '\x7f' && c != '\\'; })) return false;
  return path.find("..") == std::string_view::npos;
}

int ParseQuery(std::string_view text, Fields* query) {
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    if (field.empty()) continue;
    if (query->size() == kMaxQueryFields) return kBadRequest;
    const size_t equals = std::min(field.size(), field.find('='));
    std::string name;
    std::string value;
    if (!Decode(field.substr(0, equals), true, &name)) return kBadRequest;
    if (equals < field.size() && !Decode(field.substr(equals + 1), true, &value)) return kBadRequest;
    query->emplace_back(std::move(name), std::move(value));
  }
  return kOk;
}

int ParseTarget(std::string_view target, HttpRequest* request) {
  if (target.size() > kMaxTargetBytes) return kLongTarget;
  if (!IsVisible(target) || target.find('#') != std::string_view::npos) return kBadRequest;
  const size_t mark = std::min(target.size(), target.find('?'));
  if (!Decode(target.substr(0, mark), false, &request->path) || !IsSafePath(request->path)) return kBadRequest;
  return mark == target.size() ? kOk : ParseQuery(target.substr(mark + 1), &request->query);
}

int ParseRequestLine(std::string_view line, HttpRequest* request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return kBadRequest;
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method)) return kBadRequest;
  if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) || version[6] != '.' || !IsDigit(version[7]))
    return kBadRequest;
  if (version != "HTTP/1.0" && version != "HTTP/1.1") return kBadVersion;
  if (method != "GET" && method != "HEAD") return kBadMethod;
  request->is_head = method == "HEAD";
  return ParseTarget(line.substr(first + 1, last - first - 1), request);
}

int ParseHeader(std::string_view line, HttpRequest* request) {
  if (request->headers.size() == kMaxHeaders) return kLargeHead;
  const size_t colon = line.find(':');
  // A line that begins with a space would continue the header before it; no client may send that (RFC 9112, section 5.2).
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return kBadRequest;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  std::string_view value = line.substr(colon + 1);
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  const auto is_control = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; };
  if (std::any_of(value.begin(), value.end(), is_control)) return kBadRequest;
  request->headers.emplace_back(std::move(name), value);
  return kOk;
}

int CheckHeaders(const HttpRequest& request, bool needs_host) {
  const auto hosts =
      std::count_if(request.headers.begin(), request.headers.end(), [](const auto& h) { return h.first == "host"; });
  if (hosts > 1 || (needs_host && hosts == 0)) return kBadRequest;
  if (request.FindHeader("transfer-encoding") != nullptr) return kBadRequest;
  for (const auto& [name, value] : request.headers) {
    if (name != "content-length") continue;
    if (value.empty() || !std::all_of(value.begin(), value.end(), IsDigit)) return kBadRequest;
    if (value.find_first_not_of('0') != std::string::npos) return kHasBody;
  }
  return kOk;
}

}  // namespace

const std::string* HttpRequest::FindQuery(std::string_view name) const { return FindField(query, name); }
const std::string* HttpRequest::FindHeader(std::string_view lower_case_name) const { return FindField(headers, lower_case_name); }

int ParseHttpRequest(std::string_view bytes, HttpRequest* request) {
  *request = HttpRequest();
  const size_t head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos) return bytes.size() < kMaxHeadBytes ? kIncomplete : kLargeHead;
  if (head + 4 > kMaxHeadBytes) return kLargeHead;
  std::string_view rest = bytes.substr(0, head + 2);
  bool is_first = true;
  bool needs_host = false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    // A bare CR or LF inside a line could be the end of a line to another program.
    if (line.find_first_of("\r\n") != std::string_view::npos) return kBadRequest;
    const int status = is_first ? ParseRequestLine(line, request) : ParseHeader(line, request);
    if (status != kOk) return status;
    if (is_first) needs_host = line.ends_with("1.1");
    is_first = false;
  }
  return CheckHeaders(*request, needs_host);
}

}  // namespace braiddb::tools
