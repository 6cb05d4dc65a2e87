// The engine null: does nothing. It measures the cost of db_bench itself.
#include "db_bench/engine.h"

namespace braiddb::bench {

namespace {

class NullIterator final : public Iterator {
 public:
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(Slice) override {}
  void SeekForPrev(Slice) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return {}; }
  Slice value() const override { return {}; }
  Status status() const override { return Status::OK(); }
};

class NullSession final : public Session {
 public:
  Status Put(Slice, Slice) override { return Status::OK(); }
  Status Delete(Slice) override { return Status::OK(); }
  Status Write(const std::vector<Update>&) override { return Status::OK(); }
  Status Get(Slice, std::string*) override { return Status::NotFound(); }
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    values->resize(keys.size());
    statuses->resize(keys.size());
    for (Status& status : *statuses) status = Status::NotFound();
  }
  std::unique_ptr<Iterator> NewIterator() override { return std::make_unique<NullIterator>(); }
};

class NullEngine final : public Engine {
 public:
  Status NewSession(bool, std::unique_ptr<Session>* session) override {
    *session = std::make_unique<NullSession>();
    return Status::OK();
  }
  Status Flush() override { return Status::OK(); }
  Status Compact() override { return Status::OK(); }
  Status WaitForCompaction() override { return Status::OK(); }
  bool GetText(std::string_view, std::string*) override { return false; }
  Status Close() override { return Status::OK(); }
};

class NullDriver final : public Driver {
 public:
  std::string Version() const override { return "null"; }
  std::string Settings() const override { return "none"; }
  std::string Durability(bool) const override { return "none: nothing is kept"; }
  Status Open(const std::string&, bool, std::unique_ptr<Engine>* engine) override {
    *engine = std::make_unique<NullEngine>();
    return Status::OK();
  }
  Status Destroy(const std::string&) override { return Status::OK(); }
};

}  // namespace

Status MakeNullDriver(const std::string& argument, const Flags&, std::unique_ptr<Driver>* driver) {
  if (!argument.empty()) return Status::InvalidArgument("the engine null has no argument");
  *driver = std::make_unique<NullDriver>();
  return Status::OK();
}

}  // namespace braiddb::bench
