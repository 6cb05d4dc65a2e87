// The readers and writers of records: what is written is read, by every format; broken records and saved positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/db_test_util.h"
#include "tests/support/hostile_data.h"
#include "tools/formats/line_reader.h"
#include "tools/stores/cursor_reader.h"

namespace braiddb::test {
namespace {

using tools::ByteForm;
using tools::Record;
using tools::RecordFormat;
using tools::RecordReader;
using Result = RecordReader::Result;
using Data = std::map<std::string, std::string>;

constexpr RecordFormat kFormats[] = {RecordFormat::kCsv,     RecordFormat::kTsv,    RecordFormat::kJsonLines,
                                     RecordFormat::kMdbDump, RecordFormat::kDbDump, RecordFormat::kLdb};

std::unique_ptr<RecordReader> ReaderOf(RecordFormat format, std::string_view text, ByteForm bytes = ByteForm::kRaw) {
  return MakeRecordReader(format, bytes, std::make_unique<tools::LineInput>(text));
}

std::string Written(RecordFormat format, const std::map<std::string, Data>& families, ByteForm bytes = ByteForm::kRaw) {
  const auto writer = MakeRecordWriter(format, bytes, families.size());
  std::string text;
  for (const auto& [family, data] : families) {
    writer->BeginFamily(family, 1000, &text);
    for (const auto& [key, value] : data) writer->Append(key, value, &text);
    writer->EndFamily(&text);
  }
  return text;
}

// Reads all records; fails the test at a broken one.
std::map<std::string, Data> ReadAll(RecordReader* reader) {
  std::map<std::string, Data> families;
  Record record;
  for (;;) {
    const Result result = reader->Next(&record);
    if (result == Result::kEnd) return families;
    EXPECT_EQ(result, Result::kRecord) << reader->Position() << ": " << reader->error() << reader->status().ToString();
    if (result != Result::kRecord) return families;
    families[record.family.empty() ? "default" : record.family][record.key] = record.value;
  }
}

TEST(RecordTest, WhatIsWrittenIsRead) {
  const std::map<std::string, Data> one{{"default", HostileData()}};
  const std::map<std::string, Data> two{{"default", HostileData()}, {"other", {{"a", "1"}, {"b", ""}}}};
  for (const RecordFormat format : kFormats) {
    SCOPED_TRACE(static_cast<int>(format));
    const auto& families = CarriesFamilies(format) ? two : one;
    const std::string text = Written(format, families);
    EXPECT_TRUE(ReadAll(ReaderOf(format, text).get()) == families);
  }
  for (const RecordFormat format : {RecordFormat::kCsv, RecordFormat::kTsv}) {
    for (const ByteForm bytes : {ByteForm::kHex, ByteForm::kEscape}) {
      const std::string text = Written(format, one, bytes);
      EXPECT_TRUE(ReadAll(ReaderOf(format, text, bytes).get()) == one);
    }
  }
}

TEST(RecordTest, JsonIsUtf8) {
  const std::string text = Written(RecordFormat::kJsonLines, {{"default", HostileData()}});
  EXPECT_TRUE(tools::IsUtf8(text));
  EXPECT_TRUE(tools::IsUtf8("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"));
  for (const char* wrong : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff"})
    EXPECT_FALSE(tools::IsUtf8(wrong)) << wrong;
}

struct Case {
  RecordFormat format;
  const char* text;
  const char* results;  // r: record, b: broken, f: failed; before the end
};

TEST(RecordTest, BrokenRecordsAreSkipped) {
  const std::string header = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n";
  const std::string print = "VERSION=3\nformat=print\nHEADER=END\n";
  const std::string dumps[] = {header + " 61\n 62\n 6\n 62\n 63\n\n 64\n 65\nDATA=END\n",
                               header + " 61\n 62\n 61\n 63\nDATA=END\n",
                               header + " 61\nDATA=END\n" + print + " \\\\\\00a\n b\\\nDATA=END\n",
                               header + " 61\n 62\n",
                               header + " 61\n",
                               print + " \\\\\\00a\n \nDATA=END\n",
                               "VERSION=3\ntype=recno\nHEADER=END\n",
                               "VERSION=3\nkeys=0\nHEADER=END\n",
                               "VERSION=2\n",
                               "VERSION=3\nformat=x\nHEADER=END\n",
                               "VERSION=3\nno equals\n",
                               "VERSION=3\nformat=print\n"};
  const Case cases[] = {
      {RecordFormat::kCsv, "a,b\nc\nd,e,f\n\"g\",\"h\ni\"\n\"j\"k,l\nm,n\"\no,p\n", "rbbrbbr"},
      {RecordFormat::kCsv, "a,b\r\n\"c\",\"d\"\r\n", "rr"},
      {RecordFormat::kCsv, "a,\"b\nc,d\n", "b"},
      {RecordFormat::kCsv, "\"a\"\n", "b"},
      {RecordFormat::kCsv, "\"a\",\"b\",c\n", "b"},
      {RecordFormat::kCsv, "\n", "b"},
      {RecordFormat::kCsv, ",", "r"},
      {RecordFormat::kTsv, "a\tb\nc\nd\te\tf\ng\\\th\ni\\x\tj\nk\tl\r\n", "rbbbbr"},
      {RecordFormat::kJsonLines,
       "{\"key\":\"a\",\"value\":\"b\"}\n[]\n{\"key\":\"a\"}\n{\"key\":1,\"value\":\"\"}\n{\"key_hex\":\"0\",\"value\":\"\"}\n"
       "{\"key\":\"a\",\"key_hex\":\"00\",\"value\":\"\"}\n{\"key\":\"\xff\",\"value\":\"\"}\n{\"key_hex\":\"fF\",\"value_hex\":"
       "\"\"}\n",
       "rbbbbbbr"},
      {RecordFormat::kLdb, "0x ==> 0x\n0x61 : 0x62\n0x6 ==> 0x\na ==> b\nnothing\nKeys in range: 7\n0x6A ==> 0x6b\n", "rrbbbr"},
      {RecordFormat::kMdbDump, dumps[0].c_str(), "rbbr"},
      {RecordFormat::kMdbDump, dumps[1].c_str(), "rb"},
      {RecordFormat::kMdbDump, dumps[2].c_str(), "bb"},
      {RecordFormat::kMdbDump, dumps[3].c_str(), "rf"},
      {RecordFormat::kMdbDump, dumps[4].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[5].c_str(), "r"},
      {RecordFormat::kMdbDump, dumps[6].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[7].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[8].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[9].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[10].c_str(), "f"},
      {RecordFormat::kMdbDump, dumps[11].c_str(), "f"},
  };
  for (const Case& test : cases) {
    const auto reader = ReaderOf(test.format, test.text);
    Record record;
    std::string results;
    for (Result result; (result = reader->Next(&record)) != Result::kEnd;) {
      results += result == Result::kRecord ? 'r' : result == Result::kBroken ? 'b' : 'f';
      if (result == Result::kBroken) {
        EXPECT_NE(reader->error(), "") << test.text;
        EXPECT_NE(std::string(test.text).find(reader->broken_text()), std::string::npos) << reader->broken_text();
      }
      if (result == Result::kFailed) {
        EXPECT_FALSE(reader->status().ok());
        break;
      }
    }
    EXPECT_EQ(results, test.results) << test.text;
  }
}

// A byte order mark is no part of the first key. An export of a key that begins with these bytes is read as it was.
TEST(RecordTest, ByteOrderMarksAreSkipped) {
  const std::string mark = "\xef\xbb\xbf";
  const Data data{{"a", "1"}, {"b", "2"}};
  for (const RecordFormat format : {RecordFormat::kCsv, RecordFormat::kJsonLines, RecordFormat::kMdbDump, RecordFormat::kLdb}) {
    SCOPED_TRACE(static_cast<int>(format));
    const std::string text = mark + Written(format, {{"default", data}});
    EXPECT_TRUE(ReadAll(ReaderOf(format, text).get()).at("default") == data);
  }
  EXPECT_TRUE(ReadAll(ReaderOf(RecordFormat::kCsv, mark + "\"a\",\"1\"\nb,2\n").get()).at("default") == data);
  const Data marked{{mark + "a", mark}, {mark + "b", "2"}};
  for (const RecordFormat format : kFormats)
    EXPECT_TRUE(ReadAll(ReaderOf(format, Written(format, {{"default", marked}})).get()).at("default") == marked);
  RecordFormat format;
  EXPECT_TRUE(tools::GuessRecordFormat("x", mark + "VERSION=3\n", &format) && format == RecordFormat::kMdbDump);
}

// db_load refuses a database without a name beside others, and mdb_load has one for the default family.
TEST(RecordTest, DumpsOfSeveralFamiliesNameThem) {
  const std::map<std::string, Data> two{{"default", {{"a", "1"}}}, {"other", {{"b", "2"}}}};
  const std::string name = "database=default\n";
  EXPECT_NE(Written(RecordFormat::kDbDump, two).find(name), std::string::npos);
  EXPECT_EQ(Written(RecordFormat::kDbDump, {{"default", {}}}).find(name), std::string::npos);
  EXPECT_EQ(Written(RecordFormat::kMdbDump, two).find(name), std::string::npos);
}

// An import of nothing is a mistake. A dump without records has a header.
TEST(RecordTest, EmptyDumpsAreErrors) {
  for (const char* text : {"", "\n"}) {
    Record record;
    const auto reader = ReaderOf(RecordFormat::kMdbDump, text);
    EXPECT_EQ(reader->Next(&record), Result::kFailed);
    EXPECT_NE(reader->status().ToString().find("VERSION=3"), std::string::npos) << reader->status().ToString();
  }
  Record record;
  EXPECT_EQ(ReaderOf(RecordFormat::kMdbDump, Written(RecordFormat::kMdbDump, {{"default", {}}}))->Next(&record), Result::kEnd);
}

TEST(RecordTest, PositionsNameTheFirstLine) {
  const auto reader = ReaderOf(RecordFormat::kCsv, "a,\"b\nc\"\nd\n");
  Record record;
  EXPECT_EQ(reader->Next(&record), Result::kRecord);
  EXPECT_EQ(reader->Position(), "line 1");
  EXPECT_EQ(reader->Next(&record), Result::kBroken);
  EXPECT_EQ(reader->Position(), "line 3");
  EXPECT_EQ(reader->broken_text(), "d");
}

// From each position the rest is read, also from the one before a broken record, which is read again.
TEST(RecordTest, SavedPositionsGoOn) {
  const std::map<std::string, Data> families{{"default", HostileData()}, {"other:1", {{"a", "1"}, {"b", ""}}}};
  for (const RecordFormat format : kFormats) {
    SCOPED_TRACE(static_cast<int>(format));
    const std::string text = Written(format, CarriesFamilies(format) ? families : std::map<std::string, Data>{*families.begin()});
    std::vector<std::string> keys;
    Record record;
    for (const auto reader = ReaderOf(format, text); reader->Next(&record) == Result::kRecord;) keys.push_back(record.key);
    ASSERT_GT(keys.size(), 50u);
    const auto reader = ReaderOf(format, text);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(reader->Next(&record), Result::kRecord);
      if (i % 7 != 0 && i + 4 < keys.size()) continue;
      const auto second = ReaderOf(format, text);
      ASSERT_OK(second->RestoreState(reader->SaveState()));
      for (size_t k = i + 1; k < keys.size(); ++k) {
        ASSERT_EQ(second->Next(&record), Result::kRecord) << second->error();
        ASSERT_TRUE(record.key == keys[k]) << k;
      }
      ASSERT_EQ(second->Next(&record), Result::kEnd);
    }
  }
  const std::string broken = "VERSION=3\nHEADER=END\n 61\n 62\n 63\nDATA=END\n";
  for (const auto& [format, text] :
       {std::pair(RecordFormat::kCsv, std::string("a,b\n\"c\nd\n")), {RecordFormat::kMdbDump, broken}}) {
    const auto reader = ReaderOf(format, text);
    Record record;
    ASSERT_EQ(reader->Next(&record), Result::kRecord);
    ASSERT_EQ(reader->Next(&record), Result::kBroken);
    const auto second = ReaderOf(format, text);
    ASSERT_OK(second->RestoreState(reader->SaveState()));
    EXPECT_EQ(second->Next(&record), Result::kBroken);
    EXPECT_EQ(second->Position(), reader->Position());
  }
  for (const char* wrong : {"", "x", "1", "1 1", "-1 0\n", "999 0\n"})
    EXPECT_FALSE(ReaderOf(RecordFormat::kCsv, "a,b\n")->RestoreState(wrong).ok()) << wrong;
  for (const char* wrong : {"0 0\n", "0 0\nsb", "0 0\nsb9:x", "0 0\nsbx:", "0 0\nsb99999999999:x"})
    EXPECT_FALSE(ReaderOf(RecordFormat::kMdbDump, broken)->RestoreState(wrong).ok()) << wrong;
}

// A dump that ends early, at each byte: the rest is read once the dump is complete.
TEST(RecordTest, CutDumpsGoOn) {
  const std::string text = Written(RecordFormat::kMdbDump, {{"default", {{"k1", "v1"}, {"k2", "v2"}}}, {"other", {{"a", "1"}}}});
  const std::string expected = "k1=v1 k2=v2 a=1 ";
  for (size_t cut = 0; cut < text.size(); ++cut) {
    std::string records;
    Record record;
    const auto reader = ReaderOf(RecordFormat::kMdbDump, std::string_view(text).substr(0, cut));
    Result result;
    while ((result = reader->Next(&record)) == Result::kRecord) records += record.key + "=" + record.value + " ";
    ASSERT_NE(result, Result::kBroken) << cut;
    const auto second = ReaderOf(RecordFormat::kMdbDump, text);
    ASSERT_OK(second->RestoreState(reader->SaveState()));
    while ((result = second->Next(&record)) == Result::kRecord) records += record.key + "=" + record.value + " ";
    ASSERT_EQ(result, Result::kEnd) << cut << second->error();
    ASSERT_EQ(records, expected) << cut;
  }
}

TEST(RecordTest, RecordsThatAreGivenBackAreReadAgain) {
  for (const RecordFormat format : kFormats) {
    const std::string text = Written(format, {{"default", {{"a", "1"}, {"b", "2"}}}});
    const auto reader = ReaderOf(format, text);
    Record record;
    ASSERT_EQ(reader->Next(&record), Result::kRecord);
    ASSERT_EQ(reader->Next(&record), Result::kRecord);
    reader->GiveBack();
    const auto second = ReaderOf(format, text);
    ASSERT_OK(second->RestoreState(reader->SaveState()));
    ASSERT_EQ(second->Next(&record), Result::kRecord) << second->error();
    EXPECT_EQ(record.key, "b");
    EXPECT_EQ(second->Next(&record), Result::kEnd);
  }
}

// A store of two families with the keys a, b and c. The move behind entry `fails_at` fails, and so does the first move of a
// family if `fails_at` is 4 times its number.
class FailingStore final : public tools::CursorReader {
 public:
  explicit FailingStore(size_t fails_at) : CursorReader({"one", "two"}), fails_at_(fails_at) {}
  using tools::RecordReader::Next;

 protected:
  Status Seek(size_t family, Slice key) override {
    family_ = family;
    for (at_ = 0; at_ < 3 && key > Slice(keys_[at_]);) ++at_;
    return Moved(key.empty());
  }
  Status Next() override {
    ++at_;
    return Moved(true);
  }
  bool Current(Slice* key, Slice* value) const override {
    if (at_ == 3) return false;
    *key = *value = keys_[at_];
    return true;
  }

 private:
  Status Moved(bool may_fail) const {
    return may_fail && family_ * 4 + at_ == fails_at_ ? Status::IOError("a bad block") : Status::OK();
  }

  const std::string keys_[3] = {"a", "b", "c"};
  const size_t fails_at_;
  size_t family_ = 0;
  size_t at_ = 0;
};

TEST(RecordTest, StoresGoOnBehindTheLastRecordThatWasRead) {
  for (size_t fails_at = 0; fails_at < 8; ++fails_at) {
    std::string keys;
    Record record;
    FailingStore reader(fails_at);
    Result result;
    while ((result = reader.Next(&record)) == Result::kRecord) keys += record.family + record.key + " ";
    ASSERT_EQ(result, Result::kFailed);
    const auto read = static_cast<size_t>(std::count(keys.begin(), keys.end(), ' '));
    EXPECT_EQ(read, fails_at / 4 * 3 + fails_at % 4) << "all records before the damage";
    FailingStore second(100);
    ASSERT_OK(second.RestoreState(reader.SaveState()));
    while ((result = second.Next(&record)) == Result::kRecord) keys += record.family + record.key + " ";
    ASSERT_EQ(result, Result::kEnd);
    EXPECT_EQ(keys, "onea oneb onec twoa twob twoc ") << fails_at;
  }
}

TEST(RecordTest, LargeKeysAreBroken) {
  const std::string text = std::string((64 << 10) + 1, 'k') + ",v\n" + std::string(64 << 10, 'k') + ",v\n";
  const auto reader = ReaderOf(RecordFormat::kCsv, text);
  Record record;
  EXPECT_EQ(reader->Next(&record), Result::kBroken);
  EXPECT_NE(reader->error().find("65537"), std::string::npos) << reader->error();
  EXPECT_EQ(reader->Next(&record), Result::kRecord);
}

TEST(RecordTest, FormatsAreGuessed) {
  RecordFormat format;
  EXPECT_TRUE(tools::GuessRecordFormat("x.csv", "", &format) && format == RecordFormat::kCsv);
  EXPECT_TRUE(tools::GuessRecordFormat("x", "VERSION=3\n", &format) && format == RecordFormat::kMdbDump);
  EXPECT_TRUE(tools::GuessRecordFormat("x", "{\"key\":", &format) && format == RecordFormat::kJsonLines);
  EXPECT_TRUE(tools::GuessRecordFormat("x", "0x61 ==> 0x62\n", &format) && format == RecordFormat::kLdb);
  EXPECT_FALSE(tools::GuessRecordFormat("x", "a,b\n", &format));
}

}  // namespace
}  // namespace braiddb::test
