// Dumps of LMDB (mdb_dump) and Berkeley DB (db_dump): sections of a header and of lines, a key and then a value. A section whose
// header names a database is a column family.
//
//   VERSION=3 · format=bytevalue or print · database=<name> · type=btree · … · HEADER=END
//   <space><key> · <space><value> · … · DATA=END
//
// bytevalue: two hexadecimal digits for each byte. print: printable ASCII, \\ for a backslash, \xx for other bytes.
#include <algorithm>
#include <optional>

#include "tools/formats/line_reader.h"

namespace braiddb::tools {
namespace {

constexpr uint64_t kMapRoom = 64ull << 20;

bool DecodePrint(std::string_view text, std::string* bytes) {
  bytes->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes->push_back(text[i]);
    } else if (text.substr(i).starts_with("\\\\")) {
      bytes->push_back('\\');
      ++i;
    } else {
      const int high = text.size() - i > 2 ? HexDigit(text[i + 1]) : -1;
      const int low = text.size() - i > 2 ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return false;
      bytes->push_back(static_cast<char>(high << 4 | low));
      i += 2;
    }
  }
  return true;
}

class DumpReader final : public LineReader {
 public:
  using LineReader::LineReader;

  Result ReadNext(Record* record) override {
    std::string_view line;
    Result result = Result::kEnd;
    for (;;) {
      was_in_section_ = in_section_;
      if (!NextLine(&line, &result)) {
        if (result != Result::kEnd) return result;
        if (in_section_) return EndsEarly();
        return has_section_ ? result : Failed(Status::InvalidArgument("the input has no dump, which begins with VERSION=3"));
      }
      if (!in_section_) {
        if (line.empty()) continue;
        if (!ReadHeader(line, &result)) return result;
        continue;
      }
      if (line != "DATA=END") break;
      in_section_ = false;
    }
    return input()->is_cut() ? EndsEarly() : ReadPair(line, record);
  }

 protected:
  std::string SaveFormat() const override {
    const std::optional<std::string>& key = is_taken() ? last_key_ : before_key_;
    return std::string((is_taken() ? in_section_ : was_in_section_) ? "s" : "-") + (is_print_ ? "p" : "b") +
           std::to_string(database_.size()) + ":" + database_ + (key ? "k" + *key : "");
  }
  Status RestoreFormat(std::string_view state) override {
    const Status damaged = Status::InvalidArgument("the saved position is damaged");
    const size_t colon = state.find(':');
    if (state.size() < 4 || colon == std::string_view::npos || colon > 12) return damaged;
    const std::string_view digits = state.substr(2, colon - 2);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return damaged;
    const size_t size = std::stoull(std::string(digits));
    if (size > state.size() - colon - 1) return damaged;
    in_section_ = state[0] == 's';
    has_section_ = input()->offset() != 0;
    is_print_ = state[1] == 'p';
    database_ = state.substr(colon + 1, size);
    const std::string_view rest = state.substr(colon + 1 + size);
    before_key_ = last_key_ = rest.empty() ? std::nullopt : std::optional<std::string>(rest.substr(1));
    return Status::OK();
  }

 private:
  // A header is not a record: an error in it ends the import. Lines with unknown names are ignored, as mdb_load does.
  bool ReadHeader(std::string_view line, Result* result) {
    is_print_ = false;
    database_.clear();
    before_key_.reset();
    last_key_.reset();
    const auto fail = [&](const std::string& why) {
      *result = Failed(Status::InvalidArgument("line " + std::to_string(input()->lines()) + ": " + why));
      return false;
    };
    if (line != "VERSION=3") return fail("a dump of LMDB or Berkeley DB begins with VERSION=3");
    for (;;) {
      if (!NextLineOfRecord(&line, result)) return *result == Result::kFailed ? false : fail("the header has no HEADER=END");
      if (input()->is_cut()) return fail("the dump ends in a line of the header");
      if (line == "HEADER=END") break;
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) return fail("a line of the header has no '='");
      const std::string_view name = line.substr(0, equals);
      const std::string_view value = line.substr(equals + 1);
      if (name == "format") {
        if (value != "bytevalue" && value != "print") return fail("the format is neither bytevalue nor print");
        is_print_ = value == "print";
      } else if (name == "database") {
        database_ = value;
      } else if (name == "type" && value != "btree" && value != "hash") {
        return fail("only dumps of the types btree and hash have keys");
      } else if (name == "keys" && value == "0") {
        return fail("the dump has no keys");
      }
    }
    in_section_ = has_section_ = true;
    return true;
  }

  bool Decode(std::string_view line, std::string* bytes) const {
    if (!line.starts_with(' ')) return false;
    line.remove_prefix(1);
    return is_print_ ? DecodePrint(line, bytes) : DecodeHex(line, bytes);
  }

  // A line without a newline may be a part of the line that was dumped.
  Result EndsEarly() { return Failed(Status::InvalidArgument("the dump ends without DATA=END")); }

  Result ReadPair(std::string_view line, Record* record) {
    std::string text(line);
    before_key_ = last_key_;
    const bool has_key = Decode(line, &record->key);
    Result result = Result::kEnd;
    if (!NextLineOfRecord(&line, &result)) return result == Result::kFailed ? result : EndsEarly();
    if (input()->is_cut()) return EndsEarly();
    if (line == "DATA=END") {
      in_section_ = false;
      return Broken("there is a key without a value", text);
    }
    text += "\n";
    text += line;
    if (!has_key || !Decode(line, &record->value)) return Broken("a key or value has a wrong form", text);
    // Dumps are sorted, so equal keys are neighbours.
    if (last_key_ && *last_key_ == record->key)
      return Broken("the key is there already: duplicates of one key cannot be kept", text);
    last_key_ = record->key;
    record->family = database_;
    return Result::kRecord;
  }

  bool in_section_ = false;
  bool has_section_ = false;     // a section has begun
  bool was_in_section_ = false;  // at the start of the last record
  bool is_print_ = false;
  std::string database_;
  std::optional<std::string> last_key_;
  std::optional<std::string> before_key_;  // of the record before the last one
};

class DumpWriter final : public RecordWriter {
 public:
  // A file of Berkeley DB has one database without a name, or several with names.
  DumpWriter(RecordFormat format, size_t families)
      : is_lmdb_(format == RecordFormat::kMdbDump), names_default_(!is_lmdb_ && families > 1) {}

  // mdb_load takes the size of its map from the header.
  void BeginFamily(const std::string& family, uint64_t bytes, std::string* text) override {
    text->append("VERSION=3\nformat=bytevalue\n");
    if (family != "default" || names_default_) text->append("database=" + family + "\n");
    text->append("type=btree\n");
    map_bytes_ = std::max(map_bytes_, kMapRoom) + (bytes * 4 & ~uint64_t{4095});
    if (is_lmdb_) text->append("mapsize=" + std::to_string(map_bytes_) + "\n");
    text->append(is_lmdb_ ? "maxreaders=126\ndb_pagesize=4096\nHEADER=END\n" : "db_pagesize=4096\nHEADER=END\n");
  }
  void Append(Slice key, Slice value, std::string* text) override {
    for (const Slice bytes : {key, value}) {
      text->push_back(' ');
      AppendHex(bytes, text);
      text->push_back('\n');
    }
  }
  void EndFamily(std::string* text) override { text->append("DATA=END\n"); }

 private:
  const bool is_lmdb_;
  const bool names_default_;
  uint64_t map_bytes_ = 0;
};

}  // namespace

std::unique_ptr<RecordReader> MakeDumpReader(std::unique_ptr<LineInput> input) {
  return std::make_unique<DumpReader>(std::move(input));
}
std::unique_ptr<RecordWriter> MakeDumpWriter(RecordFormat format, size_t families) {
  return std::make_unique<DumpWriter>(format, families);
}

}  // namespace braiddb::tools
