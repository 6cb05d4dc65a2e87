// braiddb serve: a page, an API and a metrics endpoint for a database. Changes nothing in the database.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/serve/http_server.h"
#include "tools/serve/service.h"
#include "tools/serve/source.h"

namespace braiddb::tools {
namespace {

constexpr const char* kDefaultAddress = "127.0.0.1:9180";
constexpr size_t kMinTokenBytes = 16;

HttpServer* server_to_stop = nullptr;  // set while signals are handled

void StopOnSignal(int) {
  if (server_to_stop != nullptr) server_to_stop->Stop();
}

// The first line of the file.
Status ReadToken(const std::string& file, std::string* token) {
  std::ifstream in(file);
  if (!std::getline(in, *token)) return Status::IOError("cannot read a token from " + file);
  while (!token->empty() && (token->back() == '\r' || token->back() == ' ')) token->pop_back();
  if (token->size() < kMinTokenBytes)
    return Status::InvalidArgument("the token in " + file + " is shorter than " + std::to_string(kMinTokenBytes) +
                                   " bytes; make one, for example by openssl rand -hex 32");
  return Status::OK();
}

Status Serve(const SourceOptions& source_options, const ListenAddress& address, const ServiceOptions& service_options) {
  std::unique_ptr<Source> source;
  if (Status status = Source::Open(source_options, &source); !status.ok()) return status;
  const Service service(source.get(), service_options);
  std::unique_ptr<HttpServer> server;
  const auto handle = [&service](const HttpRequest& request) { return service.Handle(request); };
  if (Status status = HttpServer::Listen(address, {}, handle, &server); !status.ok()) return status;
  server_to_stop = server.get();
  CatchEnd(StopOnSignal);
  std::printf("%s, %s, on http://%s/\n", source->path().c_str(),
              source->is_secondary() ? "as a copy of a database that is open elsewhere" : "open for reading",
              server->address().c_str());
  std::fflush(stdout);
  const Status status = server->Run();
  CatchEnd(SIG_DFL);
  server_to_stop = nullptr;
  return status;
}

}  // namespace

int RunServe(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("braiddb serve [option...] <database>", {"database"});
  std::string listen = kDefaultAddress;
  std::string token_file;
  bool hides_data = false;
  SourceOptions source;
  line.Add()("listen", po::value(&listen)->value_name("ADDRESS"), "number and port to listen on; default: 127.0.0.1:9180")(
      "token-file", po::value(&token_file)->value_name("FILE"),
      "a file whose first line is the token that clients give; needed for an address that other machines reach")(
      "no-data", po::bool_switch(&hides_data), "show no keys and no values")(
      "count-dead", po::bool_switch(&source.counts_dead),
      "count the dead entries of a closed database, which reads its log once")(
      "secondary", po::value(&source.secondary_path)->value_name("DIRECTORY"),
      "where the copy lies if the database is open elsewhere; default: a temporary directory");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const CheckOptions common = line.MakeCheckOptions({});
  source.path = line.Positional(0);
  source.region_paths = common.region_paths;
  source.comparator = common.comparator;
  ServiceOptions service;
  service.shows_data = !hides_data;
  ListenAddress address;
  Status status = ListenAddress::Parse(listen, &address);
  if (status.ok() && !token_file.empty()) status = ReadToken(token_file, &service.token);
  if (status.ok() && !address.is_loopback && service.token.empty())
    status = Status::InvalidArgument("other machines can reach " + listen + "; give a token with --token-file");
  if (status.ok()) status = Serve(source, address, service);
  return status.ok() ? kSound : CannotLook(status);
}

}  // namespace braiddb::tools
