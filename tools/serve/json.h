// The figures of a database as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "braiddb/metrics.h"
#include "tools/serve/source.h"

namespace braiddb::tools {

using Json = nlohmann::ordered_json;

// {"time": seconds since 1970, "metrics": {name: {"type", "unit", "meaning", "samples": [{"labels": {…}, "value"}]}}}.
// A histogram has "count", "sum" and "buckets": [[upper bound, count]] instead of "value".
Json MetricsJson(const Metrics& metrics);
// {"segments": [{"region", "state", "capacity", "used", "dead", "is_dead_known"}]}
Json SegmentsJson(const Metrics& metrics);

// A range of keys.
struct KeyQuery {
  std::string family;
  std::string prefix;     // only keys that begin with it
  std::string from;       // the first key; empty: the first with the prefix
  bool is_after = false;  // without `from` itself
  size_t limit = 50;      // keys; at most kMaxKeys
};
inline constexpr size_t kMaxKeys = 200;
inline constexpr size_t kMaxShownBytes = 256;  // of a key or value

// {"keys": [{"key", "key_hex", "value", "key_bytes", "value_bytes", "is_cut"}], "is_end": bool}. Bytes that are not printable are
// %XX in "key" and "value", which are cut at kMaxShownBytes; "key_hex" is the entire key.
//   NotFound         there is no such family
//   InvalidArgument  a prefix, where keys are not ordered by their bytes
Status KeysJson(const Source& source, const KeyQuery& query, Json* result);

// {"families": [{"name", "first", "last"}]}, the smallest and the largest key as in KeysJson. A key is null if the family is
// empty, or if too many deleted keys are in the way.
Json KeyRangesJson(const Source& source);

std::string Dump(const Json& json);

}  // namespace braiddb::tools
