// Option strings, SetOptions by text, and OPTIONS files: any bytes give options or an error.
#include <unistd.h>

#include <string>

#include "braiddb/c.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/db_test_util.h"

namespace {

using braiddb::test::FuzzInput;

// Names that mean something, so that values are reached.
const char* const kNames[] = {"write_buffer_size",
                              "max_write_buffer_number",
                              "block_based_table_factory",
                              "block_cache",
                              "filter_policy",
                              "comparator",
                              "merge_operator",
                              "prefix_extractor",
                              "compression",
                              "level0_file_num_compaction_trigger",
                              "level0_slowdown_writes_trigger",
                              "max_background_jobs",
                              "max_background_compactions",
                              "disable_auto_compactions",
                              "compression_per_level",
                              "max_bytes_for_level_multiplier_additional",
                              "target_file_size_multiplier",
                              "max_bytes_for_level_multiplier",
                              "create_if_missing",
                              "db_paths",
                              "env"};
const char* const kValues[] = {"true",
                               "-2147483648",
                               "2147483647",
                               "18446744073709551615",
                               "-1",
                               "1e308",
                               "nan",
                               "16M",
                               "9223372036854775807T",
                               "{}",
                               "{block_size=4096;filter_policy=bloomfilter:1e9:false}",
                               "bloomfilter:10:false",
                               "rocksdb.FixedPrefix.18446744073709551615",
                               "kSnappyCompression:kNoCompression",
                               "{{{{",
                               "}",
                               "",
                               "fixed:-1",
                               "{path=/x;target_size=-1}"};

std::string Text(FuzzInput* input) {
  std::string text;
  for (uint32_t parts = input->Below(6); parts > 0; --parts) {
    const uint32_t name = input->Below(std::size(kNames) + 3);
    text += name < std::size(kNames) ? std::string(kNames[name]) : input->Bytes(40);
    if (input->Below(16) != 0) text += input->Below(8) == 0 ? " = " : "=";
    const uint32_t value = input->Below(std::size(kValues) + 3);
    text += value < std::size(kValues) ? std::string(kValues[value]) : input->Bytes(60);
    if (input->Below(16) != 0) text += ';';
  }
  return text;
}

void FromString(const std::string& text) {
  char* error = nullptr;
  braiddb_options_t* const base = braiddb_options_create();
  braiddb_options_t* const result = braiddb_options_create();
  braiddb_get_options_from_string(base, text.c_str(), result, &error);
  braiddb_free(error);
  braiddb_options_destroy(result);
  braiddb_options_destroy(base);
}

// The database whose options are set; one for the process, since an open takes longer than all the rest.
braiddb_t* Database() {
  static const braiddb::test::TestDirectory directory;
  static braiddb_t* const db = [] {
    braiddb_options_t* const options = braiddb_options_create();
    braiddb_options_set_create_if_missing(options, 1);
    char* error = nullptr;
    braiddb_t* const opened = braiddb_open(options, directory.File("db").c_str(), &error);
    if (error != nullptr) {
      fprintf(stderr, "%s\n", error);
      abort();
    }
    braiddb_options_destroy(options);
    static const struct Closer {
      braiddb_t* db;
      ~Closer() { braiddb_close(db); }
    } closer{opened};
    return opened;
  }();
  return db;
}

void SetByText(FuzzInput* input) {
  std::string name = kNames[input->Below(std::size(kNames))];
  if (input->Below(8) == 0) name = input->Bytes(40);
  std::string value = kValues[input->Below(std::size(kValues))];
  if (input->Below(3) == 0) value = input->Bytes(60);
  const char* const names[] = {name.c_str()};
  const char* const values[] = {value.c_str()};
  char* error = nullptr;
  braiddb_set_options(Database(), 1, names, values, &error);
  braiddb_free(error);
}

void LoadFile(const std::string& text) {
  static const braiddb::test::TestDirectory directory;
  braiddb::test::WriteFileOrDie(directory.File("OPTIONS-000001"), text);
  braiddb::test::WriteFileOrDie(directory.File("OPTIONS"), text);
  char* error = nullptr;
  braiddb_env_t* const env = braiddb_create_default_env();
  braiddb_options_t* options = nullptr;
  braiddb_options_t** family_options = nullptr;
  char** names = nullptr;
  size_t count = 0;
  braiddb_load_latest_options(directory.path().c_str(), env, true, nullptr, &options, &count, &names, &family_options, &error);
  if (error == nullptr) braiddb_load_latest_options_destroy(options, names, family_options, count);
  braiddb_free(error);
  braiddb_env_destroy(env);
}

std::string OptionsFile(FuzzInput* input) {
  std::string text = input->Below(8) != 0 ? "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n" : "";
  for (uint32_t sections = input->Below(5); sections > 0; --sections) {
    static const char* const kSections[] = {"[DBOptions]\n", "[CFOptions \"default\"]\n",
                                            "[TableOptions/BlockBasedTable \"default\"]\n", "[CFOptions \"", "[BraidDB]\n"};
    text += kSections[input->Below(std::size(kSections))];
    std::string body = Text(input);
    for (char& c : body) {
      if (c == ';') c = '\n';
    }
    text += body + "\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  switch (input.Below(5)) {
    case 0:
      FromString(input.Rest());
      break;
    case 1:
      FromString(Text(&input));
      break;
    case 2:
      SetByText(&input);
      break;
    case 3:
      LoadFile(OptionsFile(&input));
      break;
    default:
      LoadFile(input.Rest());
  }
  return 0;
}
