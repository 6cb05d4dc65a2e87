// ErrorIterator: the result of a NewIterator that is refused.
#pragma once

#include "braiddb/iterator.h"
#include "braiddb/status.h"

namespace braiddb {

// An iterator that is never valid, for a call that is refused.
class ErrorIterator final : public Iterator {
 public:
  explicit ErrorIterator(const Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(Slice) override {}
  void SeekForPrev(Slice) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return {}; }
  Slice value() const override { return {}; }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace braiddb
