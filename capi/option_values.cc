#include "capi/option_values.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "capi/option_words.h"

namespace braiddb::capi {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// RocksDB's error. `why`: the function that could not parse the text.
Status CannotParse(std::string_view name, std::string_view why) {
  return Status::InvalidArgument("Error parsing " + std::string(name) + ":" + std::string(why));
}

// The shift of a unit letter behind a number.
int ShiftOf(char letter, bool has_tera) {
  switch (letter) {
    case 'k':
    case 'K':
      return 10;
    case 'm':
    case 'M':
      return 20;
    case 'g':
    case 'G':
      return 30;
    case 't':
    case 'T':
      return has_tera ? 40 : 0;
    default:
      return 0;
  }
}

// Parses the number by strtoll or strtoull, without its unit letter.
template <class Number, class Convert>
Status ParseWhole(const Convert& convert, const char* reader, std::string_view name, std::string_view text, Number smallest,
                  Number largest, bool has_tera, OptionValue* value) {
  const std::string digits(text);
  char* end = nullptr;
  errno = 0;
  const Number number = convert(digits.c_str(), &end, 10);
  const bool is_int = std::is_same_v<Number, int64_t> && largest == std::numeric_limits<int32_t>::max();
  if (end == digits.c_str() || errno == ERANGE || (is_int && (number < smallest || number > largest))) {
    return CannotParse(name, reader);
  }
  const Number factor = Number{1} << ShiftOf(*end, has_tera);
  if (number > largest / factor || number < smallest / factor) return CannotParse(name, text);
  *value = number * factor;
  return Status::OK();
}

Status ParseBool(std::string_view name, std::string_view text, OptionValue* value) {
  const bool is_true = text == "true" || text == "1";
  if (!is_true && text != "false" && text != "0") return CannotParse(name, "");
  *value = is_true;
  return Status::OK();
}

Status ParseDouble(std::string_view name, std::string_view text, OptionValue* value) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  // Unlike strtod, this takes the same texts in each locale.
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return CannotParse(name, "stod");
  *value = number;
  return Status::OK();
}

// Extracts the text behind `name=`. The rest is empty or begins with the semicolon.
Status TakeText(std::string_view* rest, std::string_view* text) {
  rest->remove_prefix(std::min(rest->find_first_not_of(kBlanks), rest->size()));
  if (!rest->starts_with('{')) {
    const size_t end = std::min(rest->find(';'), rest->size());
    *text = WithoutBlanks(rest->substr(0, end));
    rest->remove_prefix(end);
    return Status::OK();
  }
  size_t end = 1;
  for (int open = 1; open > 0; ++end) {
    if (end == rest->size()) return Status::InvalidArgument("Mismatched curly braces for nested options");
    open += ((*rest)[end] == '{') - ((*rest)[end] == '}');
  }
  *text = WithoutBlanks(rest->substr(1, end - 2));
  rest->remove_prefix(end);
  rest->remove_prefix(std::min(rest->find_first_not_of(kBlanks), rest->size()));
  if (!rest->empty() && !rest->starts_with(';')) return Status::InvalidArgument("Unexpected chars after nested options");
  return Status::OK();
}

}  // namespace

std::string_view WithoutBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

Status ParseValue(OptionKind kind, std::string_view name, std::string_view text, OptionValue* value) {
  using Int32 = std::numeric_limits<int32_t>;
  using Int64 = std::numeric_limits<int64_t>;
  switch (kind) {
    case OptionKind::kBool:
      return ParseBool(name, text, value);
    case OptionKind::kInt32:
      return ParseWhole<int64_t>(std::strtoll, "stoi", name, text, Int32::min(), Int32::max(), false, value);
    case OptionKind::kInt64:
      return ParseWhole<int64_t>(std::strtoll, "stoll", name, text, Int64::min(), Int64::max(), true, value);
    case OptionKind::kUint32:
      return ParseWhole<uint64_t>(std::strtoull, "stoull", name, text, 0, std::numeric_limits<uint32_t>::max(), true, value);
    case OptionKind::kUint64:
      return ParseWhole<uint64_t>(std::strtoull, "stoull", name, text, 0, std::numeric_limits<uint64_t>::max(), true, value);
    case OptionKind::kDouble:
      return ParseDouble(name, text, value);
    case OptionKind::kEnum:
    case OptionKind::kWord:
      for (const Word& word : WordsOf(name)) {
        if (word.text == text) return *value = int64_t{word.value}, Status::OK();
      }
      return Status::InvalidArgument((kind == OptionKind::kEnum ? "No mapping for enum : " : "Error parsing:: ") +
                                     std::string(name));
    case OptionKind::kText:
      break;
  }
  return Status::OK();
}

Status OptionNotFound(std::string_view name) { return Status::InvalidArgument("Could not find option: : " + std::string(name)); }

Status SplitOptions(std::string_view text, std::vector<NamedText>* options) {
  text = WithoutBlanks(text);
  while (text.size() > 2 && text.starts_with('{') && text.ends_with('}')) {
    text = WithoutBlanks(text.substr(1, text.size() - 2));
  }
  while (!text.empty()) {
    const size_t sign = text.find_first_of("={};");
    if (sign == std::string_view::npos) return Status::InvalidArgument("Mismatched key value pair, '=' expected");
    if (text[sign] != '=') return Status::InvalidArgument("Unexpected char in key");
    NamedText option{WithoutBlanks(text.substr(0, sign)), {}};
    if (option.name.empty()) return Status::InvalidArgument("Empty key found");
    text.remove_prefix(sign + 1);
    if (Status status = TakeText(&text, &option.text); !status.ok()) return status;
    std::erase_if(*options, [&](const NamedText& earlier) { return earlier.name == option.name; });
    options->push_back(option);
    if (!text.empty()) text.remove_prefix(1);
  }
  return Status::OK();
}

}  // namespace braiddb::capi
