// LineReader: what readers of formats of lines have in common.
#pragma once

#include <string>

#include "tools/line_input.h"
#include "tools/record.h"

namespace braiddb::tools {

// U+FEFF in UTF-8, which some programs write at the start of a text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class LineReader : public RecordReader {
 public:
  explicit LineReader(std::unique_ptr<LineInput> input) : input_(std::move(input)) {}

  std::string Position() const override { return "line " + std::to_string(first_line_); }
  uint64_t Done() const override { return input_->offset(); }
  // "offset lines", and behind a newline the state of the format.
  std::string SaveState() const override;
  Status RestoreState(std::string_view state) override;

 protected:
  // Reads the first line of a record. Sets *result and returns false at the end or after an error.
  bool NextLine(std::string_view* line, Result* result);
  // Reads one more line of the record; false as NextLine.
  bool NextLineOfRecord(std::string_view* line, Result* result);
  // False if the first record may begin with these bytes.
  virtual bool SkipsByteOrderMark() const { return true; }
  virtual std::string SaveFormat() const { return {}; }
  virtual Status RestoreFormat(std::string_view) { return Status::OK(); }
  LineInput* input() const { return input_.get(); }

 private:
  const std::unique_ptr<LineInput> input_;
  uint64_t first_line_ = 0;
  uint64_t record_offset_ = 0;  // of the last record's start, or of the line that failed
};

std::unique_ptr<RecordReader> MakeCsvReader(std::unique_ptr<LineInput> input, ByteForm bytes);
std::unique_ptr<RecordReader> MakeTsvReader(std::unique_ptr<LineInput> input, ByteForm bytes);
std::unique_ptr<RecordReader> MakeJsonLinesReader(std::unique_ptr<LineInput> input);
std::unique_ptr<RecordReader> MakeDumpReader(std::unique_ptr<LineInput> input);
std::unique_ptr<RecordReader> MakeLdbReader(std::unique_ptr<LineInput> input);
std::unique_ptr<RecordWriter> MakeCsvWriter(ByteForm bytes);
std::unique_ptr<RecordWriter> MakeTsvWriter(ByteForm bytes);
std::unique_ptr<RecordWriter> MakeJsonLinesWriter();
std::unique_ptr<RecordWriter> MakeDumpWriter(RecordFormat format, size_t families);
std::unique_ptr<RecordWriter> MakeLdbWriter();

std::unique_ptr<RecordReader> MakeRecordReader(RecordFormat format, ByteForm bytes, std::unique_ptr<LineInput> input);

}  // namespace braiddb::tools
