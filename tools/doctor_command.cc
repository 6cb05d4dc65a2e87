// braiddb doctor: reports whether directories and devices suit a database. Changes nothing.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "check/doctor.h"
#include "pmem/persist_mode.h"
#include "tools/command.h"

namespace braiddb::tools {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Diagnosis& diagnosis) {
  const Device& device = diagnosis.device;
  Json json{{"path", diagnosis.path},
            {"examined", diagnosis.examined},
            {"needs_change", diagnosis.needs_change()},
            {"media", NameOf(device.kind)},
            {"device", device.name},
            {"file_system", device.file_system},
            {"mount_point", device.mount_point},
            {"mount_options", device.mount_options},
            {"numa_node", device.numa_node},
            {"persist_mode", NameOf(diagnosis.persist_mode)},
            {"first_part_bytes", diagnosis.first_part_bytes},
            {"available_bytes", diagnosis.available_bytes}};
  json["findings"] = Json::array();
  for (const DoctorFinding& finding : diagnosis.findings) {
    json["findings"].push_back(
        {{"topic", finding.topic}, {"level", NameOf(finding.level)}, {"what", finding.what}, {"advice", finding.advice}});
  }
  return json;
}

void Print(const Diagnosis& diagnosis) {
  std::printf("%s\n", diagnosis.path.c_str());
  for (const DoctorFinding& finding : diagnosis.findings) {
    const bool is_good = finding.level == DoctorLevel::kGood;
    std::printf("  %-7s%s: %s\n",
                is_good                               ? ""
                : finding.level == DoctorLevel::kNote ? "note"
                                                      : "CHANGE",
                finding.topic.c_str(), finding.what.c_str());
    if (!is_good) std::printf("         what to do: %s\n", finding.advice.c_str());
  }
  std::printf("  %s\n", diagnosis.needs_change() ? "something must be CHANGED" : "fit for a database");
}

}  // namespace

int RunDoctor(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("braiddb doctor [option...] <path>...", {"path"}, CommandLine::Takes::kPaths);
  bool as_json = false;
  DoctorOptions options;
  line.Add()("json", po::bool_switch(&as_json), "print JSON")(
      "system-root", po::value(&options.system_root)->value_name("DIRECTORY"),
      "read /proc, /sys and /dev below this directory, for example copies from another machine");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  Json all = Json::array();
  for (const std::string& path : line.values()) {
    Diagnosis diagnosis;
    if (Status status = Diagnose(path, options, &diagnosis); !status.ok()) {
      exit_code = CannotLook(status);
      continue;
    }
    if (diagnosis.needs_change() && exit_code == kSound) exit_code = kDamaged;
    if (as_json) {
      all.push_back(ToJson(diagnosis));
    } else {
      Print(diagnosis);
    }
  }
  if (as_json) std::printf("%s\n", Json{{"paths", all}}.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return exit_code;
}

}  // namespace braiddb::tools
