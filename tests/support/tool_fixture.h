// ToolRunner: runs the program braiddb in a test. REQUIRES: the test's name begins with tool_, which defines BRAIDDB_TOOL.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

struct ToolResult {
  int exit_code;
  std::string out;
  std::string error;
};

class ToolRunner : public DbOpenTest {
 protected:
  // A shell command line.
  ToolResult RunCommand(const std::string& command) {
    const std::string error_file = directory_.File("stderr");
    ToolResult result;
    std::FILE* pipe = popen((command + " 2>" + error_file).c_str(), "r");
    std::array<char, 4096> buffer;
    while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) result.out.append(buffer.data(), bytes);
    const int status = pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.error = ReadFileOrDie(error_file);
    return result;
  }
  ToolResult Run(const std::string& arguments) { return RunCommand(std::string(BRAIDDB_TOOL) + " " + arguments); }
  static bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  static bool IsInstalled(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
  }
};

}  // namespace braiddb::test
