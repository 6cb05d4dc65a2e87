#include "braiddb/slice_transform.h"

#include <string>
#include <utility>

namespace braiddb {
namespace {

class FixedPrefix final : public SliceTransform {
 public:
  explicit FixedPrefix(size_t length) : length_(length), name_("rocksdb.FixedPrefix." + std::to_string(length)) {}
  const char* Name() const override { return name_.c_str(); }
  bool InDomain(Slice key) const override { return key.size() >= length_; }
  Slice Transform(Slice key) const override { return key.substr(0, length_); }

 private:
  const size_t length_;
  const std::string name_;
};

class CappedPrefix final : public SliceTransform {
 public:
  explicit CappedPrefix(size_t length) : length_(length), name_("rocksdb.CappedPrefix." + std::to_string(length)) {}
  const char* Name() const override { return name_.c_str(); }
  bool InDomain(Slice) const override { return true; }
  Slice Transform(Slice key) const override { return key.substr(0, length_); }

 private:
  const size_t length_;
  const std::string name_;
};

class Noop final : public SliceTransform {
 public:
  const char* Name() const override { return "rocksdb.Noop"; }
  bool InDomain(Slice) const override { return true; }
  Slice Transform(Slice key) const override { return key; }
};

class PrefixIterator final : public Iterator {
 public:
  PrefixIterator(std::unique_ptr<Iterator> base, std::shared_ptr<const SliceTransform> extractor)
      : extractor_(std::move(extractor)), base_(std::move(base)) {}

  bool Valid() const override { return valid_; }
  void SeekToFirst() override {
    base_->SeekToFirst();
    KeepPrefixOfKey();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    KeepPrefixOfKey();
  }
  void Seek(Slice target) override {
    KeepPrefixOf(target);
    base_->Seek(target);
    Check();
  }
  void SeekForPrev(Slice target) override {
    KeepPrefixOf(target);
    base_->SeekForPrev(target);
    Check();
  }
  void Next() override {
    base_->Next();
    Check();
  }
  void Prev() override {
    base_->Prev();
    Check();
  }
  Slice key() const override { return base_->key(); }
  Slice value() const override { return base_->value(); }
  Status status() const override { return base_->status(); }
  Slice timestamp() const override { return base_->timestamp(); }

 private:
  void KeepPrefixOf(Slice key) {
    valid_ = false;
    is_limited_ = extractor_->InDomain(key);
    if (is_limited_) prefix_.assign(extractor_->Transform(key));
  }
  void KeepPrefixOfKey() {
    valid_ = false;
    if (!base_->Valid()) return;
    KeepPrefixOf(base_->key());
    valid_ = true;
  }
  void Check() {
    valid_ = base_->Valid();
    if (!valid_ || !is_limited_) return;
    const Slice key = base_->key();
    valid_ = extractor_->InDomain(key) && extractor_->Transform(key) == prefix_;
  }

  const std::shared_ptr<const SliceTransform> extractor_;
  const std::unique_ptr<Iterator> base_;
  bool valid_ = false;
  bool is_limited_ = false;
  std::string prefix_;
};

}  // namespace

std::shared_ptr<const SliceTransform> NewFixedPrefixTransform(size_t length) { return std::make_shared<FixedPrefix>(length); }
std::shared_ptr<const SliceTransform> NewCappedPrefixTransform(size_t length) { return std::make_shared<CappedPrefix>(length); }
std::shared_ptr<const SliceTransform> NewNoopTransform() { return std::make_shared<Noop>(); }

std::unique_ptr<Iterator> NewPrefixIterator(std::unique_ptr<Iterator> base, std::shared_ptr<const SliceTransform> extractor) {
  return std::make_unique<PrefixIterator>(std::move(base), std::move(extractor));
}

}  // namespace braiddb
