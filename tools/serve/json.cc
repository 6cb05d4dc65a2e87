#include "tools/serve/json.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "util/format.h"

namespace braiddb::tools {
namespace {

// Deleted keys that a step of the browser passes before it gives up.
constexpr uint64_t kMaxSkippedKeys = 100'000;

std::string Hex(Slice bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

Json SampleJson(const MetricSample& sample, MetricType type) {
  Json json{{"labels", Json::object()}};
  for (const auto& [name, value] : sample.labels) json["labels"][name] = value;
  if (type != MetricType::kHistogram) {
    json["value"] = sample.value;
    return json;
  }
  json["count"] = sample.count;
  json["sum"] = sample.sum;
  json["buckets"] = Json::array();
  for (const MetricSample::Bucket& bucket : sample.buckets) json["buckets"].push_back({bucket.upper_bound, bucket.count});
  return json;
}

}  // namespace

Json MetricsJson(const Metrics& metrics) {
  static constexpr const char* kTypes[] = {"counter", "gauge", "histogram"};
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Json all = Json::object();
  for (const Metric& metric : metrics.all) {
    const MetricDescription& row = *metric.description;
    Json samples = Json::array();
    for (const MetricSample& sample : metric.samples) samples.push_back(SampleJson(sample, row.type));
    all[row.name] = {{"type", kTypes[static_cast<size_t>(row.type)]},
                     {"unit", row.unit},
                     {"meaning", row.meaning},
                     {"samples", std::move(samples)}};
  }
  return {{"time", now.count()}, {"metrics", std::move(all)}};
}

Json SegmentsJson(const Metrics& metrics) {
  Json segments = Json::array();
  for (const SegmentFigures& segment : metrics.segments) {
    segments.push_back({{"region", segment.region},
                        {"state", segment.state},
                        {"capacity", segment.capacity},
                        {"used", segment.used},
                        {"dead", segment.dead},
                        {"is_dead_known", segment.is_dead_known}});
  }
  return {{"segments", std::move(segments)}};
}

Status KeysJson(const Source& source, const KeyQuery& query, Json* result) {
  ColumnFamilyHandle* const family = source.FindFamily(query.family);
  if (family == nullptr) return Status::NotFound("there is no column family '" + Escaped(query.family) + "'");
  const Comparator* const comparator = family->GetOptions().comparator;
  if (!query.prefix.empty() && comparator != BytewiseComparator())
    return Status::InvalidArgument(
        "keys of this family are not ordered by their bytes; search from a key instead of by a prefix");
  ReadOptions options;
  options.max_skippable_internal_keys = kMaxSkippedKeys;
  const std::unique_ptr<Iterator> keys = source.db()->NewIterator(options, family);
  const std::string& first = std::max(query.from, query.prefix);  // in bytewise order, or there is no prefix
  first.empty() ? keys->SeekToFirst() : keys->Seek(first);
  if (query.is_after && keys->Valid() && keys->key() == first) keys->Next();
  Json list = Json::array();
  const size_t limit = std::min(query.limit, kMaxKeys);
  for (; keys->Valid() && keys->key().starts_with(query.prefix) && list.size() < limit; keys->Next()) {
    const Slice key = keys->key();
    const Slice value = keys->value();
    list.push_back({{"key", Escaped(key.substr(0, kMaxShownBytes))},
                    {"key_hex", Hex(key)},
                    {"value", Escaped(value.substr(0, kMaxShownBytes))},
                    {"key_bytes", key.size()},
                    {"value_bytes", value.size()},
                    {"is_cut", key.size() > kMaxShownBytes || value.size() > kMaxShownBytes}});
  }
  const bool is_end = !keys->Valid() || !keys->key().starts_with(query.prefix);
  if (Status status = keys->status(); !status.ok()) return status;
  *result = {{"keys", std::move(list)}, {"is_end", is_end}};
  return Status::OK();
}

Json KeyRangesJson(const Source& source) {
  ReadOptions options;
  options.max_skippable_internal_keys = kMaxSkippedKeys;
  Json families = Json::array();
  for (const auto& family : source.families()) {
    const std::unique_ptr<Iterator> keys = source.db()->NewIterator(options, family.get());
    const auto key_text = [&keys] { return keys->Valid() ? Json(Escaped(keys->key().substr(0, kMaxShownBytes))) : Json(); };
    // A search that passes too many deleted keys ends: the key is not known.
    bool is_known = true;
    const auto note = [&] { is_known = is_known && keys->status().ok(); };
    keys->SeekToFirst();
    const Json first = key_text();
    note();
    keys->SeekToLast();
    note();
    families.push_back({{"name", Escaped(family->GetName())}, {"first", first}, {"last", key_text()}, {"is_known", is_known}});
  }
  return {{"families", std::move(families)}};
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace braiddb::tools
