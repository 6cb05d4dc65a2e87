// braiddb serve and braiddb top: what they show of a database, to whom, and how the programs end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/metrics_text_parser.h"
#include "tests/support/raw_connection.h"
#include "tools/serve/service.h"
#include "tools/serve/source.h"
#include "tools/serve/top_view.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tools::HttpRequest;
using tools::HttpResponse;
using tools::Service;
using tools::Source;

class ServeTest : public DbOpenTest {
 protected:
  // 300 numbered keys, and a family with one key.
  void Make() {
    Options options = TinyOptions(2);
    options.info_log = nullptr;  // so that there is a file LOG
    auto db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    std::unique_ptr<ColumnFamilyHandle> family;
    ASSERT_OK(db->CreateColumnFamily({}, "other \xff", &family));
    for (int i = 0; i < 300; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 100)));
    ASSERT_OK(db->Put({}, std::string("\0<b>\xff", 5), std::string(5000, '\x01')));
    ASSERT_OK(db->Put({}, family.get(), "there", "1"));
    family.reset();
    ASSERT_OK(db->Close());
  }
  // What Make has made, open for writing.
  struct Primary {
    std::unique_ptr<DB> db;
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    ~Primary() { handles.clear(); }
  };
  void OpenPrimary(Primary* primary) {
    const Options options = TinyOptions(2);
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(options)},
                                                       {"other \xff", {}}};
    ASSERT_OK(DB::Open(options, path_, families, &primary->handles, &primary->db));
  }
  std::unique_ptr<Source> OpenSource() {
    tools::SourceOptions options;
    options.path = path_;
    options.secondary_path = directory_.File("secondary");
    std::unique_ptr<Source> source;
    EXPECT_OK(Source::Open(options, &source));
    return source;
  }
  static HttpResponse Ask(const Service& service, const std::string& target, const std::string& headers = "Host: localhost\r\n") {
    HttpRequest request;
    EXPECT_EQ(tools::ParseHttpRequest("GET " + target + " HTTP/1.1\r\n" + headers + "\r\n", &request), 200) << target;
    return service.Handle(request);
  }
  static json AskJson(const Service& service, const std::string& target) {
    const HttpResponse response = Ask(service, target);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    EXPECT_EQ(response.content_type, "application/json; charset=utf-8");
    return json::parse(response.body);
  }
};

TEST_F(ServeTest, ShowsAClosedDatabaseAndChangesNothing) {
  Make();
  std::map<std::string, std::string> before;
  for (const auto& file : ListFiles(path_)) before[file] = ReadFileOrDie(path_ + "/" + file);
  {
    const auto source = OpenSource();
    ASSERT_NE(source, nullptr);
    EXPECT_FALSE(source->is_secondary());
    const Service service(source.get(), {});
    const json info = AskJson(service, "/api/info.json");
    EXPECT_EQ(info["path"], path_);
    EXPECT_EQ(info["mode"], "read-only");
    EXPECT_EQ(info["families"], json({"default", "other %FF"}));
    const json metrics = AskJson(service, "/api/metrics.json");
    EXPECT_GT(metrics["time"], 1e9);
    double entries = 0;
    for (const json& sample : metrics["metrics"]["braiddb_entries"]["samples"]) entries += sample["value"].get<double>();
    EXPECT_EQ(entries, 302);
    EXPECT_GT(AskJson(service, "/api/segments.json")["segments"].size(), 0u);
    EXPECT_GT(AskJson(service, "/api/log.json")["lines"].size(), 0u);
    EXPECT_TRUE(Ask(service, "/").body.starts_with("<!doctype html>"));
    EXPECT_EQ(Ask(service, "/nothing").status, 404);
    EXPECT_EQ(ParseMetricsText(Ask(service, "/metrics").body, MetricsFormat::kPrometheus).error, "");
    const HttpResponse open_metrics =
        Ask(service, "/metrics", "Host: localhost\r\nAccept: application/openmetrics-text;q=1,*/*\r\n");
    EXPECT_EQ(open_metrics.content_type, kOpenMetricsContentType);
    EXPECT_EQ(ParseMetricsText(open_metrics.body, MetricsFormat::kOpenMetrics).error, "");
  }
  for (const auto& [file, content] : before) EXPECT_TRUE(ReadFileOrDie(path_ + "/" + file) == content) << file;
  EXPECT_EQ(ListFiles(path_).size(), before.size());
}

TEST_F(ServeTest, DeadEntriesAreCounted) {
  Make();
  {
    Primary primary;
    ASSERT_NO_FATAL_FAILURE(OpenPrimary(&primary));
    for (int i = 0; i < 200; ++i) ASSERT_OK(primary.db->Put({}, NumberedKey(i), "2"));
    ASSERT_OK(primary.db->CompactRange({}, nullptr, nullptr));
  }
  const auto counted = [this](bool counts) {
    tools::SourceOptions options;
    options.path = path_;
    options.counts_dead = counts;
    std::unique_ptr<Source> source;
    EXPECT_OK(Source::Open(options, &source));
    uint64_t dead = 0;
    for (bool is_known = false; !is_known;) {
      is_known = true;
      dead = 0;
      for (const SegmentFigures& segment : source->db()->GetMetrics().segments) {
        is_known = is_known && (segment.is_dead_known || !counts);
        dead += segment.dead;
      }
    }
    return dead;
  };
  EXPECT_EQ(counted(false), 0u);
  EXPECT_GT(counted(true), 0u);
}

TEST_F(ServeTest, KeysAreBrowsed) {
  Make();
  const auto source = OpenSource();
  ASSERT_NE(source, nullptr);
  const Service service(source.get(), {});
  const json first = AskJson(service, "/api/keys.json?limit=1");
  ASSERT_EQ(first["keys"].size(), 1u);
  EXPECT_EQ(first["keys"][0]["key"], "%00<b>%FF");
  EXPECT_EQ(first["keys"][0]["key_hex"], "003c623eff");
  EXPECT_EQ(first["keys"][0]["value_bytes"], 5000);
  EXPECT_EQ(first["keys"][0]["is_cut"], true);
  EXPECT_LE(first["keys"][0]["value"].get<std::string>().size(), 3 * 256u);
  EXPECT_EQ(first["is_end"], false);

  // All keys, some at a time, each once.
  std::vector<std::string> all;
  std::string query = "/api/keys.json?limit=77&form=hex";
  std::string from;
  for (bool is_end = false; !is_end;) {
    const json page = AskJson(service, query + (all.empty() ? "" : "&after=1&from=" + from));
    for (const json& key : page["keys"]) all.push_back(from = key["key_hex"]);
    is_end = page["is_end"];
  }
  EXPECT_EQ(all.size(), 301u);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 301u);

  const json ranges = AskJson(service, "/api/ranges.json")["families"];
  EXPECT_EQ(ranges[0]["first"], "%00<b>%FF");
  EXPECT_EQ(ranges[0]["last"], NumberedKey(299));
  EXPECT_EQ(ranges[1], json({{"name", "other %FF"}, {"first", "there"}, {"last", "there"}, {"is_known", true}}));

  const std::string prefix = NumberedKey(7);
  EXPECT_EQ(AskJson(service, "/api/keys.json?prefix=" + prefix)["keys"][0]["key"], prefix);
  EXPECT_EQ(AskJson(service, "/api/keys.json?from=!&prefix=" + prefix)["keys"][0]["key"], prefix);
  EXPECT_EQ(AskJson(service, "/api/keys.json?prefix=nothing")["keys"].size(), 0u);
  EXPECT_EQ(AskJson(service, "/api/keys.json?family=other+%25FF")["keys"][0]["key"], "there");
  EXPECT_EQ(AskJson(service, "/api/keys.json?limit=9999999")["keys"].size(), 200u);
  EXPECT_EQ(Ask(service, "/api/keys.json?family=none").status, 404);
  for (const char* bad : {"limit=0", "limit=-1", "limit=x", "form=hex&prefix=0", "form=hex&from=zz", "form=HEX", "form=base64"})
    EXPECT_EQ(Ask(service, std::string("/api/keys.json?") + bad).status, 400) << bad;
}

TEST_F(ServeTest, AccessIsRefused) {
  Make();
  const auto source = OpenSource();
  ASSERT_NE(source, nullptr);
  const Service open(source.get(), {});
  for (const char* host : {"localhost", "LocalHost:9180", "127.0.0.1:1", "127.0.0.2:80", "[::1]", "[::1]:80"})
    EXPECT_EQ(Ask(open, "/metrics", std::string("Host: ") + host + "\r\n").status, 200) << host;
  for (const char* host : {"example.com", "localhost.example.com:80", "127.0.0.1.example.com", "127.1", "128.0.0.1", "[::2]:80"})
    EXPECT_EQ(Ask(open, "/metrics", std::string("Host: ") + host + "\r\n").status, 421) << host;

  tools::ServiceOptions options;
  options.token = "0123456789abcdef";
  options.shows_data = false;
  const Service closed(source.get(), options);
  EXPECT_EQ(Ask(closed, "/", "Host: db.example.com\r\n").status, 200) << "the page has no data";
  for (const char* path : {"/metrics", "/api/metrics.json", "/api/keys.json", "/api/log.json", "/api/info.json",
                           "/api/segments.json", "/api/ranges.json", "/x"}) {
    EXPECT_EQ(Ask(closed, path).status, 401) << path;
    for (const char* token :
         {"Bearer ", "Bearer 0123456789abcdee", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "0123456789abcdef"})
      EXPECT_EQ(Ask(closed, path, std::string("Host: a\r\nAuthorization: ") + token + "\r\n").status, 401) << path << token;
  }
  const std::string right = "Host: db.example.com\r\nAuthorization: Bearer 0123456789abcdef\r\n";
  EXPECT_EQ(Ask(closed, "/metrics", right).status, 200);
  EXPECT_EQ(Ask(closed, "/metrics", "Host: a\r\nAuthorization: bearer 0123456789abcdef\r\n").status, 200);
  EXPECT_EQ(Ask(closed, "/api/keys.json", right).status, 403) << "--no-data";
  EXPECT_EQ(Ask(closed, "/api/ranges.json", right).status, 403) << "--no-data";
}

TEST_F(ServeTest, AnOpenDatabaseIsFollowed) {
  Make();
  Primary primary;
  ASSERT_NO_FATAL_FAILURE(OpenPrimary(&primary));
  tools::SourceOptions options;
  options.path = path_;
  options.secondary_path = directory_.File("secondary");
  options.catch_up_interval = std::chrono::milliseconds(1);
  std::unique_ptr<Source> source;
  ASSERT_OK(Source::Open(options, &source));
  EXPECT_TRUE(source->is_secondary());
  const Service service(source.get(), {});
  EXPECT_EQ(AskJson(service, "/api/info.json")["mode"], "secondary");
  ASSERT_OK(primary.db->Put({}, "zzz new", "1"));
  while (AskJson(service, "/api/keys.json?prefix=zzz")["keys"].empty()) {
  }
  EXPECT_OK(source->catch_up_status());
}

TEST_F(ServeTest, ATemporaryCopyIsRemoved) {
  Make();
  Primary primary;
  ASSERT_NO_FATAL_FAILURE(OpenPrimary(&primary));
  const std::string temporary = directory_.File("temporary");
  fs::create_directory(temporary);
  ASSERT_EQ(setenv("TMPDIR", temporary.c_str(), 1), 0);
  tools::SourceOptions options;
  options.path = path_;
  std::unique_ptr<Source> source;
  ASSERT_OK(Source::Open(options, &source));
  EXPECT_FALSE(fs::is_empty(temporary));
  source.reset();
  EXPECT_TRUE(fs::is_empty(temporary));
  unsetenv("TMPDIR");
}

TEST_F(ServeTest, TopRendersRates) {
  auto db = OpenOrFail(TinyOptions(1), path_);
  ASSERT_NE(db, nullptr);
  tools::TopView view;
  const std::chrono::steady_clock::time_point begin{};
  const std::string first = view.Render("title", db->GetMetrics(), begin);
  EXPECT_TRUE(first.starts_with("title\n\nwrites/s -  ")) << first;
  for (int i = 0; i < 50; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "1"));
  const std::string second = view.Render("title", db->GetMetrics(), begin + std::chrono::seconds(2));
  EXPECT_NE(second.find("writes/s 25 "), std::string::npos) << second;
  for (const char* part : {"back-pressure: none\n", "\ndefault ", "\nregion ", "\nDRAM ", "damage not seen"})
    EXPECT_NE(second.find(part), std::string::npos) << part << " is not in\n" << second;
}

class ServeProgramTest : public ServeTest {
 protected:
  struct Result {
    int exit_code;
    std::string out;
  };
  static Result Run(const std::string& arguments) {
    Result result;
    std::FILE* const pipe = popen((std::string(BRAIDDB_TOOL) + " " + arguments + " 2>&1").c_str(), "r");
    std::array<char, 4096> buffer;
    while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) result.out.append(buffer.data(), bytes);
    const int status = pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
};

TEST_F(ServeProgramTest, ServesUntilASignal) {
  Make();
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    execl(BRAIDDB_TOOL, "braiddb", "serve", "--listen", "127.0.0.1:0", path_.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  std::string line;
  for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line.push_back(c);
  const size_t at = line.find("http://127.0.0.1:");
  ASSERT_NE(at, std::string::npos) << line;
  const std::string address = line.substr(at + 7, line.size() - at - 8);
  const std::string metrics = AskRaw(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(metrics.find("braiddb_entries{family=\"default\",level=\"memtable\"}"), std::string::npos) << metrics;
  EXPECT_TRUE(AskRaw(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  close(out[0]);
}

TEST_F(ServeProgramTest, WrongArgumentsAreRefused) {
  EXPECT_EQ(Run("serve --listen 127.0.0.1:0 " + path_).exit_code, 2);
  Make();
  const Result open = Run("serve --listen 0.0.0.0:0 " + path_);
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.out.find("--token-file"), std::string::npos) << open.out;
  WriteFileOrDie(directory_.File("token"), "short\n");
  EXPECT_EQ(Run("serve --listen 0.0.0.0:0 --token-file " + directory_.File("token") + " " + path_).exit_code, 2);
  EXPECT_EQ(Run("serve --listen example.com:80 " + path_).exit_code, 2);
  EXPECT_EQ(Run("top --interval 0 " + path_).exit_code, 2);
  EXPECT_EQ(Run("top --once " + directory_.File("none")).exit_code, 2);
}

TEST_F(ServeProgramTest, TopPrintsOnce) {
  Make();
  const Result text = Run("top --once " + path_);
  EXPECT_EQ(text.exit_code, 0) << text.out;
  EXPECT_EQ(text.out.find('\033'), std::string::npos) << "not a terminal";
  EXPECT_NE(text.out.find("entries 302\n"), std::string::npos) << text.out;
  const Result as_json = Run("top --once --json " + path_);
  EXPECT_EQ(as_json.exit_code, 0);
  EXPECT_TRUE(json::parse(as_json.out)["metrics"].contains("braiddb_entries")) << as_json.out;
  const Result head = Run("top --interval 0.1 " + path_ + " | head -1");
  EXPECT_TRUE(head.out.starts_with("braiddb top  ")) << head.out;
}

}  // namespace
}  // namespace braiddb::test
