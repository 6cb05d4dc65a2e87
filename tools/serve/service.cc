#include "tools/serve/service.h"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>

#include "tools/serve/json.h"
#include "util/format.h"

namespace braiddb::tools {
namespace {

constexpr size_t kLogLines = 100;

HttpResponse JsonResponse(const Json& json) { return {200, "application/json; charset=utf-8", Dump(json)}; }

HttpResponse Error(int status, const std::string& why) {
  return {status, "application/json; charset=utf-8", Dump({{"error", why}})};
}

// In time that does not depend on the bytes.
bool IsSame(std::string_view given, std::string_view expected) {
  size_t different = given.size() ^ expected.size();
  for (size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i % expected.size()]);
  return different == 0;
}

bool IsSameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// The header Host, with or without a port. All addresses 127.0.0.0/8 are loopback.
bool IsLoopbackName(std::string_view host) {
  const size_t port = host.rfind(':');
  if (port != std::string_view::npos && host.find(']', port) == std::string_view::npos) host = host.substr(0, port);
  in_addr address = {};
  const bool is_address = inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
  return host.empty() || IsSameName(host, "localhost") || host == "[::1]" || (is_address && ntohl(address.s_addr) >> 24 == 127);
}

bool FromHex(std::string_view text, std::string* bytes) {
  if (text.size() % 2 != 0) return false;
  bytes->clear();
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const auto result = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (result.ec != std::errc() || result.ptr != text.data() + i + 2) return false;
    bytes->push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace

HttpResponse Service::Handle(const HttpRequest& request) const {
  try {
    HttpResponse refused;
    return IsAllowed(request, &refused) ? Answer(request) : refused;
  } catch (const std::exception& error) {
    return Error(500, error.what());
  }
}

bool Service::IsAllowed(const HttpRequest& request, HttpResponse* refused) const {
  if (options_.token.empty()) {
    const std::string* const host = request.FindHeader("host");
    if (host == nullptr || IsLoopbackName(*host)) return true;
    *refused =
        Error(421, "the header Host names another machine; use localhost or 127.0.0.1, or start the service with --token-file");
    return false;
  }
  if (request.path == "/") return true;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string* const given = request.FindHeader("authorization");
  if (given != nullptr && IsSameName(given->substr(0, kScheme.size()), kScheme) &&
      IsSame(std::string_view(*given).substr(kScheme.size()), options_.token))
    return true;
  *refused = Error(401, "give the token of the service in the header Authorization: Bearer");
  return false;
}

HttpResponse Service::Answer(const HttpRequest& request) const {
  if (request.path == "/") return {200, "text/html; charset=utf-8", kPage};
  if (request.path == "/metrics") {
    const std::string* const accept = request.FindHeader("accept");
    const bool is_open_metrics = accept != nullptr && accept->find("application/openmetrics-text") != std::string::npos;
    const auto format = is_open_metrics ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus;
    return {200, is_open_metrics ? kOpenMetricsContentType : kPrometheusContentType,
            MetricsText(source_->db()->GetMetrics(), format)};
  }
  if (request.path == "/api/metrics.json") return JsonResponse(MetricsJson(source_->db()->GetMetrics()));
  if (request.path == "/api/segments.json") return JsonResponse(SegmentsJson(source_->db()->GetMetrics()));
  if (request.path == "/api/info.json") return Info();
  if (request.path == "/api/log.json") return Log();
  if (request.path == "/api/keys.json") return Keys(request);
  if (request.path == "/api/ranges.json")
    return options_.shows_data ? JsonResponse(KeyRangesJson(*source_)) : Error(403, "the service was started with --no-data");
  return Error(404, "there is no such page");
}

HttpResponse Service::Info() const {
  Json families = Json::array();
  for (const auto& family : source_->families()) families.push_back(Escaped(family->GetName()));
  const Status status = source_->catch_up_status();
  return JsonResponse({{"path", source_->path()},
                       {"mode", source_->is_secondary() ? "secondary" : "read-only"},
                       {"follow_error", status.ok() ? "" : status.ToString()},
                       {"shows_data", options_.shows_data},
                       {"families", std::move(families)}});
}

HttpResponse Service::Log() const {
  Json lines = Json::array();
  for (const std::string& line : source_->LogLines(kLogLines)) lines.push_back(line);
  return JsonResponse({{"lines", std::move(lines)}});
}

HttpResponse Service::Keys(const HttpRequest& request) const {
  if (!options_.shows_data) return Error(403, "the service was started with --no-data");
  const auto text = [&request](const char* name) {
    const std::string* const value = request.FindQuery(name);
    return value == nullptr ? std::string() : *value;
  };
  KeyQuery query;
  query.prefix = text("prefix");
  query.from = text("from");
  query.is_after = text("after") == "1";
  const std::string form = text("form");
  if (form != "" && form != "text" && form != "hex") return Error(400, "form must be text or hex");
  if (form == "hex") {
    if (!FromHex(text("prefix"), &query.prefix) || !FromHex(text("from"), &query.from))
      return Error(400, "prefix and from must be pairs of hexadecimal digits");
  }
  if (const std::string limit = text("limit"); !limit.empty()) {
    const auto result = std::from_chars(limit.data(), limit.data() + limit.size(), query.limit);
    if (result.ec != std::errc() || result.ptr != limit.data() + limit.size() || query.limit == 0)
      return Error(400, "limit must be a number from 1 to " + std::to_string(kMaxKeys));
  }
  // The page has the families' names as Info shows them.
  query.family = kDefaultColumnFamilyName;
  if (const std::string wanted = text("family"); !wanted.empty()) {
    query.family = wanted;
    for (const auto& family : source_->families()) {
      if (Escaped(family->GetName()) == wanted) query.family = family->GetName();
    }
  }
  Json result;
  const Status status = KeysJson(*source_, query, &result);
  if (status.ok()) return JsonResponse(result);
  return Error(status.IsNotFound() ? 404 : status.IsInvalidArgument() ? 400 : 500, status.ToString());
}

}  // namespace braiddb::tools
