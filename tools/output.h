// Output: what a verb prints, as raw text, as a table or as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/slice.h"
#include "tools/bytes.h"

namespace braiddb::tools {

enum class OutputForm : uint8_t {
  kRaw,    // fields separated by tabs
  kTable,  // columns of the same width; bytes are escaped unless they are hexadecimal
  kJson,   // one object per line; bytes that are not UTF-8 are in fields <name>_hex
};

struct Style {
  OutputForm output = OutputForm::kRaw;
  ByteForm bytes = ByteForm::kRaw;
};

// Prints rows of keys and values to the standard output. A table takes the widths from up to 1000 rows at a time.
class RowPrinter {
 public:
  // `names`: one per column. `numbers`: the columns that have numbers, which JSON writes without quotation marks.
  RowPrinter(const Style& style, std::vector<std::string> names, std::vector<size_t> numbers = {})
      : style_(style), names_(std::move(names)), numbers_(std::move(numbers)) {}
  ~RowPrinter() { PrintTable(); }
  RowPrinter(const RowPrinter&) = delete;
  RowPrinter& operator=(const RowPrinter&) = delete;

  // REQUIRES: one field per column.
  void Print(const std::vector<Slice>& fields);
  // Writes all rows so far to the standard output. Returns false if the output is lost.
  bool Flush();

 private:
  void PrintTable();

  const Style style_;
  const std::vector<std::string> names_;
  const std::vector<size_t> numbers_;
  std::vector<std::vector<std::string>> rows_;  // of the table
  bool has_header_ = false;
};

// Returns the JSON with another field <name>_hex in place of each text that is not UTF-8, at any depth. A name that is not UTF-8
// becomes <name in hexadecimal>_hex, and such an element of an array an object {"hex": ...}. JSON itself has Unicode only.
nlohmann::ordered_json WithHexFields(const nlohmann::ordered_json& json);

// Prints named facts in the order in which they were added: lines "name: value", or one JSON object, in which
// a text that is not UTF-8 is a field <name>_hex.
class Facts {
 public:
  void Add(const std::string& name, nlohmann::ordered_json value) { json_[name] = std::move(value); }
  void Print(const Style& style) const;

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

}  // namespace braiddb::tools
