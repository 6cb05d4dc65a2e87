// Readers of records: any bytes give records, broken records or an error. What is read, written and read again is the same, and a
// saved position goes on.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tools/formats/line_reader.h"
#include "tools/shell.h"

namespace {

using braiddb::test::FuzzInput;
using braiddb::tools::ByteForm;
using braiddb::tools::Record;
using braiddb::tools::RecordFormat;
using braiddb::tools::RecordReader;
using Result = RecordReader::Result;

const char* const kParts[] = {"VERSION=3\n",
                              "format=print\n",
                              "format=bytevalue\n",
                              "database=",
                              "HEADER=END\n",
                              "DATA=END\n",
                              "\n",
                              " 61\n",
                              " \\61\n",
                              "0x61 ==> 0x62\n",
                              ",",
                              "\"",
                              "\"\"",
                              "\t",
                              "\\n",
                              "\r\n",
                              "{\"key\":\"a\",",
                              "\"value\":\"b\"}\n",
                              "\"key_hex\":\"6",
                              "%41",
                              "type=btree\n"};

std::string Text(FuzzInput* input) {
  std::string text;
  for (uint32_t parts = input->Below(40); parts > 0; --parts) {
    const uint32_t part = input->Below(std::size(kParts) + 4);
    text += part < std::size(kParts) ? std::string(kParts[part]) : input->Bytes(20);
  }
  return text;
}

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "record_fuzz: %s\n", what);
  std::abort();
}

std::unique_ptr<RecordReader> ReaderOf(RecordFormat format, ByteForm bytes, std::string_view text) {
  return MakeRecordReader(format, bytes, std::make_unique<braiddb::tools::LineInput>(text));
}

void RoundTrip(RecordFormat format, ByteForm bytes, const std::vector<Record>& records) {
  const auto writer = MakeRecordWriter(format, bytes);
  std::string text;
  writer->BeginFamily("default", 0, &text);
  for (const Record& record : records) writer->Append(record.key, record.value, &text);
  writer->EndFamily(&text);
  const auto reader = ReaderOf(format, bytes, text);
  Record again;
  const std::string* last = nullptr;
  const bool is_dump = format == RecordFormat::kMdbDump || format == RecordFormat::kDbDump;
  for (const Record& record : records) {
    const Result result = reader->Next(&again);
    if (is_dump && last != nullptr && *last == record.key) {
      Require(result == Result::kBroken, "a duplicate is not broken");
      continue;
    }
    Require(result == Result::kRecord && again.key == record.key && again.value == record.value, "another record was read");
    last = &record.key;
  }
  Require(reader->Next(&again) == Result::kEnd, "more was read than written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto format = static_cast<RecordFormat>(input.Below(6));
  const auto bytes = static_cast<ByteForm>(input.Below(3));
  const uint32_t saved_at = input.Below(8);
  const std::string text = input.Bool() ? Text(&input) : input.Rest();
  const auto reader = ReaderOf(format, bytes, text);
  std::vector<Record> records;
  std::vector<Result> results;
  std::string state;
  Record record;
  for (Result result = Result::kRecord; result != Result::kEnd && result != Result::kFailed;) {
    if (results.size() == saved_at && (results.empty() || results.back() == Result::kRecord)) state = reader->SaveState();
    result = reader->Next(&record);
    results.push_back(result);
    Require(results.size() <= text.size() + 2, "the reader does not end");
    if (result == Result::kRecord) records.push_back(record);
  }
  if (!state.empty()) {
    const auto second = ReaderOf(format, bytes, text);
    Require(second->RestoreState(state).ok(), "a saved position is refused");
    for (size_t i = saved_at; i < results.size(); ++i)
      Require(second->Next(&record) == results[i], "a saved position goes on elsewhere");
  }
  RoundTrip(format, bytes, records);

  std::vector<std::string> words;
  std::string error;
  (void)braiddb::tools::SplitWords(text, &words, &error);
  (void)ReaderOf(format, bytes, text)->RestoreState(text);
  return 0;
}
