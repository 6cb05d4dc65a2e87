// Batches of foreign bytes: BraidDB's own form and RocksDB's. Any bytes give an error or a batch, an accepted batch can be
// written or is refused, and a database that acknowledged one opens again with the same content.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/c.h"
#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace {

using namespace braiddb;
using test::FuzzInput;

void Require(bool holds, const char* what, const std::string& detail) {
  if (holds) return;
  fprintf(stderr, "batch_fuzz: %s: %s\n", what, detail.c_str());
  abort();
}

// A database with three families; it is closed and opened again every kInputsPerLife inputs.
class Target {
 public:
  Target() {
    options_ = test::TinyOptions(1);
    options_.merge_operator = std::make_shared<test::AppendOperator>();
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    Open();
  }
  ~Target() { Close(); }

  void Write(const WriteBatch& batch) {
    (void)db_->Write(WriteOptions(), batch);
    if (++inputs_ % kInputsPerLife == 0) Reopen();
  }

 private:
  static constexpr int kInputsPerLife = 500;
  using Content = std::map<std::string, std::string>;

  void Open() {
    std::vector<ColumnFamilyDescriptor> families;
    for (const char* name : {kDefaultColumnFamilyName, "one", "two"}) families.push_back({name, ColumnFamilyOptions(options_)});
    const Status status = DB::Open(options_, directory_.File("db"), families, &handles_, &db_);
    Require(status.ok(), "an open after acknowledged batches", status.ToString());
  }
  void Close() {
    handles_.clear();
    const Status status = db_->Close();
    Require(status.ok(), "Close", status.ToString());
    db_.reset();
  }
  std::vector<Content> Read() {
    std::vector<Content> result;
    for (const auto& handle : handles_) {
      Content content;
      auto iterator = db_->NewIterator(ReadOptions(), handle.get());
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
        content[std::string(iterator->key())] = std::string(iterator->value());
      Require(iterator->status().ok(), "a scan", iterator->status().ToString());
      result.push_back(std::move(content));
    }
    return result;
  }
  void Reopen() {
    const std::vector<Content> before = Read();
    Close();
    Open();
    Require(Read() == before, "the content after a reopen", "differs");
  }

  test::TestDirectory directory_;
  Options options_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::unique_ptr<DB> db_;
  int inputs_ = 0;
};

void Append(std::string* data, uint32_t number) { data->append(reinterpret_cast<const char*>(&number), sizeof(number)); }

// Updates in BraidDB's form (write_batch.h) with odd types, lengths and families.
std::string OwnForm(FuzzInput* input) {
  std::string data;
  for (uint32_t updates = input->Below(6); updates > 0; --updates) {
    uint8_t type = input->Below(4) == 0 ? input->Byte() : static_cast<uint8_t>(input->Below(4));
    const bool family = input->Below(3) == 0;
    if (family) type |= 0x10;
    const std::string key = input->Key();
    const std::string value = input->Bytes(300);
    data.push_back(static_cast<char>(type));
    Append(&data, input->Below(24) == 0 ? static_cast<uint32_t>(input->OddNumber()) : static_cast<uint32_t>(key.size()));
    Append(&data, input->Below(24) == 0 ? static_cast<uint32_t>(input->OddNumber()) : static_cast<uint32_t>(value.size()));
    if (family) Append(&data, input->Below(3) == 0 ? static_cast<uint32_t>(input->OddNumber()) : input->Below(6));
    data += key + value;
  }
  return data;
}

void ForeignForm(const std::string& data) {
  braiddb_writebatch_t* const batch = braiddb_writebatch_create_from(data.data(), data.size());
  if (batch == nullptr) return;
  (void)braiddb_writebatch_count(batch);
  size_t size = 0;
  (void)braiddb_writebatch_data(batch, &size);
  braiddb_writebatch_set_save_point(batch);
  braiddb_writebatch_put(batch, nullptr, 0, nullptr, 0);
  char* error = nullptr;
  braiddb_writebatch_rollback_to_save_point(batch, &error);
  braiddb_free(error);
  braiddb_writebatch_iterate(
      batch, nullptr, [](void*, const char*, size_t, const char*, size_t) {}, [](void*, const char*, size_t) {});
  braiddb_writebatch_destroy(batch);
  braiddb_writebatch_wi_t* const indexed = braiddb_writebatch_wi_create_from(data.data(), data.size());
  if (indexed != nullptr) braiddb_writebatch_wi_destroy(indexed);
}

// Updates in RocksDB's form: sequence number, count, then tag, varint lengths, bytes.
std::string RocksForm(FuzzInput* input) {
  std::string data = input->Take(8);
  data.resize(8);
  const uint32_t updates = input->Below(6);
  Append(&data, input->Below(4) == 0 ? static_cast<uint32_t>(input->OddNumber()) : updates);
  for (uint32_t i = 0; i < updates; ++i) {
    data.push_back(static_cast<char>(input->Below(4) == 0 ? input->Byte() : input->Below(8)));
    for (uint32_t part = input->Below(3); part > 0; --part) {
      const std::string bytes = input->Bytes(60);
      data.push_back(static_cast<char>(input->Below(8) == 0 ? input->Byte() : bytes.size()));
      data += bytes;
    }
  }
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Target target;
  FuzzInput input(data, size);
  const uint32_t kind = input.Below(4);
  if (kind >= 2) {
    ForeignForm(kind == 2 ? RocksForm(&input) : input.Rest());
    return 0;
  }
  const std::string bytes = kind == 0 ? OwnForm(&input) : input.Rest();
  WriteBatch batch;
  if (WriteBatch::FromData(bytes, &batch).ok()) {
    Require(batch.Data() == bytes, "FromData", "the batch has other bytes than it was made of");
    target.Write(batch);
  }
  return 0;
}
