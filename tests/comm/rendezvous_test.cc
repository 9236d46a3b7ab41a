// Ranks that meet, as threads of one process. Some ranks do not come, and some peers should not have come.
#include "comm/rendezvous.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "comm/hello.h"
#include "comm/interfaces.h"
#include "support/captured_log.h"

using namespace tokamak;
using Catch::Contains;

namespace {

int free_port() { return listen_on({}, 0).front().port(); }

RendezvousOptions options_of(int rank, int size, int port) {
  return {.rank = rank, .size = size, .addresses = {"127.0.0.1"}, .port = port, .job = "run", .timeout_seconds = 20};
}

// The outcome of each rank: "" if all have met.
std::vector<std::string> outcomes(const std::vector<RendezvousOptions>& ranks, std::vector<Peers>* met = nullptr) {
  std::vector<std::string> results(ranks.size());
  std::vector<Peers> peers(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        peers[i] = meet(ranks[i]);
      } catch (const Error& error) {
        results[i] = error.kind() == Kind::kComm ? error.what() : str("of another kind: ", error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (met != nullptr) *met = std::move(peers);
  return results;
}

bool send(const Socket& socket, const std::string& bytes) {
  return socket.send(bytes.data(), static_cast<int64_t>(bytes.size()), in_seconds(5));
}

void wait_until_it_listens(int port) {
  std::string why;
  while (!connect_to("127.0.0.1", port, in_seconds(1), why)) std::this_thread::yield();
}

}  // namespace

TEST_CASE("ranks that meet are connected each with each") {
  constexpr int kSize = 4;
  const int port = free_port();
  std::vector<RendezvousOptions> ranks;
  for (int rank = kSize - 1; rank >= 0; --rank) ranks.push_back(options_of(rank, kSize, port));
  std::vector<Peers> peers;
  for (const std::string& outcome : outcomes(ranks, &peers)) REQUIRE(outcome.empty());
  std::reverse(peers.begin(), peers.end());
  for (int a = 0; a < kSize; ++a) {
    for (const auto& lane : peers[a].data) CHECK_FALSE(lane[a]);
    CHECK_FALSE(peers[a].control.sockets[a]);
    for (int b = 0; b < kSize; ++b) {
      if (a == b) continue;
      for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
        const int said = 100 * lane + 10 * a + b;
        int heard = 0;
        REQUIRE(peers[a].data[lane][b].send(&said, sizeof(said), in_seconds(5)));
        REQUIRE(peers[b].data[lane][a].receive(&heard, sizeof(heard), in_seconds(5)));
        CHECK(heard == said);
      }
      CHECK(static_cast<bool>(peers[a].control.sockets[b]) == (a == 0 || b == 0));
    }
  }
}

TEST_CASE("a rank that does not come is named to all that have") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks = {options_of(0, 4, port), options_of(2, 4, port)};
  for (RendezvousOptions& m : ranks) m.timeout_seconds = 1;
  for (const std::string& outcome : outcomes(ranks)) {
    CHECK_THAT(outcome, Contains("ranks 1, 3 of 4") && Contains(str("127.0.0.1:", port)) && Contains("waited 1 s"));
  }
}

TEST_CASE("where rank 0 does not come, the address, the port and the reason are named") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks = {options_of(1, 2, port)};
  ranks[0].timeout_seconds = 0.5;
  CHECK_THAT(outcomes(ranks)[0], Contains("rank 1 of 2") && Contains(str("127.0.0.1:", port)) && Contains("refused"));
  ranks[0].addresses = {"no-such-host.invalid"};
  CHECK_THAT(outcomes(ranks)[0], Contains("cannot reach no-such-host.invalid"));
}

TEST_CASE("a second process of a rank is told so, and the others meet") {
  const int port = free_port();
  std::array<std::vector<Peers>, 4> peers;  // all stay until all have met
  std::array<std::string, 4> met;
  std::atomic<bool> refused = false;
  const auto come = [&](size_t i, int rank) {
    met[i] = outcomes({options_of(rank, 3, port)}, &peers[i])[0];
    if (!met[i].empty()) refused = true;
  };
  std::array threads = {std::thread(come, 0, 0), std::thread(come, 1, 1), std::thread(come, 2, 1)};
  while (!refused) std::this_thread::yield();  // the port is open for as long as rank 2 is missing
  come(3, 2);
  for (std::thread& thread : threads) thread.join();
  CHECK((met[0].empty() && met[3].empty()));
  CHECK(met[1].empty() != met[2].empty());
  CHECK_THAT(met[1] + met[2], Contains("is a second rank 1: the first is on "));
  const std::vector<Socket> first = listen_on({}, port);  // of a rank 0; a second rank 0 cannot have the port
  CHECK_THAT(outcomes({options_of(0, 3, port)})[0], Contains(str("cannot listen on port ", port)));
}

TEST_CASE("a rank that counts differently is told so, and named where it is missed") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks = {options_of(0, 3, port), options_of(1, 4, port), options_of(2, 3, port)};
  ranks[0].timeout_seconds = 1;
  const std::vector<std::string> met = outcomes(ranks);
  CHECK_THAT(met[1], Contains("as one of 4 ranks, rank 0 as one of 3"));
  for (const size_t i : {0, 2})
    CHECK_THAT(met[i], Contains("for rank 1 of 3; turned away: rank 1 on") && Contains("4 ranks"));
}

TEST_CASE("a rank of another job, and whoever else connects, is turned away, and the others meet") {
  const int port = free_port();
  std::vector<std::string> met;
  std::vector<Peers> zero, one;  // both ranks stay until both have met: the other would miss one that left
  std::thread rank_zero([&] { met = outcomes({options_of(0, 2, port)}, &zero); });
  wait_until_it_listens(port);  // connects and leaves without a word, so it is the first stranger
  std::string why;
  const Socket stranger = connect_to("127.0.0.1", port, in_seconds(5), why);
  REQUIRE(stranger);
  const std::string words = "GET / HTTP/1.0\r\n\r\n";
  CHECK(stranger.send(words.data(), static_cast<int64_t>(words.size()), in_seconds(5)));
  RendezvousOptions other = options_of(1, 2, port);
  other.job = "another run";
  CHECK_THAT(outcomes({other})[0], Contains("belongs to 'run'"));
  CHECK(outcomes({options_of(1, 2, port)}, &one)[0].empty());
  rank_zero.join();
  CHECK(met[0].empty());
}

TEST_CASE("a rank that leaves before all have come is an error of all") {
  const int port = free_port();
  std::vector<std::string> met;
  std::thread rank_zero([&] { met = outcomes({options_of(0, 3, port)}); });
  wait_until_it_listens(port);
  {
    std::string why;
    const Socket impatient = connect_to("127.0.0.1", port, in_seconds(5), why);
    REQUIRE(send(impatient, frame_of({kProtocolVersion, "control", "3", "1", "4242", "host", "run", ""})));
  }
  rank_zero.join();
  CHECK_THAT(met[0], Contains("rank 1 on host has left"));
}

TEST_CASE("a signal to all ranks ends every wait for one that does not come") {
  const int size = GENERATE(2, 4);  // a rank is missing: 0, or the last
  const int port = free_port();
  std::vector<RendezvousOptions> ranks;
  for (int rank = size == 2 ? 1 : 0; rank < (size == 2 ? 2 : 3); ++rank) ranks.push_back(options_of(rank, size, port));
  const Stopwatch watch;
  for (RendezvousOptions& one : ranks) {
    // Signals come one after the other: ranks without one yet see that a rank with one has left.
    one.interrupted = [&watch, at = 0.5 + 0.3 * one.rank] { return watch.seconds() > at; };
  }
  for (const std::string& outcome : outcomes(ranks)) {
    CHECK_THAT(outcome, Contains("of another kind") && Contains("stopped by a signal while it waited"));
  }
  CHECK(watch.seconds() < 10);  // of a limit of 20
}

TEST_CASE("strangers who are silent, slow, or speak of anything, cost the ranks nothing, and a signal is heeded") {
  const std::string secret = GENERATE("", "0123456789abcdef");
  const int port = free_port();
  std::vector<RendezvousOptions> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(options_of(rank, 3, port));
    ranks.back().secret = secret;
  }
  std::atomic<bool> stop = false;
  ranks[0].interrupted = [&] { return stop.load(); };
  std::vector<std::string> met;
  std::vector<Peers> zero, others;
  std::thread rank_zero([&] { met = outcomes({ranks[0]}, &zero); });
  wait_until_it_listens(port);
  std::string why;
  std::vector<Socket> strangers;
  const std::string half = frame_of({kProtocolVersion, "control", "3", "1", "4242", "host", "run", ""}).substr(0, 30);
  const bool speak = GENERATE(false, true);  // true: only the rank has said nothing when it comes
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connect_to("127.0.0.1", port, in_seconds(5), why));
    REQUIRE(strangers.back());
    if (speak) CHECK(send(strangers.back(), half));
  }
  const Socket slow = connect_to("127.0.0.1", port, in_seconds(5), why);  // its words are on their way
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(send(slow, frame_of({kProtocolVersion, "control", "3", "1", "4242", "host", "another run", ""})));
  FrameReader answer;
  while (answer.read(slow) == FrameReader::State::kMore) std::this_thread::yield();
  CHECK(answer.take().front() == "refused");
  const uint32_t huge = uint32_t{1} << 26;
  for (const std::string& words : {half, "TOKAMAK1" + std::string(reinterpret_cast<const char*>(&huge), 4),
                                   std::string(4096, '\0'), std::string("\x16\x03\x01\x02"), frame_of(Words(4000)),
                                   frame_of({kProtocolVersion, "control", "3", "x", "", "", "run"})}) {
    strangers.push_back(connect_to("127.0.0.1", port, in_seconds(5), why));
    CHECK(send(strangers.back(), words));
  }
  const Stopwatch watch;
  SECTION("the ranks meet") {
    for (const std::string& outcome : outcomes({ranks[1], ranks[2]}, &others)) CHECK(outcome.empty());
    rank_zero.join();
    CHECK(met[0].empty());
  }
  SECTION("a signal ends the wait") {
    stop = true;
    rank_zero.join();
    CHECK_THAT(met[0], Contains("stopped by a signal"));
  }
  CHECK(watch.seconds() < 4);  // one stranger alone used to take 5 s
}

TEST_CASE("ranks of other secrets are told so and turned away, and the others meet") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks;
  for (const int rank : {0, 1, 1, 1}) ranks.push_back(options_of(rank, 2, port));
  for (const size_t i : {0, 1}) ranks[i].secret = "the secret of all";
  ranks[2].secret = "another one's secret";
  std::vector<std::string> met;
  std::vector<Peers> zero, one;
  std::thread rank_zero([&] { met = outcomes({ranks[0]}, &zero); });
  CHECK_THAT(outcomes({ranks[2]})[0], Contains("rank 0 at") && Contains("has another TOKAMAK_SECRET"));
  CHECK_THAT(outcomes({ranks[3]})[0], Contains("has a TOKAMAK_SECRET, this rank has none"));
  CHECK(outcomes({ranks[1]}, &one)[0].empty());
  rank_zero.join();
  CHECK(met[0].empty());
}

TEST_CASE("the error of who waits names the rank with another secret, and its host") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks = {options_of(0, 2, port), options_of(1, 2, port)};
  ranks[0].timeout_seconds = 1;
  ranks[1].secret = "the secret of one";
  ranks[0].secret = GENERATE("", "the secret of all");
  const std::vector<std::string> met = outcomes(ranks);
  CHECK_THAT(met[0], Contains("waited 1 s") && Contains("turned away: rank 1 on ") && Contains("TOKAMAK_SECRET"));
  CHECK_THAT(met[1], Contains("TOKAMAK_SECRET"));
}

TEST_CASE("a wait that is long is said once, with whom it is for and what is in the way") {
  RendezvousOptions first = options_of(0, 3, free_port()), second = first;
  second.rank = 1;
  second.addresses = {"no-such-host.invalid"};
  for (RendezvousOptions* one : {&first, &second}) {
    one->timeout_seconds = 1;
    one->silent_seconds = 0.3;
    CapturedLog captured;
    outcomes({*one});
    const std::string said = captured.text();
    CHECK_THAT(said, Contains(one == &first ? "rank 0 of 3 waits for ranks 1, 2 of 3, 1 s at most"
                                            : "rank 1 of 3 waits for no-such-host.invalid:"));
    CHECK(said.find(" waits for ") == said.rfind(" waits for "));
  }
}

TEST_CASE("a false rank 0 that does not know the secret gets no rank") {
  const Socket listener = std::move(listen_on({}, 0).front());
  RendezvousOptions rank = options_of(1, 2, listener.port());
  rank.secret = "the secret of all";
  std::string outcome;
  std::thread joins([&] { outcome = outcomes({rank})[0]; });
  const Socket guest = accept_from(listener);
  FrameReader reader;
  while (reader.read(guest) == FrameReader::State::kMore) std::this_thread::yield();
  const Words hello = reader.take();
  CHECK(join(hello, " ").find(rank.secret) == std::string::npos);
  SECTION("it expects the rank without a proof") { CHECK(send(guest, frame_of({"expected", ""}))); }
  SECTION("it gives back what it has heard") {
    CHECK(send(guest, frame_of({"challenge", hello.back()})));
    while (reader.read(guest) == FrameReader::State::kMore) std::this_thread::yield();
    CHECK(send(guest, frame_of({"expected", reader.take().back()})));
  }
  joins.join();
  CHECK_THAT(outcome, Contains("does not know the TOKAMAK_SECRET"));
}

TEST_CASE("a proof that was overheard is good for one connection") {
  const int port = free_port();
  RendezvousOptions zero = options_of(0, 2, port);
  zero.secret = "the secret of all";
  zero.timeout_seconds = 1;
  std::vector<std::string> met;
  std::thread rank_zero([&] { met = outcomes({zero}); });
  wait_until_it_listens(port);
  const Hello hello = {.version = kProtocolVersion,
                       .kind = "control",
                       .size = 2,
                       .rank = 1,
                       .port = 4242,
                       .host = "n2",
                       .job = "run",
                       .random = "overheard"};
  std::string why;
  const Socket socket = connect_to("127.0.0.1", port, in_seconds(5), why);
  CHECK(send(socket,
             frame_of(hello.words()) + frame_of({"proof", proof_of(Role::kJoins, zero.secret, hello, "of before")})));
  rank_zero.join();
  CHECK_THAT(met[0], Contains("rank 1 on n2 (127.0.0.1) has another TOKAMAK_SECRET"));
}

TEST_CASE("a port is open on the addresses that its name stands for, and on no others") {
  CHECK(addresses_to_listen_on("127.0.0.1", false) == std::vector<std::string>{"127.0.0.1"});
  CHECK(addresses_to_listen_on("192.0.2.1", false).empty());  // an address of no interface: every interface
  CHECK(addresses_to_listen_on("no-such-host.invalid", false).empty());
  for (const std::string& address : addresses_to_listen_on("localhost", false)) CHECK(is_loopback(address));
  for (const std::string& address : local_addresses()) {
    CHECK(addresses_to_listen_on(address, false) == std::vector<std::string>{address});
  }
  const std::vector<Socket> listeners = listen_on({"127.0.0.2", "127.0.0.3"}, 0);
  REQUIRE(listeners.size() == 2);
  CHECK(listeners[0].port() == listeners[1].port());
  std::string why;
  CHECK(connect_to("127.0.0.3", listeners[0].port(), in_seconds(5), why));
  CHECK_FALSE(connect_to("127.0.0.1", listeners[0].port(), in_seconds(5), why));
}

TEST_CASE("a name or a reason of a peer cannot write to a terminal") {
  const int port = free_port();
  std::vector<RendezvousOptions> ranks = {options_of(0, 2, port)};
  ranks[0].timeout_seconds = 1;
  std::vector<std::string> met;
  std::thread rank_zero([&] { met = outcomes(ranks); });
  wait_until_it_listens(port);
  std::string why;
  const Socket socket = connect_to("127.0.0.1", port, in_seconds(5), why);
  const std::string host = "\x1b[2Jn2\n12:00:00 info done";
  CHECK(send(socket,
             frame_of({kProtocolVersion, "control", "9", "1", "4242", host + std::string(1000, 'x'), "run", ""})));
  rank_zero.join();
  CHECK_THAT(met[0], Contains("rank 1 on \\x1b[2Jn2\\n12:00:00 info done"));
  CHECK(met[0].size() < 300);
  CHECK(std::none_of(met[0].begin(), met[0].end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }));
}

TEST_CASE("a message larger than the system's buffers arrives whole, and a closed connection is said to be closed") {
  const Socket listener = std::move(listen_on({}, 0).front());
  std::string why;
  Socket sender = connect_to("localhost", listener.port(), in_seconds(5), why);
  REQUIRE(sender);
  const Socket receiver = accept_from(listener);
  std::string sent(static_cast<size_t>(50) << 20, 'x'), received(sent.size(), ' ');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
  std::thread thread([&] {
    sender.send(sent.data(), static_cast<int64_t>(sent.size()), kNever);
    sender = Socket();
  });
  CHECK(receiver.receive(received.data(), static_cast<int64_t>(received.size()), in_seconds(30)));
  CHECK(received == sent);
  thread.join();
  char more = 0;
  CHECK_FALSE(receiver.receive(&more, 1, in_seconds(30)));
  CHECK(errno == 0);
  CHECK(receiver.send(&more, 1, in_seconds(5)));  // the peer has closed, which this side does not know yet
  while (receiver.send(&more, 1, in_seconds(5))) std::this_thread::yield();
  CHECK((errno == EPIPE || errno == ECONNRESET));  // and the process did not end by SIGPIPE
}

TEST_CASE("a deadline ends a wait") {
  const Socket listener = std::move(listen_on({}, 0).front());
  std::string why;
  const Socket sender = connect_to("127.0.0.1", listener.port(), in_seconds(5), why);
  const Socket receiver = accept_from(listener);
  char byte = 0;
  CHECK_FALSE(receiver.receive(&byte, 1, in_seconds(0.05)));
  CHECK(errno == ETIMEDOUT);
  CHECK(wait_for_any({&receiver, &listener}, in_seconds(0.05)) == -1);
  CHECK(sender.send("x", 1, in_seconds(5)));
  CHECK(wait_for_any({&listener, &receiver}, in_seconds(5)) == 1);
}
