// TSV: a key, a tab and a value. \t, \n, \r, \0 and \\ stand for tab, newline, carriage return, NUL and backslash.
#include "tools/formats/line_reader.h"

namespace braiddb::tools {
namespace {

constexpr std::string_view kBytes("\t\n\r\0\\", 5);
constexpr std::string_view kLetters = "tnr0\\";

bool Unescape(std::string_view field, std::string* bytes) {
  bytes->clear();
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      bytes->push_back(field[i]);
      continue;
    }
    const size_t letter = ++i < field.size() ? kLetters.find(field[i]) : std::string_view::npos;
    if (letter == std::string_view::npos) return false;
    bytes->push_back(kBytes[letter]);
  }
  return true;
}

class TsvReader final : public LineReader {
 public:
  TsvReader(std::unique_ptr<LineInput> input, ByteForm bytes) : LineReader(std::move(input)), bytes_(bytes) {}

  Result ReadNext(Record* record) override {
    std::string_view line;
    Result result = Result::kEnd;
    if (!NextLine(&line, &result)) return result;
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return Broken("there is no tab; a record has a key and a value", line);
    std::string_view value = line.substr(tab + 1);
    if (value.find('\t') != std::string_view::npos) return Broken("there are more than two fields", line);
    if (value.ends_with('\r')) value.remove_suffix(1);
    record->family.clear();
    if (!TakeField(line.substr(0, tab), &record->key) || !TakeField(value, &record->value))
      return Broken(bytes_ == ByteForm::kHex ? "a field is not hexadecimal" : "a field has a wrong escape", line);
    return Result::kRecord;
  }

 protected:
  bool SkipsByteOrderMark() const override { return false; }  // there is no escape for these bytes

 private:
  bool TakeField(std::string_view field, std::string* bytes) const {
    return bytes_ == ByteForm::kRaw ? Unescape(field, bytes) : Decode(bytes_, field, bytes);
  }

  const ByteForm bytes_;
};

class TsvWriter final : public RecordWriter {
 public:
  explicit TsvWriter(ByteForm bytes) : bytes_(bytes) {}
  void BeginFamily(const std::string&, uint64_t, std::string*) override {}
  void Append(Slice key, Slice value, std::string* text) override {
    AppendField(key, text);
    text->push_back('\t');
    AppendField(value, text);
    text->push_back('\n');
  }
  void EndFamily(std::string*) override {}

 private:
  void AppendField(Slice bytes, std::string* text) const {
    if (bytes_ != ByteForm::kRaw) {
      text->append(Encode(bytes_, bytes));
      return;
    }
    for (const char c : bytes) {
      const size_t at = kBytes.find(c);
      if (at != std::string_view::npos) text->push_back('\\');
      text->push_back(at != std::string_view::npos ? kLetters[at] : c);
    }
  }

  const ByteForm bytes_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeTsvReader(std::unique_ptr<LineInput> input, ByteForm bytes) {
  return std::make_unique<TsvReader>(std::move(input), bytes);
}
std::unique_ptr<RecordWriter> MakeTsvWriter(ByteForm bytes) { return std::make_unique<TsvWriter>(bytes); }

}  // namespace braiddb::tools
