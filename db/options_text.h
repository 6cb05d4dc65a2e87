// The syntax of an options file: lines, sections and escapes, without the meaning of options.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "braiddb/status.h"

namespace braiddb {

// GRAMMAR  A line is empty, [Title], [Title "argument"], or name=value, with blanks around any part. A comment begins with #. In
//          values and arguments, each : # and \ is preceded by \, line ends are \n and \r, and a blank or tab at an end of a
//          value is \s or \t. Elements of a list are separated by :.
struct OptionLine {
  std::string title;     // of the section
  std::string argument;  // … without escapes
  std::string name;      // empty: the line begins a section
  std::string value;     // escaped, because a : without \ separates elements of a list
  int number = 0;        // counted from 1
};

// Of a value, and of the argument of a section, which is between quotation marks.
std::string EscapeOption(std::string_view value);
std::string EscapeArgument(std::string_view argument);
// Whether a line can have this name: one byte or more, no blank, no control character, and none of = # [ ] : \ and ".
bool IsOptionName(std::string_view name);
std::string UnescapeOption(std::string_view value);

// Calls `visit` for each section and each option. Stops at the first error. An error of `visit` gets the number of the line.
Status ForEachOptionLine(std::string_view text, const std::function<Status(const OptionLine&)>& visit);

}  // namespace braiddb
