// CSV as RFC 4180 has it, with any bytes: a field that holds a comma, a quote or the end of a line is quoted, and a quote in it
// is doubled. Lines end with LF or CRLF; exports write LF. A byte order mark at the start is skipped, so a field that begins with
// these bytes is quoted, too.
#include "tools/formats/line_reader.h"

namespace braiddb::tools {
namespace {

constexpr size_t kMaxRecord = size_t{4} << 30;

class CsvReader final : public LineReader {
 public:
  CsvReader(std::unique_ptr<LineInput> input, ByteForm bytes) : LineReader(std::move(input)), bytes_(bytes) {}

  Result ReadNext(Record* record) override {
    std::string_view line;
    Result result = Result::kEnd;
    if (!NextLine(&line, &result)) return result;
    if (line.find('"') == std::string_view::npos) return Plain(line, record);
    return Quoted(line, record);
  }

 private:
  static std::string_view WithoutReturn(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  Result Plain(std::string_view text, Record* record) {
    const std::string_view line = WithoutReturn(text);
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) return Broken("there is no comma; a record has a key and a value", text);
    if (line.find(',', comma + 1) != std::string_view::npos) return Broken("there are more than two fields", text);
    return Take(line.substr(0, comma), line.substr(comma + 1), text, record);
  }

  // Reads one field, with further lines while its quotes are open. Returns false after an error, which error() tells.
  bool TakeField(std::string* text, size_t* at, std::string* field) {
    field->clear();
    if (*at >= text->size() || (*text)[*at] != '"') {
      const size_t end = std::min(text->find(',', *at), text->size());
      field->assign(*text, *at, end - *at);
      *at = end;
      if (end == text->size() && field->ends_with('\r')) field->pop_back();
      return field->find('"') == std::string::npos || (Broken("there is a quote in a field without quotes"), false);
    }
    for (++*at;;) {
      const size_t quote = text->find('"', *at);
      if (quote != std::string::npos) {
        field->append(*text, *at, quote - *at);
        *at = quote + 1;
        if (*at >= text->size() || (*text)[*at] != '"') break;
        field->push_back('"');
        ++*at;
        continue;
      }
      field->append(*text, *at);
      *at = text->size();
      std::string_view more;
      Result result = Result::kEnd;
      if (text->size() > kMaxRecord || !NextLineOfRecord(&more, &result)) return Broken("a quote is not closed"), false;
      field->push_back('\n');
      text->push_back('\n');
      ++*at;
      text->append(more);
    }
    if (*at + 1 == text->size() && (*text)[*at] == '\r') ++*at;
    return *at >= text->size() || (*text)[*at] == ',' || (Broken("there is text behind the quote that closes a field"), false);
  }

  // A quote stays open too if the input cannot be read.
  Result BrokenOrFailed(std::string_view text) {
    return input()->status().ok() ? Broken(error(), text) : Failed(input()->status());
  }

  Result Quoted(std::string_view line, Record* record) {
    std::string text(line);
    std::string key;
    std::string value;
    size_t at = 0;
    if (!TakeField(&text, &at, &key)) return BrokenOrFailed(text);
    if (at >= text.size()) return Broken("there is no comma; a record has a key and a value", text);
    if (!TakeField(&text, &++at, &value)) return BrokenOrFailed(text);
    if (at < text.size()) return Broken("there are more than two fields", text);
    return Take(key, value, text, record);
  }

  Result Take(std::string_view key, std::string_view value, std::string_view text, Record* record) {
    record->family.clear();
    if (!Decode(bytes_, key, &record->key) || !Decode(bytes_, value, &record->value))
      return Broken(bytes_ == ByteForm::kHex ? "a field is not hexadecimal" : "a field has a wrong escape", text);
    return Result::kRecord;
  }

  const ByteForm bytes_;
};

class CsvWriter final : public RecordWriter {
 public:
  explicit CsvWriter(ByteForm bytes) : bytes_(bytes) {}
  void BeginFamily(const std::string&, uint64_t, std::string*) override {}
  void Append(Slice key, Slice value, std::string* text) override {
    AppendField(key, text);
    text->push_back(',');
    AppendField(value, text);
    text->push_back('\n');
  }
  void EndFamily(std::string*) override {}

 private:
  void AppendField(Slice bytes, std::string* text) const {
    if (bytes_ == ByteForm::kHex) return AppendHex(bytes, text);
    const std::string encoded = bytes_ == ByteForm::kEscape ? Encode(bytes_, bytes) : std::string();
    const Slice field = bytes_ == ByteForm::kEscape ? Slice(encoded) : bytes;
    if (field.find_first_of("\",\r\n") == Slice::npos && !field.starts_with(kByteOrderMark)) {
      text->append(field);
      return;
    }
    text->push_back('"');
    for (const char c : field) {
      if (c == '"') text->push_back('"');
      text->push_back(c);
    }
    text->push_back('"');
  }

  const ByteForm bytes_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeCsvReader(std::unique_ptr<LineInput> input, ByteForm bytes) {
  return std::make_unique<CsvReader>(std::move(input), bytes);
}
std::unique_ptr<RecordWriter> MakeCsvWriter(ByteForm bytes) { return std::make_unique<CsvWriter>(bytes); }

}  // namespace braiddb::tools
