// db_bench as a program, and what its output says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <string>

namespace braiddb::test {

struct ProgramResult {
  int exit_code;
  std::string output;  // stdout and stderr
};

inline ProgramResult RunProgram(const std::string& program, const std::string& arguments) {
  ProgramResult result;
  std::FILE* pipe = popen((program + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) result.output.append(buffer.data(), bytes);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// The result line of a benchmark, its name taken off; empty if there is none.
inline std::string LineOf(const std::string& output, const std::string& name) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name) && line.find(" : ") != std::string::npos) return line.substr(line.find(" : ") + 3);
  }
  return {};
}

// The number of operations that the line of the benchmark reports.
inline uint64_t Operations(const std::string& output, const std::string& name) {
  const std::string line = LineOf(output, name);
  double micros = 0, seconds = 0;
  unsigned long long rate = 0, operations = 0;
  int length = 0;
  if (std::sscanf(line.c_str(), "%lf micros/op %llu ops/sec %lf seconds %llu operations;%n", &micros, &rate, &seconds,
                  &operations, &length) != 4 ||
      length == 0) {
    ADD_FAILURE() << "no line of " << name << " in:\n" << output;
  }
  return operations;
}

inline bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace braiddb::test
