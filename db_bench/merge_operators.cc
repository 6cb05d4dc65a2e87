#include "db_bench/merge_operators.h"

#include <algorithm>
#include <span>

namespace braiddb::bench {

namespace {

// An operator whose result depends only on the previous value and the next operand. It combines two operands in the same way.
class StepOperator : public MergeOperator {
 public:
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const final {
    bool has_value = existing != nullptr;
    if (has_value) *value = *existing;
    for (const Slice operand : operands) {
      if (has_value) {
        Step(operand, value);
      } else {
        *value = operand;
      }
      has_value = true;
    }
    return true;
  }
  bool PartialMerge(Slice, Slice left, Slice right, std::string* operand) const final {
    *operand = left;
    Step(right, operand);
    return true;
  }

 private:
  virtual void Step(Slice operand, std::string* value) const = 0;
};

// The result is the last operand.
class Put final : public StepOperator {
 public:
  const char* Name() const override { return "PutOperator"; }

 private:
  void Step(Slice operand, std::string* value) const override { *value = operand; }
};

class StringAppend final : public StepOperator {
 public:
  const char* Name() const override { return "StringAppendOperator"; }

 private:
  void Step(Slice operand, std::string* value) const override { value->append(",").append(operand); }
};

class Max final : public StepOperator {
 public:
  const char* Name() const override { return "MaxOperator"; }

 private:
  void Step(Slice operand, std::string* value) const override {
    if (operand > *value) *value = operand;
  }
};

// The shorter operand is padded with zeros.
class BytesXor final : public StepOperator {
 public:
  const char* Name() const override { return "BytesXOR"; }

 private:
  void Step(Slice operand, std::string* value) const override {
    value->resize(std::max(value->size(), operand.size()), '\0');
    for (size_t i = 0; i < operand.size(); ++i) (*value)[i] = static_cast<char>((*value)[i] ^ operand[i]);
  }
};

}  // namespace

Status FindMergeOperator(const std::string& name, std::shared_ptr<const MergeOperator>* merge_operator) {
  if (name.empty()) {
    merge_operator->reset();
  } else if (name == "put" || name == "put_v1" || name == "PutOperator") {
    *merge_operator = std::make_shared<Put>();
  } else if (name == "uint64add" || name == "UInt64AddOperator") {
    *merge_operator = UInt64AddOperator();
  } else if (name == "stringappend" || name == "stringappendtest" || name == "StringAppendOperator") {
    *merge_operator = std::make_shared<StringAppend>();
  } else if (name == "max" || name == "MaxOperator") {
    *merge_operator = std::make_shared<Max>();
  } else if (name == "bytesxor" || name == "BytesXOR") {
    *merge_operator = std::make_shared<BytesXor>();
  } else if (name == "sortlist") {
    return Status::InvalidArgument("--merge_operator=sortlist is refused: db_bench's values are not lists of numbers");
  } else {
    return Status::InvalidArgument("--merge_operator=" + name + " is none of put, uint64add, stringappend, max, bytesxor");
  }
  return Status::OK();
}

}  // namespace braiddb::bench
