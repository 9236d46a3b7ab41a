// Strangers at a port cost limited time, memory and descriptors, and a rank can join in spite of them.
#include "comm/guests.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.h"

using namespace tokamak;

namespace {

class Port {
 public:
  explicit Port(double patience = 5) : guests_(listeners(), rules(patience)) {}

  Socket connect() const {
    std::string why;
    Socket socket = connect_to("127.0.0.1", port_, in_seconds(5), why);
    REQUIRE(socket);
    return socket;
  }

  std::vector<Socket> connect_silent(int count) const {
    std::vector<Socket> strangers;
    for (int i = 0; i < count; ++i) strangers.push_back(connect());
    return strangers;
  }

  Socket connect_rank() const {
    Socket rank = connect();
    const std::string hello = frame_of({kProtocolVersion, kControlKind, "2", "1", "4242", "n1", "run", ""});
    REQUIRE(rank.send(hello.data(), std::ssize(hello), in_seconds(5)));
    return rank;
  }

  // Serves until the condition holds, or for 20 s. Returns the seconds that this took.
  template <class Condition>
  double serve_until(const Condition& holds) {
    const Stopwatch watch;
    while (!holds() && watch.seconds() < 20) {
      guests_.serve();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return watch.seconds();
  }

  size_t heard() const { return guests_.sockets().size() - 1; }  // the listener is one of the sockets
  const std::string& welcomed() const { return welcomed_; }

 private:
  std::vector<Socket> listeners() {
    std::vector<Socket> all = listen_on({}, 0);
    port_ = all.front().port();
    return all;
  }
  GuestRules rules(double patience) {
    return {.self = "rank 0",
            .job = "run",
            .objection = [](const Hello&) { return std::string(); },
            .welcome = [this](const Hello& hello, Socket) { welcomed_ = hello.who(); },
            .patience = patience};
  }

  int port_ = 0;
  std::string welcomed_;
  Guests guests_;
};

}  // namespace

TEST_CASE("who says too little in time is sent away") {
  Port port(0.3);
  const std::vector<Socket> silent = port.connect_silent(3);
  const Socket slow = port.connect();
  REQUIRE(slow.send("TOKAMAK1", 8, in_seconds(5)));
  port.serve_until([&] { return port.heard() == 4; });
  const double seconds = port.serve_until([&] { return port.heard() == 0; });
  CHECK(seconds > 0.1);
  CHECK(seconds < 3);
  CHECK(port.heard() == 0);
}

TEST_CASE("however many come, 128 of them at most are heard at once, and a rank comes in") {
  Port port;
  const std::vector<Socket> strangers = port.connect_silent(300);
  port.serve_until([&] { return port.heard() == 128; });
  CHECK(port.heard() == 128);
  const Socket rank = port.connect_rank();
  port.serve_until([&] { return !port.welcomed().empty(); });
  CHECK(port.welcomed() == "rank 1 on n1");
  CHECK(port.heard() <= 128);
}

TEST_CASE("strangers who hold all descriptors of this process do not keep a rank out") {
  Port port;
  const std::vector<Socket> strangers = port.connect_silent(6);
  const Socket rank = port.connect_rank();
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int lowest = ::dup(0);
  ::close(lowest);
  const rlimit two_more = {.rlim_cur = static_cast<rlim_t>(lowest) + 2, .rlim_max = limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &two_more) == 0);
  CHECK_NOTHROW(port.serve_until([&] { return !port.welcomed().empty(); }));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  CHECK(port.welcomed() == "rank 1 on n1");
}
