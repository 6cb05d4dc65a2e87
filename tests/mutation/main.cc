// mutation_test: damage to the files of small databases. See docs/TESTING.md.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>

#include "tests/mutation/campaign.h"
#include "tests/support/campaign_flags.h"

namespace {

namespace po = boost::program_options;
using braiddb::test::MutationCampaignOptions;
using braiddb::test::MutationCases;

po::options_description Describe(MutationCampaignOptions* options) {
  po::options_description description(
      "mutation_test: damages the files of small databases, and checks that an open gives the right data or an error");
  auto add = description.add_options();
  add("help", "this text");
  add("opens", po::value(&options->opens)->default_value(options->opens), "mutated opens, over all cases");
  add("seed", po::value(&options->seed)->default_value(options->seed), "the databases and mutations follow from it");
  add("case", po::value(&options->only_case), "only this one");
  add("list-cases", "print their names");
  add("in-lists", "plain readers too get damage in what they follow without looking; it is counted and not judged");
  add("every-word", po::bool_switch(&options->every_word),
      "in the first database of each case damage every word that is of use, before anything else");
  add("database", po::value(&options->first_database)->default_value(options->first_database),
      "begin with this one of each case");
  add("only", po::value(&options->only), "only this mutation of that database");
  add("keep", po::value(&options->keep), "copy the damaged files of violations to this directory");
  return description;
}

}  // namespace

int main(int argc, char** argv) {
  MutationCampaignOptions options;
  const po::options_description description = Describe(&options);
  po::variables_map values;
  if (const auto exit_code = braiddb::test::ParseCampaignFlags(argc, argv, "mutation_test", description, &values))
    return *exit_code;
  const auto& cases = MutationCases();
  if (values.count("list-cases") != 0) {
    for (const auto& known : cases) std::printf("%s\n", known.name);
    return 0;
  }
  if (!options.only_case.empty() &&
      std::none_of(cases.begin(), cases.end(), [&](const auto& known) { return options.only_case == known.name; })) {
    std::cerr << "mutation_test: there is no case " << options.only_case << "; --list-cases lists them\n";
    return braiddb::test::kUsageError;
  }
  if (options.only >= 0 && options.only_case.empty()) {
    std::cerr << "mutation_test: --only needs --case\n";
    return braiddb::test::kUsageError;
  }
  options.in_lists = values.count("in-lists") != 0;
  return braiddb::test::RunMutationCampaign(options);
}
