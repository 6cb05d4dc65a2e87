// Lines of RocksDB's ldb: "0x<key> ==> 0x<value>" of dump --hex, which load --hex reads; and "0x<key> : 0x<value>" of scan --hex.
#include "tools/formats/line_reader.h"

namespace braiddb::tools {
namespace {

constexpr std::string_view kArrow = " ==> ";
constexpr std::string_view kColon = " : ";

class LdbReader final : public LineReader {
 public:
  using LineReader::LineReader;

  Result ReadNext(Record* record) override {
    std::string_view line;
    Result result = Result::kEnd;
    do {
      if (!NextLine(&line, &result)) return result;
    } while (line.starts_with("Keys in range:") || line.starts_with("Created bg thread 0x"));
    const std::string_view delimiter = line.find(kArrow) != std::string_view::npos ? kArrow : kColon;
    const size_t at = line.find(delimiter);
    if (at == std::string_view::npos) return Broken("there is no ' ==> ' between key and value", line);
    record->family.clear();
    if (!TakeField(line.substr(0, at), &record->key) || !TakeField(line.substr(at + delimiter.size()), &record->value))
      return Broken("a key or value is not hexadecimal with 0x in front; dump with --hex", line);
    return Result::kRecord;
  }

 private:
  static bool TakeField(std::string_view field, std::string* bytes) {
    return field.starts_with("0x") && DecodeHex(field.substr(2), bytes);
  }
};

class LdbWriter final : public RecordWriter {
 public:
  void BeginFamily(const std::string&, uint64_t, std::string*) override {}
  void Append(Slice key, Slice value, std::string* text) override {
    text->append("0x");
    AppendHex(key, text);
    text->append(" ==> 0x");
    AppendHex(value, text);
    text->push_back('\n');
  }
  void EndFamily(std::string*) override {}
};

}  // namespace

std::unique_ptr<RecordReader> MakeLdbReader(std::unique_ptr<LineInput> input) {
  return std::make_unique<LdbReader>(std::move(input));
}
std::unique_ptr<RecordWriter> MakeLdbWriter() { return std::make_unique<LdbWriter>(); }

}  // namespace braiddb::tools
