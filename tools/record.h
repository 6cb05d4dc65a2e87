// Records: keys and values on their way into and out of files of other programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "tools/bytes.h"

namespace braiddb::tools {

enum class RecordFormat : uint8_t {
  kCsv,        // key,value as in RFC 4180
  kTsv,        // key TAB value; \t \n \r \0 and \\ stand for these bytes
  kJsonLines,  // {"key":…,"value":…}, and "family"; bytes that are not UTF-8 are in key_hex and value_hex
  kMdbDump,    // mdb_dump of LMDB; read also as db_dump of Berkeley DB
  kDbDump,     // db_dump of Berkeley DB
  kLdb,        // ldb dump --hex of RocksDB: 0x… ==> 0x…
};
// Returns false for an unknown name: csv, tsv, jsonl, mdb, db, ldb.
bool ParseRecordFormat(std::string_view name, RecordFormat* format);
// By the end of the file's name, and otherwise by the first bytes of the file. Returns false if neither says it.
bool GuessRecordFormat(std::string_view file, std::string_view first_bytes, RecordFormat* format);
// Whether records of this format can name their column family.
bool CarriesFamilies(RecordFormat format);

struct Record {
  std::string family;  // empty: the record names none
  std::string key;
  std::string value;
};

// Reads records one after the other. Thread safety: one thread at a time.
class RecordReader {
 public:
  enum class Result : uint8_t {
    kRecord,
    kEnd,
    kBroken,  // the record has an error; the next call goes on behind it
    kFailed,  // the source cannot be read; status() says why
  };

  virtual ~RecordReader() = default;
  // A key or value above the limits of db.h is broken.
  Result Next(Record* record);
  // Gives the record of the last call back, as one that could not be written: SaveState is the point before it.
  void GiveBack() { is_taken_ = false; }

  // After kBroken: what is wrong, and the text of the record as the source has it; as a JSON line if the source is no text or the
  // record is too large.
  const std::string& error() const { return error_; }
  const std::string& broken_text() const { return broken_text_; }
  const Status& status() const { return status_; }

  // "line 12", or another position that a person can find: of the record that the last call of Next returned.
  virtual std::string Position() const = 0;
  // Amount of the source that has been read: bytes of a file, entries of a store.
  virtual uint64_t Done() const = 0;
  // A point between records from which another reader of the same source can go on: behind the record of the last call, or
  // before it if that call failed, or if the record was broken or given back. May hold any bytes.
  virtual std::string SaveState() const = 0;
  virtual Status RestoreState(std::string_view state) = 0;

 protected:
  virtual Result ReadNext(Record* record) = 0;
  // Whether SaveState is the point behind the last record.
  bool is_taken() const { return is_taken_; }
  Result Broken(std::string error, std::string_view text = {}) {
    error_ = std::move(error);
    broken_text_ = text;
    return Result::kBroken;
  }
  // The same for records of sources that are no text.
  Result Broken(std::string error, const Record& record);
  Result Failed(Status status) {
    status_ = std::move(status);
    return Result::kFailed;
  }

 private:
  bool is_taken_ = true;
  std::string error_;
  std::string broken_text_;
  Status status_;
};

// Writes records as text. Thread safety: one thread at a time.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Begins the records of one family. `bytes`: their keys and values, an estimate.
  virtual void BeginFamily(const std::string& family, uint64_t bytes, std::string* text) = 0;
  virtual void Append(Slice key, Slice value, std::string* text) = 0;
  virtual void EndFamily(std::string* text) = 0;
};

// `bytes`: the form of keys and values in CSV and TSV. Other formats have one of their own. `families`: how many will be written.
std::unique_ptr<RecordWriter> MakeRecordWriter(RecordFormat format, ByteForm bytes, size_t families = 1);

}  // namespace braiddb::tools
