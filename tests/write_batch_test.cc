#include "braiddb/write_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "braiddb/write_batch_with_index.h"

namespace braiddb {
namespace {

class Printer : public WriteBatch::Handler {
 public:
  void Put(Slice key, Slice value) override { text.append("put(").append(key).append(",").append(value).append(")"); }
  void Delete(Slice key) override { text.append("delete(").append(key).append(")"); }
  void Merge(Slice key, Slice operand) override { text.append("merge(").append(key).append(",").append(operand).append(")"); }

  std::string text;
};

std::string Print(const WriteBatch& batch) {
  Printer printer;
  const Status status = batch.Iterate(&printer);
  return status.ok() ? printer.text : status.ToString();
}

// An update as the format says, with whatever lengths are claimed.
std::string Encoded(char type, uint32_t key_length, uint32_t value_length, const std::string& bytes) {
  std::string data(1, type);
  for (const uint32_t length : {key_length, value_length}) {
    for (int shift = 0; shift < 32; shift += 8) data.push_back(static_cast<char>(length >> shift));
  }
  return data + bytes;
}

TEST(WriteBatch, EmptyHasNothing) {
  const WriteBatch batch;
  EXPECT_EQ(batch.Count(), 0u);
  EXPECT_EQ(batch.ApproximateSize(), 0u);
  EXPECT_EQ(Print(batch), "");
}

TEST(WriteBatch, KeepsOrderAndEveryByte) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Delete("a");
  batch.Put("", "");
  batch.Put(Slice("\0k", 2), Slice("v\0", 2));
  batch.Put("a", "2");
  EXPECT_EQ(batch.Count(), 5u);
  EXPECT_EQ(Print(batch), std::string("put(a,1)delete(a)put(,)put(") + '\0' + "k,v" + '\0' + ")put(a,2)");
  batch.Clear();
  EXPECT_EQ(batch.Count(), 0u);
  EXPECT_EQ(Print(batch), "");
}

TEST(WriteBatch, SerializedFormIsAsDocumented) {
  WriteBatch batch;
  batch.Put("key", "value");
  batch.Delete("gone");
  EXPECT_EQ(batch.Data(), Encoded(1, 3, 5, "keyvalue") + Encoded(0, 4, 0, "gone"));
  EXPECT_EQ(batch.ApproximateSize(), batch.Data().size());
}

TEST(WriteBatch, RoundTrip) {
  WriteBatch batch, copy;
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) {
    batch.Put("key" + std::to_string(i), i == 50 ? large : std::to_string(i));
    batch.Delete("del" + std::to_string(i));
  }
  ASSERT_TRUE(WriteBatch::FromData(batch.Data(), &copy).ok());
  EXPECT_EQ(copy.Count(), 200u);
  EXPECT_EQ(Print(copy), Print(batch));
  ASSERT_TRUE(WriteBatch::FromData("", &copy).ok());
  EXPECT_EQ(copy.Count(), 0u);
}

TEST(WriteBatch, SavePointsTakeBackWhatCameBehind) {
  WriteBatch batch;
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
  EXPECT_TRUE(batch.PopSavePoint().IsNotFound());
  batch.SetSavePoint();
  batch.Put("a", "1");
  batch.SetSavePoint();
  batch.Delete("b");
  EXPECT_TRUE(batch.RollbackToSavePoint().ok());
  EXPECT_EQ(Print(batch), "put(a,1)");
  EXPECT_EQ(batch.Count(), 1u);
  batch.SetSavePoint();
  batch.Put("c", "2");
  EXPECT_TRUE(batch.PopSavePoint().ok());
  EXPECT_TRUE(batch.RollbackToSavePoint().ok());
  EXPECT_EQ(Print(batch), "");
  batch.SetSavePoint();
  batch.Clear();
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
}

// Nobody reads the bytes: the length alone is refused.
TEST(WriteBatch, WhatHas4GiBIsAnErrorOfWhoReadsTheBatch) {
  const std::string some = "x";
  const Slice huge(some.data(), size_t{UINT32_MAX} + 1);
  const std::function<void(WriteBatch*)> additions[] = {
      [&](WriteBatch* batch) { batch->Put("k", huge); },         [&](WriteBatch* batch) { batch->Put(huge, "v"); },
      [&](WriteBatch* batch) { batch->Delete(huge); },           [&](WriteBatch* batch) { batch->Merge("k", huge); },
      [&](WriteBatch* batch) { batch->DeleteRange("a", huge); }, [&](WriteBatch* batch) { batch->PutCF(7, "k", huge); },
  };
  for (const auto& add : additions) {
    WriteBatch batch;
    batch.Put("a", "1");
    batch.SetSavePoint();
    add(&batch);
    batch.Put("b", "2");
    EXPECT_EQ(batch.Count(), 2u);
    Printer printer;
    EXPECT_TRUE(batch.Iterate(&printer).IsInvalidArgument());
    EXPECT_EQ(printer.text, "");
    WriteBatchWithIndex indexed;
    EXPECT_TRUE(indexed.Rebuild(batch).IsInvalidArgument());
    const WriteBatch copy = batch;
    EXPECT_TRUE(copy.Iterate(&printer).IsInvalidArgument());
    ASSERT_TRUE(batch.RollbackToSavePoint().ok());
    EXPECT_EQ(Print(batch), "put(a,1)");
    add(&batch);
    batch.Clear();
    batch.Put("c", "3");
    EXPECT_EQ(Print(batch), "put(c,3)");
  }
}

TEST(WriteBatch, WhatHas4GiBIsNotInAnIndex) {
  const std::string some = "x";
  const Slice huge(some.data(), size_t{UINT32_MAX} + 1);
  WriteBatchWithIndex batch;
  batch.Put("a", "1");
  batch.Put("a", huge);
  batch.Merge("a", huge);
  batch.Put(huge, "v");
  std::string value;
  ASSERT_TRUE(batch.GetFromBatch("a", &value).ok());
  EXPECT_EQ(value, "1");
  Printer printer;
  EXPECT_TRUE(batch.GetWriteBatch().Iterate(&printer).IsInvalidArgument());
}

TEST(WriteBatch, MergesAreUpdates) {
  WriteBatch batch;
  batch.Merge("a", "1");
  batch.Put("a", "2");
  batch.Merge("a", "");
  EXPECT_EQ(batch.Count(), 3u);
  WriteBatch copy;
  ASSERT_TRUE(WriteBatch::FromData(batch.Data(), &copy).ok());
  EXPECT_EQ(Print(copy), "merge(a,1)put(a,2)merge(a,)");
}

TEST(WriteBatch, MalformedDataIsCorruption) {
  WriteBatch batch;
  batch.Put("kept", "");
  const std::string put = Encoded(1, 3, 5, "keyvalue");
  const std::string malformed[] = {
      Encoded(4, 3, 5, "keyvalue"),                    // unknown type
      Encoded(0, 3, 5, "keyvalue"),                    // a deletion with a value
      Encoded(1, 3, 6, "keyvalue"),                    // value cut short
      Encoded(1, UINT32_MAX, UINT32_MAX, "keyvalue"),  // lengths whose sum overflows 32 bits
      Encoded(1, 3, 5, "keyvalue!"),                   // rubbish behind
      put + put.substr(0, 8),
  };
  for (const std::string& data : malformed) {
    EXPECT_TRUE(WriteBatch::FromData(data, &batch).IsCorruption());
    EXPECT_EQ(Print(batch), "put(kept,)");  // unchanged
  }
}

TEST(WriteBatch, EveryTruncationIsCorruptionOrWhole) {
  WriteBatch batch, copy;
  batch.Put("key", "value");
  batch.Delete("gone");
  const size_t first = Encoded(1, 3, 5, "keyvalue").size();
  for (size_t size = 0; size <= batch.Data().size(); ++size) {
    const bool whole = size == 0 || size == first || size == batch.Data().size();
    EXPECT_EQ(WriteBatch::FromData(Slice(batch.Data()).substr(0, size), &copy).ok(), whole) << size;
  }
}

TEST(WriteBatch, OperandsHaveTheirOwnType) {
  WriteBatch batch;
  batch.Merge("key", "one");
  batch.Merge("key", "");
  batch.Merge(nullptr, "key", "two");
  EXPECT_EQ(batch.Data(), Encoded(2, 3, 3, "keyone") + Encoded(2, 3, 0, "key") + Encoded(2, 3, 3, "keytwo"));
  EXPECT_EQ(Print(batch), "merge(key,one)merge(key,)merge(key,two)");
  EXPECT_EQ(batch.Count(), 3u);
}

TEST(WriteBatch, OperandsOfOtherFamiliesAreForHandlersThatKnowThem) {
  struct ByFamily final : Printer {
    Status MergeCF(uint32_t family, Slice key, Slice operand) override {
      text.append(std::to_string(family)).append(":");
      Merge(key, operand);
      return Status::OK();
    }
  } by_family;
  WriteBatch batch;
  batch.MergeCF(0, "a", "1");
  batch.MergeCF(7, "b", "2");
  const std::string id("\7\0\0\0", 4);
  EXPECT_EQ(batch.Data(), Encoded(2, 1, 1, "a1") + Encoded(0x12, 1, 1, id + "b2"));
  EXPECT_TRUE(batch.Iterate(&by_family).ok());
  EXPECT_EQ(by_family.text, "0:merge(a,1)7:merge(b,2)");
  Printer printer;
  EXPECT_EQ(batch.Iterate(&printer).code(), Status::Code::kNotSupported);
  EXPECT_EQ(printer.text, "merge(a,1)");
}

}  // namespace
}  // namespace braiddb
