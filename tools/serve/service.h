// Service: answers the requests of `braiddb serve`.
//
//   /                   the page; has no data, so it needs no token
//   /metrics            Prometheus text, or OpenMetrics if the header Accept asks for that
//   /api/info.json      the database, and what the service shows
//   /api/metrics.json   MetricsJson
//   /api/segments.json  SegmentsJson
//   /api/ranges.json    KeyRangesJson
//   /api/log.json       the last hundred lines of LOG
//   /api/keys.json      KeysJson; family, prefix, from, after=1, limit, form=text|hex (of prefix and from)
//
// ACCESS  With a token, all but the page need the header "Authorization: Bearer <token>". Without a token, the header Host must
//         name this machine's loopback, so that a page from elsewhere that had its name resolved to 127.0.0.1 is refused.
#pragma once

#include <string>

#include "tools/serve/http_server.h"
#include "tools/serve/source.h"

namespace braiddb::tools {

struct ServiceOptions {
  bool shows_data = true;  // false: keys, values and key search are 403
  std::string token;       // empty: none is needed
};

// Thread safety: Handle may be called concurrently.
class Service {
 public:
  // `source`: not owned.
  Service(const Source* source, ServiceOptions options) : source_(source), options_(std::move(options)) {}

  // Does not throw.
  HttpResponse Handle(const HttpRequest& request) const;

 private:
  bool IsAllowed(const HttpRequest& request, HttpResponse* refused) const;
  HttpResponse Answer(const HttpRequest& request) const;
  HttpResponse Info() const;
  HttpResponse Log() const;
  HttpResponse Keys(const HttpRequest& request) const;

  const Source* const source_;
  const ServiceOptions options_;
};

// The page, tools/serve/page.html.
extern const char kPage[];

}  // namespace braiddb::tools
