// JSON lines: {"key":"…","value":"…"}. A family other than the default one is in "family". Bytes that are not UTF-8 are in
// key_hex, value_hex and family_hex instead.
#include <nlohmann/json.hpp>

#include "tools/formats/line_reader.h"

namespace braiddb::tools {
namespace {

using Json = nlohmann::json;

// Takes `name` or <name>_hex. Returns null, or what is wrong.
const char* TakeField(const Json& json, const char* name, bool is_needed, std::string* bytes) {
  const auto text = json.find(name);
  const auto hex = json.find(std::string(name) + "_hex");
  bytes->clear();
  if (text != json.end() && hex != json.end()) return "a field is there as text and in hexadecimal";
  if (hex != json.end())
    return hex->is_string() && DecodeHex(hex->get_ref<const std::string&>(), bytes) ? nullptr : "a field is not hexadecimal";
  if (text == json.end()) return is_needed ? "there is no key or no value" : nullptr;
  if (!text->is_string()) return "a field is not a string";
  *bytes = text->get_ref<const std::string&>();
  return nullptr;
}

class JsonLinesReader final : public LineReader {
 public:
  using LineReader::LineReader;

  Result ReadNext(Record* record) override {
    std::string_view line;
    Result result = Result::kEnd;
    if (!NextLine(&line, &result)) return result;
    const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
    if (!json.is_object()) return Broken("the line is not a JSON object", line);
    const char* error = TakeField(json, "key", true, &record->key);
    if (error == nullptr) error = TakeField(json, "value", true, &record->value);
    if (error == nullptr) error = TakeField(json, "family", false, &record->family);
    return error == nullptr ? Result::kRecord : Broken(error, line);
  }
};

class JsonLinesWriter final : public RecordWriter {
 public:
  void BeginFamily(const std::string& family, uint64_t, std::string*) override {
    begin_ = "{";
    if (family == "default") return;
    AppendJsonField("family", family, &begin_);
    begin_ += ',';
  }
  void Append(Slice key, Slice value, std::string* text) override {
    text->append(begin_);
    AppendJsonField("key", key, text);
    text->push_back(',');
    AppendJsonField("value", value, text);
    text->append("}\n");
  }
  void EndFamily(std::string*) override {}

 private:
  std::string begin_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeJsonLinesReader(std::unique_ptr<LineInput> input) {
  return std::make_unique<JsonLinesReader>(std::move(input));
}
std::unique_ptr<RecordWriter> MakeJsonLinesWriter() { return std::make_unique<JsonLinesWriter>(); }

}  // namespace braiddb::tools
