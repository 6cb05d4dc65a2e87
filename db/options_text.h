// The lines of an options file, whatever options they are about.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "braiddb/status.h"

namespace braiddb {

// GRAMMAR  A line is empty, [Title], [Title "argument"], or name=value, with blanks around any of these. Behind # is a comment.
//          In values and arguments a \ is before each : # and \, and \n and \r are line ends. Elements of a list have : between
//          them.
struct OptionLine {
  std::string title;     // of the section
  std::string argument;  // … as it was before it was escaped
  std::string name;      // empty: the line is the section's
  std::string value;     // escaped: of a list it is not known where its elements end
  int number = 0;        // from 1 on
};

std::string EscapeOption(std::string_view value);
std::string UnescapeOption(std::string_view value);

// Calls `visit` for each line that says something. Stops at an error, of which that of `visit` gets the line's number.
Status ForEachOptionLine(std::string_view text, const std::function<Status(const OptionLine&)>& visit);

}  // namespace braiddb
