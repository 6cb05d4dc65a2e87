// The HTTP server of `braiddb serve`: its parser, and its behaviour towards clients that are wrong, slow or many.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/db_test_util.h"
#include "tests/support/raw_connection.h"
#include "tools/serve/http_request.h"
#include "tools/serve/http_server.h"

namespace braiddb::tools {
namespace {

using test::RawConnection;

constexpr const char* kHost = "\r\nHost: localhost\r\n\r\n";

int Parse(const std::string& text) {
  HttpRequest request;
  return ParseHttpRequest(text, &request);
}
int ParseTarget(const std::string& target) { return Parse("GET " + target + " HTTP/1.1" + kHost); }

TEST(HttpRequestTest, PartsAreDecoded) {
  HttpRequest request;
  ASSERT_EQ(
      ParseHttpRequest("HEAD /api/%6beys.json?prefix=a+b%26&x&limit=5 HTTP/1.1\r\nHOST: localhost \r\nX:\r\n\r\nmore", &request),
      200);
  EXPECT_TRUE(request.is_head);
  EXPECT_EQ(request.path, "/api/keys.json");
  EXPECT_EQ(*request.FindQuery("prefix"), "a b&");
  EXPECT_EQ(*request.FindQuery("x"), "");
  EXPECT_EQ(request.FindQuery("y"), nullptr);
  EXPECT_EQ(*request.FindHeader("host"), "localhost");
  EXPECT_EQ(*request.FindHeader("x"), "");
}

TEST(HttpRequestTest, EachPartMayComeLater) {
  const std::string whole = std::string("GET /metrics HTTP/1.1") + kHost;
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(Parse(whole.substr(0, i)), kIncomplete) << i;
  EXPECT_EQ(Parse(whole), 200);
}

TEST(HttpRequestTest, BadRequestsAreRefused) {
  struct Case {
    int status;
    std::string text;
  };
  const Case cases[] = {
      {400, std::string("GET  / HTTP/1.1") + kHost},
      {400, std::string("GET/HTTP/1.1") + kHost},
      {400, std::string("G(T / HTTP/1.1") + kHost},
      {400, std::string("GET / HTTP/1.1\n") + kHost},
      {400, std::string("GET / http/1.1") + kHost},
      {400, "\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"},
      {413, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n"},
      {505, std::string("GET / HTTP/2.0") + kHost},
      {200, "GET / HTTP/1.0\r\n\r\n"},
      {200, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
  };
  for (const Case& bad : cases) EXPECT_EQ(Parse(bad.text), bad.status) << bad.text;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get"})
    EXPECT_EQ(Parse(std::string(method) + " / HTTP/1.1" + kHost), 405) << method;
}

TEST(HttpRequestTest, PathsStayInside) {
  for (const char* target : {"/../etc/passwd", "/%2e%2e/etc/passwd", "/a/..%2f..", "/..\\windows", "/%5c", "/%00", "/a%0d%0ab",
                             "//../x", "etc", "http://elsewhere/", "*", "/%", "/%2", "/%zz", "/a#b", "/\x01", "/\xc3\xa4"})
    EXPECT_EQ(ParseTarget(target), 400) << target;
  EXPECT_EQ(ParseTarget("/?q=.."), 200);
}

TEST(HttpRequestTest, SizesAreBounded) {
  EXPECT_EQ(ParseTarget("/" + std::string(kMaxTargetBytes, 'a')), 414);
  EXPECT_EQ(ParseTarget("/" + std::string(kMaxTargetBytes - 1, 'a')), 200);
  std::string fields = "/?";
  for (size_t i = 0; i < kMaxQueryFields; ++i) fields += "a=b&";
  EXPECT_EQ(ParseTarget(fields), 200);
  EXPECT_EQ(ParseTarget(fields + "c"), 400);
  std::string headers = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (size_t i = 1; i < kMaxHeaders; ++i) headers += "A: b\r\n";
  EXPECT_EQ(Parse(headers + "\r\n"), 200);
  EXPECT_EQ(Parse(headers + "A: b\r\n\r\n"), 431);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(kMaxHeadBytes, 'a') + "\r\n\r\n"), 431);
  EXPECT_EQ(Parse(std::string(kMaxHeadBytes, 'a')), 431);
  EXPECT_EQ(Parse(std::string(kMaxHeadBytes - 1, 'a')), kIncomplete);
}

TEST(ListenAddressTest, FormsAndLoopback) {
  ListenAddress address;
  for (const char* text : {"127.0.0.1:9180", "localhost:0", "[::1]:1", "127.1.2.3:80"}) {
    ASSERT_OK(ListenAddress::Parse(text, &address));
    EXPECT_TRUE(address.is_loopback) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:80", "[::ffff:10.0.0.1]:80"}) {
    ASSERT_OK(ListenAddress::Parse(text, &address));
    EXPECT_FALSE(address.is_loopback) << text;
  }
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "example.com:80", "::1:80", ":80", "[]:1"})
    EXPECT_TRUE(ListenAddress::Parse(text, &address).IsInvalidArgument()) << text;
  ASSERT_OK(ListenAddress::Parse("[::1]:9180", &address));
  EXPECT_EQ(address.ToString(), "[::1]:9180");
}

class HttpServerTest : public testing::Test {
 protected:
  void Start(const HttpLimits& limits, std::string body = "answer") {
    ListenAddress address;
    ASSERT_OK(ListenAddress::Parse("127.0.0.1:0", &address));
    const auto handle = [this, body = std::move(body)](const HttpRequest& request) {
      ++handled_;
      return HttpResponse{request.path == "/" ? 200 : 404, "text/plain", body};
    };
    ASSERT_OK(HttpServer::Listen(address, limits, handle, &server_));
    thread_ = std::thread([this] { EXPECT_OK(server_->Run()); });
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->Stop();
    thread_.join();
  }
  std::string Ask(const std::string& request) const { return test::AskRaw(server_->address(), request); }
  static HttpLimits Patient() {
    HttpLimits limits;
    limits.request_time = limits.response_time = limits.linger_time = std::chrono::minutes(10);
    return limits;
  }

  std::atomic<int> handled_{0};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

const std::string kGet = std::string("GET / HTTP/1.1") + kHost;

TEST_F(HttpServerTest, AnswersGetAndHead) {
  Start(Patient());
  const std::string get = Ask(kGet);
  EXPECT_TRUE(get.starts_with("HTTP/1.1 200 OK\r\n")) << get;
  EXPECT_TRUE(get.ends_with("\r\n\r\nanswer")) << get;
  for (const char* header : {"Content-Length: 6\r\n", "Connection: close\r\n", "X-Content-Type-Options: nosniff\r\n",
                             "Content-Security-Policy: default-src 'none';", "Cache-Control: no-store\r\n"})
    EXPECT_NE(get.find(header), std::string::npos) << header;
  const std::string head = Ask(std::string("HEAD / HTTP/1.1") + kHost);
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  EXPECT_NE(head.find("Content-Length: 6\r\n"), std::string::npos);
  EXPECT_TRUE(Ask(std::string("GET /x HTTP/1.1") + kHost).starts_with("HTTP/1.1 404 "));
}

TEST_F(HttpServerTest, RefusesBadRequestsAndGoesOn) {
  Start(Patient());
  EXPECT_TRUE(Ask(std::string("POST / HTTP/1.1") + kHost).starts_with("HTTP/1.1 405 "));
  EXPECT_NE(Ask(std::string("DELETE / HTTP/1.1") + kHost).find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_TRUE(Ask(std::string("GET /../../etc/passwd HTTP/1.1") + kHost).starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Ask(std::string(kMaxHeadBytes, 'x')).starts_with("HTTP/1.1 431 "));
  // More than a client may send: the response arrives all the same.
  EXPECT_TRUE(Ask("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(100'000, 'a')).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(Ask(std::string("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 15)).starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(handled_, 0);
  EXPECT_TRUE(Ask(kGet).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, RequestsMayComeByteByByte) {
  Start(Patient());
  const RawConnection connection(server_->address());
  for (const char byte : kGet) connection.Send(std::string(1, byte));
  EXPECT_TRUE(connection.Receive().ends_with("answer"));
}

TEST_F(HttpServerTest, ASecondRequestOfAConnectionIsIgnored) {
  Start(Patient());
  const std::string answer = Ask(kGet + kGet);
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  EXPECT_EQ(handled_, 1);
}

// More clients than there are places hang. The server takes the places of the oldest.
TEST_F(HttpServerTest, ClientsThatHangStopNobody) {
  HttpLimits limits = Patient();
  limits.clients = 4;
  Start(limits);
  std::vector<std::unique_ptr<RawConnection>> hanging;
  for (int i = 0; i < 12; ++i) {
    hanging.push_back(std::make_unique<RawConnection>(server_->address()));
    hanging.back()->Send(i % 2 == 0 ? "" : "GET / HT");
    EXPECT_TRUE(Ask(kGet).ends_with("answer")) << i;
  }
  EXPECT_EQ(hanging.front()->Receive(), "") << "the oldest has lost its place";
}

// A client that never reads a large response holds one place, until its time is over.
TEST_F(HttpServerTest, ClientsThatDoNotReadStopNobody) {
  Start(Patient(), std::string(32 << 20, 'x'));
  const RawConnection deaf(server_->address());
  deaf.Send(kGet);
  while (handled_ == 0) std::this_thread::yield();
  EXPECT_TRUE(Ask(std::string("HEAD / HTTP/1.1") + kHost).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ARequestHasItsTime) {
  HttpLimits limits = Patient();
  limits.request_time = std::chrono::milliseconds(20);
  Start(limits);
  const RawConnection slow(server_->address());
  slow.Send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(slow.Receive(), "");
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, AnAddressInUseIsAnError) {
  Start(Patient());
  ListenAddress address;
  ASSERT_OK(ListenAddress::Parse(server_->address(), &address));
  std::unique_ptr<HttpServer> second;
  EXPECT_TRUE(HttpServer::Listen(
                  address, {}, [](const HttpRequest&) { return HttpResponse(); }, &second)
                  .IsIOError());
}

}  // namespace
}  // namespace braiddb::tools
