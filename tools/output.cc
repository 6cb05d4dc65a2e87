#include "tools/output.h"

#include <algorithm>
#include <cstdio>

namespace braiddb::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTableRows = 1000;

void WriteOut(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Columns are separated by two spaces; the last one is not padded.
std::string Padded(const std::vector<std::string>& row, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    line += row[i];
    if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
  }
  return line + "\n";
}

}  // namespace

void RowPrinter::Print(const std::vector<Slice>& fields) {
  std::string line;
  if (style_.output == OutputForm::kTable) {
    const ByteForm form = style_.bytes == ByteForm::kHex ? ByteForm::kHex : ByteForm::kEscape;
    std::vector<std::string> row;
    for (const Slice field : fields) row.push_back(Encode(form, field));
    rows_.push_back(std::move(row));
    if (rows_.size() >= kTableRows) PrintTable();
    return;
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (style_.output == OutputForm::kJson) {
      line += i == 0 ? "{" : ",";
      if (std::find(numbers_.begin(), numbers_.end(), i) == numbers_.end()) {
        AppendJsonField(names_[i], fields[i], &line);
      } else {
        line.append("\"").append(names_[i]).append("\":").append(fields[i]);
      }
    } else {
      if (i != 0) line += '\t';
      line += Encode(style_.bytes, fields[i]);
    }
  }
  line += style_.output == OutputForm::kJson ? "}\n" : "\n";
  WriteOut(line);
}

bool RowPrinter::Flush() {
  PrintTable();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

void RowPrinter::PrintTable() {
  if (rows_.empty()) return;
  std::vector<size_t> widths;
  for (size_t i = 0; i < names_.size(); ++i) {
    size_t width = names_[i].size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  if (!has_header_) WriteOut(Padded(names_, widths));
  has_header_ = true;
  for (const auto& row : rows_) WriteOut(Padded(row, widths));
  rows_.clear();
}

Json WithHexFields(const Json& json) {
  if (!json.is_structured()) return json;
  Json result = json.is_array() ? Json::array() : Json::object();
  for (const auto& [name, value] : json.items()) {
    const std::string* const bytes = value.get_ptr<const std::string*>();
    const bool is_text = bytes == nullptr || IsUtf8(*bytes);
    if (json.is_array()) {
      result.push_back(is_text ? WithHexFields(value) : Json{{"hex", Encode(ByteForm::kHex, *bytes)}});
      continue;
    }
    std::string key = IsUtf8(name) ? name : Encode(ByteForm::kHex, name) + "_hex";
    if (is_text) {
      result[key] = WithHexFields(value);
    } else {
      result[key + "_hex"] = Encode(ByteForm::kHex, *bytes);
    }
  }
  return result;
}

void Facts::Print(const Style& style) const {
  if (style.output == OutputForm::kJson) return WriteOut(WithHexFields(json_).dump() + "\n");
  size_t width = 0;
  for (const auto& [name, value] : json_.items()) width = std::max(width, name.size());
  for (const auto& [name, value] : json_.items()) {
    std::string line = name + ": ";
    if (style.output == OutputForm::kTable) line.append(width - name.size(), ' ');
    WriteOut(line + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n");
  }
}

}  // namespace braiddb::tools
