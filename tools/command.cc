#include "tools/command.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tools/progress.h"

namespace braiddb::tools {

namespace po = boost::program_options;

CommandLine::CommandLine(std::string usage, std::vector<std::string> positional, Takes takes, size_t optional)
    : usage_(std::move(usage)), positional_(std::move(positional)), takes_(takes), optional_(optional) {
  options_.add_options()("help", "this text");
  if (takes_ != Takes::kDatabase) return;
  options_.add_options()("region-path", po::value(&region_paths_)->value_name("DIRECTORY"),
                         "directory of a region, once for each in their order, if they are not in the database's")(
      "comparator", po::value(&comparator_)->value_name("NAME"),
      "key order, if the database does not record it: bytewise or reverse-bytewise");
}

void ParseOptions(const Arguments& arguments, const po::options_description& options,
                  const po::positional_options_description& places, po::variables_map* map) {
  const po::parsed_options parsed = po::command_line_parser(arguments).options(options).positional(places).run();
  for (const auto& option : parsed.options) {
    const po::option_description* const known = options.find_nothrow(option.string_key, false);
    if (known == nullptr || option.value.empty() || !option.value[0].starts_with('-')) continue;
    const po::value_semantic* const semantic = known->semantic().get();
    if (dynamic_cast<const po::typed_value<uint64_t>*>(semantic) == nullptr &&
        dynamic_cast<const po::typed_value<uint32_t>*>(semantic) == nullptr) {
      continue;
    }
    throw po::error("the argument ('" + option.value[0] + "') for option '--" + option.string_key + "' is negative");
  }
  po::store(parsed, *map);
  po::notify(*map);
}

bool CommandLine::Fail(const std::string& why, int* exit_code) const {
  std::fprintf(stderr, "braiddb: %s\nusage: %s\n", why.c_str(), usage_.c_str());
  *exit_code = kCannotLook;
  return false;
}

int CommandLine::Refuse(const std::string& why) const {
  int exit_code = kSound;
  (void)Fail(why, &exit_code);
  return exit_code;
}

bool CommandLine::Parse(const Arguments& arguments, int* exit_code) {
  po::options_description all;
  po::positional_options_description places;
  all.add(options_).add_options()("positional", po::value(&values_));
  places.add("positional", -1);
  po::variables_map map;
  try {
    ParseOptions(arguments, all, places, &map);
  } catch (const po::error& error) {
    return Fail(error.what(), exit_code);
  }
  if (map.count("help") != 0) {
    std::string text;
    {
      std::ostringstream out;
      out << options_;
      text = out.str();
    }
    std::printf("usage: %s\n\n%s", usage_.c_str(), text.c_str());
    *exit_code = kSound;
    return false;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].empty()) continue;
    return Fail((i < positional_.size() ? "the " + positional_[i] : "argument " + std::to_string(i + 1)) + " is an empty text",
                exit_code);
  }
  if (values_.size() < positional_.size()) return Fail("no " + positional_[values_.size()] + " given", exit_code);
  const size_t most = positional_.size() + optional_;
  if (values_.size() > most && takes_ != Takes::kPaths)
    return Fail("'" + values_[most] + "' is one argument too many", exit_code);
  if (!comparator_.empty() && comparator_ != "bytewise" && comparator_ != "reverse-bytewise")
    return Fail("the comparator '" + comparator_ + "' is neither bytewise nor reverse-bytewise", exit_code);
  return true;
}

CheckOptions CommandLine::MakeCheckOptions(const std::vector<std::string>& passes) const {
  CheckOptions options;
  options.region_paths = region_paths_;
  if (!comparator_.empty()) options.comparator = comparator_ == "bytewise" ? BytewiseComparator() : ReverseBytewiseComparator();
  if (!passes.empty() && isatty(STDERR_FILENO) != 0) {
    options.progress = [line = std::make_shared<PassProgress>(passes)](uint64_t done, uint64_t total) {
      if (const auto text = line->Line(done, total, PassProgress::Clock::now()))
        std::fprintf(stderr, "\r%s\033[K", text->c_str());
    };
  }
  return options;
}

int CannotLook(const Status& status) {
  EndProgress();
  std::fprintf(stderr, "braiddb: %s\n", status.ToString().c_str());
  return kCannotLook;
}

int FinishOutput(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return CannotLook(Status::IOError("the output cannot be written"));
}

std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  char text[32];
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  std::snprintf(text, sizeof(text), "%.1f %s", value, kUnits[unit]);
  return text;
}

void PrintFinding(const CheckFinding& finding) {
  std::printf("damaged: %s\n  where: %s\n  what to do: %s\n", finding.what.c_str(), finding.where.c_str(),
              finding.advice.c_str());
}

void EndProgress() {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
}

}  // namespace braiddb::tools
