// crash_test: power cuts, simulated. See docs/TESTING.md.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "tests/crash_test/campaign.h"
#include "tests/crash_test/mutants.h"
#include "tests/support/campaign_flags.h"

namespace {

namespace po = boost::program_options;
using braiddb::test::CampaignOptions;

po::options_description Describe(CampaignOptions* options) {
  po::options_description description(
      "crash_test: lets the power of small databases fail, millions of times, and checks what recovers");
  auto add = description.add_options();
  add("help", "this text");
  add("seed", po::value(&options->seed)->default_value(options->seed), "all that happens follows from it");
  add("images", po::value(&options->images)->default_value(options->images),
      "stop after so many images of first crashes and, from depth 2, as many of second ones");
  add("databases", po::value(&options->databases)->default_value(options->databases),
      "stop after so many databases; 0: by images");
  add("ops", po::value(&options->ops)->default_value(options->ops), "operations of each of the two writers of a database");
  add("depth", po::value(&options->depth)->default_value(options->depth), "crashes in a row");
  add("lives-one-in", po::value(&options->lives_one_in)->default_value(options->lives_one_in),
      "one in so many images goes on working and is cut by the next crash");
  add("images-per-life", po::value(&options->images_per_life)->default_value(options->images_per_life), "of those, about");
  add("regions", po::value(&options->regions)->default_value(options->regions), "regions; 0: one or two");
  add("eadr", po::value(&options->eadr)->default_value(options->eadr),
      "1: caches are inside the persistence domain; 0: they are not; -1: some databases so, most not");
  add("l1", po::value<std::string>()->default_value("any"),
      "the last level: braided_skiplist, nv_tree, sorted_runs, hybrid, lb_tree, or any in turn (of a mutant: that which it is "
      "in)");
  add("images-per-point", po::value(&options->images_per_point)->default_value(options->images_per_point), "of each crash point");
  add("images-per-database", po::value(&options->images_per_database)->default_value(options->images_per_database),
      "of first crashes, about");
  add("database", po::value(&options->first_database)->default_value(options->first_database), "begin with this one");
  add("image", po::value(&options->only_image)->default_value(options->only_image), "stop at this image of that database");
  add("keep", po::value(&options->keep), "copy the files of a violation to this directory");
  add("mutant", po::value(&options->mutant), "put this bug in");
  add("expect-violation", "end with 0 if a violation is found (after the mutant has acted, if there is one), with 1 if none is");
  add("list-mutants", "print name, class and place of each");
  return description;
}

}  // namespace

int main(int argc, char** argv) {
  CampaignOptions options;
  const po::options_description description = Describe(&options);
  po::variables_map values;
  if (const auto exit_code = braiddb::test::ParseCampaignFlags(argc, argv, "crash_test", description, &values)) return *exit_code;
  if (values.count("list-mutants") != 0) {
    for (const auto& mutant : braiddb::test::Mutants())
      std::printf("%-32s %-40s %s\n", mutant.name, mutant.bug_class, mutant.place);
    return 0;
  }
  const braiddb::test::Mutant* const mutant = braiddb::test::FindMutant(options.mutant);
  if (!options.mutant.empty() && mutant == nullptr) {
    std::cerr << "crash_test: there is no mutant " << options.mutant << "; --list-mutants lists them\n";
    return braiddb::test::kUsageError;
  }
  if (options.depth == 0 || options.images_per_point == 0 || options.lives_one_in == 0 || options.regions > 4) {
    std::cerr << "crash_test: --depth, --lives-one-in and --images-per-point must be at least 1, --regions at most 4\n";
    return braiddb::test::kUsageError;
  }
  const std::string l1 = values["l1"].as<std::string>();
  const auto kind = std::find(std::begin(braiddb::test::kL1Names), std::end(braiddb::test::kL1Names), l1);
  if (l1 != "any" && kind == std::end(braiddb::test::kL1Names)) {
    std::cerr << "crash_test: --l1 must be braided_skiplist, nv_tree, sorted_runs, hybrid, lb_tree or any\n";
    return braiddb::test::kUsageError;
  }
  if (l1 == "any" && mutant != nullptr) options.l1 = static_cast<int>(mutant->l1());
  if (l1 != "any") options.l1 = static_cast<int>(kind - std::begin(braiddb::test::kL1Names));
  options.expect_violation = values.count("expect-violation") != 0;
  return braiddb::test::RunCampaign(options);
}
