#include "tools/record.h"

#include "braiddb/db.h"
#include "lsm/manifest.h"

namespace braiddb::tools {

RecordReader::Result RecordReader::Next(Record* record) {
  const Result result = ReadNext(record);
  is_taken_ = result == Result::kEnd;
  if (result != Result::kRecord) return result;
  if (record->key.size() > kMaxKeySize)
    return Broken("the key has " + std::to_string(record->key.size()) + " bytes; at most 65536 are possible", *record);
  if (record->value.size() > kMaxValueSize)
    return Broken("the value has " + std::to_string(record->value.size()) + " bytes; at most 1 GiB is possible", *record);
  if (record->family.size() > kMaxFamilyName)
    return Broken(
        "the name of its column family has " + std::to_string(record->family.size()) + " bytes; at most 255 are possible",
        *record);
  is_taken_ = true;
  return result;
}

RecordReader::Result RecordReader::Broken(std::string error, const Record& record) {
  std::string text = "{";
  if (!record.family.empty()) {
    AppendJsonField("family", record.family, &text);
    text += ",";
  }
  AppendJsonField("key", record.key, &text);
  text += ",";
  AppendJsonField("value", record.value, &text);
  return Broken(std::move(error), text + "}");
}

}  // namespace braiddb::tools
