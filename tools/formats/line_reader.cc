#include "tools/formats/line_reader.h"

#include <charconv>

namespace braiddb::tools {
namespace {

// Takes a decimal number from the front.
bool TakeNumber(std::string_view* text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool TakeChar(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

struct FormatName {
  std::string_view name;
  std::string_view suffix;
  RecordFormat format;
};
constexpr FormatName kFormats[] = {{"csv", ".csv", RecordFormat::kCsv},           {"tsv", ".tsv", RecordFormat::kTsv},
                                   {"jsonl", ".jsonl", RecordFormat::kJsonLines}, {"mdb", ".mdbdump", RecordFormat::kMdbDump},
                                   {"db", ".dbdump", RecordFormat::kDbDump},      {"ldb", ".ldb", RecordFormat::kLdb}};

}  // namespace

std::string LineReader::SaveState() const {
  const uint64_t offset = is_taken() ? input_->offset() : record_offset_;
  const uint64_t lines = is_taken() ? input_->lines() : first_line_ - 1;
  return std::to_string(offset) + " " + std::to_string(lines) + "\n" + SaveFormat();
}

Status LineReader::RestoreState(std::string_view state) {
  uint64_t offset = 0;
  uint64_t lines = 0;
  if (!TakeNumber(&state, &offset) || !TakeChar(&state, ' ') || !TakeNumber(&state, &lines) || !TakeChar(&state, '\n'))
    return Status::InvalidArgument("the saved position is damaged");
  if (Status status = input_->Seek(offset, lines); !status.ok()) return status;
  return RestoreFormat(state);
}

bool LineReader::NextLine(std::string_view* line, Result* result) {
  record_offset_ = input_->offset();
  first_line_ = input_->lines() + 1;
  if (!NextLineOfRecord(line, result)) return false;
  if (record_offset_ == 0 && SkipsByteOrderMark() && line->starts_with(kByteOrderMark))
    line->remove_prefix(kByteOrderMark.size());
  return true;
}

bool LineReader::NextLineOfRecord(std::string_view* line, Result* result) {
  if (input_->Next(line)) return true;
  *result = input_->status().ok() ? Result::kEnd : Failed(input_->status());
  return false;
}

bool ParseRecordFormat(std::string_view name, RecordFormat* format) {
  for (const FormatName& known : kFormats) {
    if (name != known.name) continue;
    *format = known.format;
    return true;
  }
  return false;
}

bool GuessRecordFormat(std::string_view file, std::string_view first_bytes, RecordFormat* format) {
  if (first_bytes.starts_with(kByteOrderMark)) first_bytes.remove_prefix(kByteOrderMark.size());
  for (const FormatName& known : kFormats) {
    if (!file.ends_with(known.suffix)) continue;
    *format = known.format;
    return true;
  }
  if (first_bytes.starts_with("VERSION=3\n")) {
    *format = RecordFormat::kMdbDump;
  } else if (first_bytes.starts_with("{\"")) {
    *format = RecordFormat::kJsonLines;
  } else if (first_bytes.starts_with("0x") && first_bytes.find(" ==> 0x") != std::string_view::npos) {
    *format = RecordFormat::kLdb;
  } else {
    return false;
  }
  return true;
}

bool CarriesFamilies(RecordFormat format) {
  return format == RecordFormat::kJsonLines || format == RecordFormat::kMdbDump || format == RecordFormat::kDbDump;
}

std::unique_ptr<RecordReader> MakeRecordReader(RecordFormat format, ByteForm bytes, std::unique_ptr<LineInput> input) {
  switch (format) {
    case RecordFormat::kCsv:
      return MakeCsvReader(std::move(input), bytes);
    case RecordFormat::kTsv:
      return MakeTsvReader(std::move(input), bytes);
    case RecordFormat::kJsonLines:
      return MakeJsonLinesReader(std::move(input));
    case RecordFormat::kLdb:
      return MakeLdbReader(std::move(input));
    case RecordFormat::kMdbDump:
    case RecordFormat::kDbDump:
      break;
  }
  return MakeDumpReader(std::move(input));
}

std::unique_ptr<RecordWriter> MakeRecordWriter(RecordFormat format, ByteForm bytes, size_t families) {
  switch (format) {
    case RecordFormat::kCsv:
      return MakeCsvWriter(bytes);
    case RecordFormat::kTsv:
      return MakeTsvWriter(bytes);
    case RecordFormat::kJsonLines:
      return MakeJsonLinesWriter();
    case RecordFormat::kLdb:
      return MakeLdbWriter();
    case RecordFormat::kMdbDump:
    case RecordFormat::kDbDump:
      break;
  }
  return MakeDumpWriter(format, families);
}

}  // namespace braiddb::tools
