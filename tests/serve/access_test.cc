#include "serve/access.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "support/temp_dir.h"

using namespace tokamak;

namespace {

int status_of(const std::optional<RequestError>& refused) { return refused ? refused->status : 200; }

}  // namespace

TEST_CASE("a host is this server by its loopback names and those that are allowed, with its port or none") {
  const AccessRules rules({.hosts = {"gpu7.example", "proxy.example:443", "[fe80::1]"}, .port = 8000, .keys = {}});
  for (const char* host : {"localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]", "[::1]:8000", "gpu7.example:8000",
                           "proxy.example:443", "[fe80::1]:8000"}) {
    INFO(host);
    CHECK(status_of(rules.refuse_host(host, "")) == 200);
    CHECK(status_of(rules.refuse_host("localhost", std::string("https://") + host)) == 200);
  }
  for (const char* host : {"", "evil.example", "localhost:80", "localhost:8000:8000", "localhost.", "xlocalhost",
                           "localhost@evil.example", "proxy.example", "localhost/", "127.0.0.2"}) {
    INFO(host);
    CHECK(status_of(rules.refuse_host(host, "")) == 403);
    CHECK(status_of(rules.refuse_host("localhost", std::string("http://") + host)) == 403);
  }
  for (const char* origin : {"null", "localhost", "file://localhost", "javascript://localhost"}) {
    CHECK(status_of(rules.refuse_host("localhost", origin)) == 403);
  }
}

TEST_CASE("one of the keys must be given as Bearer; without keys none is needed") {
  const AccessRules rules({.hosts = {}, .port = 1, .keys = {"0123456789abcdef", "another key of many"}});
  CHECK(status_of(rules.refuse_key("Bearer 0123456789abcdef")) == 200);
  CHECK(status_of(rules.refuse_key("Bearer another key of many")) == 200);
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef ",
                            "bearer 0123456789abcdef", "0123456789abcdef"}) {
    INFO(wrong);
    CHECK(status_of(rules.refuse_key(wrong)) == 401);
  }
  CHECK(status_of(AccessRules({}).refuse_key("Bearer ")) == 200);
}

TEST_CASE("a file of keys has one a line, with a name or without; short ones are refused without being shown") {
  const TempDir directory;
  const auto write = [&](const char* text) {
    std::ofstream(directory.path() + "/keys") << text;
    return directory.path() + "/keys";
  };
  CHECK(read_keys(write("# ours\nalice: 0123456789abcdef\r\n\n  fedcba9876543210\n")) ==
        std::vector<std::string>{"0123456789abcdef", "fedcba9876543210"});
  CHECK_THROWS_WITH(read_keys(write("alice:0123456789abcde\n")),
                    Catch::Contains("key 1") && !Catch::Contains("0123456789abcde"));
  CHECK_THROWS_WITH(read_keys(write("# none\n")), Catch::Contains("has no key"));
}
