#include "db/options_text.h"

#include <algorithm>

namespace braiddb {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view WithoutComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

Status AtLine(int number, std::string_view message) {
  return Status::InvalidArgument("line " + std::to_string(number) + " of the options: " + std::string(message));
}

// "[Title]" or "[Title "argument"]", the brackets included.
Status ReadTitle(std::string_view line, OptionLine* result) {
  if (line.size() < 2 || line.back() != ']') return AtLine(result->number, "a section without ]");
  line = line.substr(1, line.size() - 2);
  const size_t quote = line.find('"');
  result->argument.clear();
  result->title = Trim(line.substr(0, quote));
  if (quote == std::string_view::npos) return Status::OK();
  const size_t end = line.rfind('"');
  if (end == quote) return AtLine(result->number, "a section's argument without its second quotation mark");
  result->argument = UnescapeOption(line.substr(quote + 1, end - quote - 1));
  return Status::OK();
}

Status ReadStatement(std::string_view line, OptionLine* result) {
  const size_t sign = line.find('=');
  if (sign == std::string_view::npos) return AtLine(result->number, "neither a section nor name=value");
  if (result->title.empty()) return AtLine(result->number, "an option before the first section");
  result->name = Trim(line.substr(0, sign));
  result->value = Trim(line.substr(sign + 1));
  return result->name.empty() ? AtLine(result->number, "a value without a name") : Status::OK();
}

}  // namespace

std::string EscapeArgument(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == '\n' || c == '\r') {
      result += c == '\n' ? "\\n" : "\\r";
      continue;
    }
    if (c == '\\' || c == ':' || c == '#') result += '\\';
    result += c;
  }
  return result;
}

std::string EscapeOption(std::string_view value) {
  std::string result = EscapeArgument(value);
  // Blanks at the ends would be taken for blanks around the value.
  const auto escape_blank = [&result](size_t at) {
    if (result[at] == ' ' || result[at] == '\t') result.replace(at, 1, result[at] == ' ' ? "\\s" : "\\t");
  };
  if (!result.empty()) escape_blank(result.size() - 1);
  if (!result.empty()) escape_blank(0);
  return result;
}

bool IsOptionName(std::string_view name) {
  constexpr std::string_view kOfTheSyntax = "=#[]:\\\"";
  const auto is_allowed = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f && kOfTheSyntax.find(c) == std::string_view::npos;
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_allowed);
}

std::string UnescapeOption(std::string_view value) {
  std::string result;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\' || i + 1 == value.size()) {
      result += value[i];
      continue;
    }
    switch (const char c = value[++i]) {
      case 'n':
        result += '\n';
        break;
      case 'r':
        result += '\r';
        break;
      case 's':
        result += ' ';
        break;
      case 't':
        result += '\t';
        break;
      default:
        result += c;
    }
  }
  return result;
}

Status ForEachOptionLine(std::string_view text, const std::function<Status(const OptionLine&)>& visit) {
  OptionLine line;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view content = Trim(WithoutComment(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line.number;
    line.name.clear();
    line.value.clear();
    if (content.empty()) continue;
    Status status = content.front() == '[' ? ReadTitle(content, &line) : ReadStatement(content, &line);
    if (!status.ok()) return status;
    status = visit(line);
    if (!status.ok()) return AtLine(line.number, status.message());
  }
  return Status::OK();
}

}  // namespace braiddb
