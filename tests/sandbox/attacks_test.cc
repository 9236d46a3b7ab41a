// Programs that try to escape, to stay, to exhaust the machine or to pass for right ones. A program that asserts its
// own failure passes if the attack is repelled.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <future>
#include <set>

#include "base/file.h"
#include "base/process.h"
#include "sandbox/judging.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

const std::string kTools = R"(
import builtins, ctypes, errno, os, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def fails(act, *arguments, error=OSError):
    try:
        act(*arguments)
    except error as caught:
        return caught
    raise AssertionError('%s%s worked' % (act, arguments))
)";

struct Attack {
  std::string program;
  std::set<Outcome> outcomes = {Outcome::kPassed};
  std::string error = "";  // part of it
};

// Runs the attacks in parallel with right programs, which they must not hurt, then checks that nothing has changed.
void repel(const Sandbox& sandbox, const std::vector<Attack>& attacks) {
  const int64_t descriptors = open_descriptors();
  std::vector<std::string> programs;
  for (const Attack& attack : attacks) programs.push_back(kTools + attack.program);
  const std::vector<std::string> right(attacks.size(), "assert sum([1, 2]) == 3");
  auto of_right = std::async(std::launch::async, [&] { return patient().run_all(right, 1); });
  const std::vector<ProgramVerdict> verdicts = sandbox.run_all(programs, 3);
  for (size_t i = 0; i < attacks.size(); ++i) {
    INFO(attacks[i].program << "\n" << verdicts[i].error);
    CHECK(attacks[i].outcomes.count(verdicts[i].outcome) == 1);
    CHECK_THAT(verdicts[i].error, Catch::Contains(attacks[i].error));
  }
  for (const ProgramVerdict& verdict : of_right.get()) CHECK(verdict.error == "");
  CHECK(nothing_is_left());
  CHECK(open_descriptors() == descriptors);
  CHECK(patient().run("raise ValueError").error == "ValueError");
}

Descriptor listener(int family, int type, const sockaddr* address, socklen_t size) {
  Descriptor socket(::socket(family, type | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), address, size) == 0);
  if (type == SOCK_STREAM) REQUIRE(::listen(socket.get(), 4) == 0);
  return socket;
}

}  // namespace

TEST_CASE("a program reads none of the user's files") {
  const TempDir own;
  write_text_atomically(own.file("canary"), "secret", Kind::kBug);
  std::vector<Attack> attacks = {{"fails(open, '" + own.file("canary") + "')"}};
  for (const std::string path : {"/etc/passwd", "/etc/shadow", "/proc/1/root/etc/passwd", "/proc/kcore"}) {
    attacks.push_back({"fails(open, '" + path + "')"});
  }
  for (const std::string folder : {"/home", "/root", "/run", "/var", "/sys", "/mnt", "/opt"}) {
    attacks.push_back({"fails(os.listdir, '" + folder + "')"});
  }
  repel(patient(), attacks);
}

TEST_CASE("a program changes no file of ours") {
  const TempDir own;
  write_text_atomically(own.file("canary"), "intact", Kind::kBug);
  std::vector<Attack> attacks = {
      {"os.makedirs('" + own.path() + "')\nopen('" + own.file("canary") + "', 'w').write('x')"},
      {"import shutil\nfails(open, '/usr/bin/python3', 'r+b')\nfails(os.mkdir, '/home')"},
      {"fails(open, '/proc/sys/kernel/core_pattern', 'w')"},
      {"fails(open, '/proc/sys/user/max_user_namespaces', 'w')"}};
  for (const std::string folder : {"/", "/usr/", "/usr/bin/", "/usr/local/lib/", "/dev/", "/dev/shm/", "/etc/"}) {
    attacks.push_back({"fails(open, '" + folder + "planted', 'w')"});
  }
  repel(patient(), attacks);
  CHECK(read_text(own.file("canary"), Kind::kBug) == "intact");
  CHECK(list_directory(own.path(), Kind::kBug) == std::vector<std::string>{"canary"});
}

TEST_CASE("a program reaches no socket of ours") {
  sockaddr_in inet{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const Descriptor tcp = listener(AF_INET, SOCK_STREAM, reinterpret_cast<sockaddr*>(&inet), sizeof(inet));
  socklen_t size = sizeof(inet);
  REQUIRE(::getsockname(tcp.get(), reinterpret_cast<sockaddr*>(&inet), &size) == 0);
  const std::string port = str(ntohs(inet.sin_port));
  const Descriptor udp = listener(AF_INET, SOCK_DGRAM, reinterpret_cast<sockaddr*>(&inet), sizeof(inet));
  const std::string name = "tokamak-" + str(::getpid());
  sockaddr_un unix_address{.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(unix_address.sun_path + 1, name.size());
  const Descriptor abstract = listener(AF_UNIX, SOCK_DGRAM, reinterpret_cast<sockaddr*>(&unix_address),
                                       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
  repel(patient(), {{"fails(socket.create_connection, ('127.0.0.1', " + port + "))"},
                    {"fails(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))"},
                    {"fails(lambda: socket.socket(socket.AF_UNIX))"},
                    {"fails(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))"},
                    // A pair may be made. One of its ends must not reach others.
                    {"fails(socket.socketpair(type=socket.SOCK_DGRAM)[0].connect, '\\0" + name + "')"}});
  for (const Descriptor* socket : {&tcp, &udp, &abstract}) {
    pollfd waiting{socket->get(), POLLIN, 0};
    CHECK(::poll(&waiting, 1, 0) == 0);
  }
}

TEST_CASE("a program makes no process, and few threads") {
  repel(patient(), {{"assert libc.fork() == -1"},
                    {"assert libc.vfork() == -1"},
                    {"fails(os.posix_spawn, '/usr/bin/true', ['true'], {})"},
                    {"import _posixsubprocess\nassert libc.system(b'true') != 0"},
                    {"import multiprocessing\nfails(multiprocessing.Process(target=print).start, error=Exception)"},
                    {R"(
threading.stack_size(32768)
started = []
def start():
    for _ in range(10000):
        started.append(threading.Thread(target=time.sleep, args=(1000,), daemon=True))
        started[-1].start()
fails(start, error=RuntimeError)
assert 8 <= len(started) <= 64, len(started))"}});
}

TEST_CASE("a program that does not stop is stopped") {
  const Sandbox hasty({.wall_time = 0.4});
  const std::set<Outcome> timed_out = {Outcome::kTimedOut};
  repel(hasty,
        {{"while True: pass", timed_out, "not done after 0.4 s"},
         {"time.sleep(1000)", timed_out},
         {"for s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
          "while True: signal.setitimer(signal.ITIMER_REAL, 0)",
          timed_out},
         {"while True:\n    try:\n        while True: pass\n    except BaseException: pass", timed_out},
         {"os.closerange(0, 1024)\nwhile True: pass", timed_out},
         {"threading.Thread(target=time.sleep, args=(1000,)).start()\ntime.sleep(1000)", timed_out},
         {"libc.pause()", timed_out},
         {"os.execv('/usr/bin/sleep', ['sleep', '1000'])", timed_out},
         {"class Hanging(Exception):\n    def __str__(self): time.sleep(1000)\nraise Hanging", timed_out}});
}

TEST_CASE("a program's memory is bounded, and does not become ours") {
  const int64_t before = peak_resident_bytes();
  const std::set<Outcome> no_memory = {Outcome::kOutOfMemory};
  repel(patient(), {{"bytearray(8 << 30)", no_memory, "MemoryError"},
                    {"grows = []\nwhile True: grows.append(bytearray(1 << 20))", no_memory},
                    {"x = 'x' * (1 << 20)\nwhile True: print(x)", no_memory},
                    {"raise ValueError('x' * (100 << 20))", {Outcome::kFailed}, "ValueError: xxx"},
                    {"x = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, x), os.write(2, x)"}});
  CHECK(peak_resident_bytes() - before < int64_t{64} << 20);
}

TEST_CASE("a program's files are bounded") {
  const std::string write_until_refused = R"(
def size_of(name):
    size = 0
    with open(name, 'wb', buffering=0) as file:
        try:
            while size < 1 << 30: size += file.write(bytes(1 << 20))
        except OSError as error:
            return size, error.errno
    return size, 0
)";
  repel(patient(), {{write_until_refused + "assert size_of('/tmp/x') == (16 << 20, errno.EFBIG)"},
                    {write_until_refused +
                     "sizes = [size_of('/tmp/%d' % i) for i in range(8)]\n"
                     "assert sum(size for size, _ in sizes) <= 64 << 20\nassert sizes[-1] == (0, errno.ENOSPC), sizes"},
                    {"fails(os.truncate, '/tmp/x', 1 << 40, error=TypeError)\n"
                     "fails(os.ftruncate, os.open('/tmp/x', os.O_RDWR | os.O_CREAT), 1 << 40)"}});
}

TEST_CASE("a program's signals reach nothing but itself") {
  repel(patient(), {{"assert os.getppid() == 0\nassert libc.kill(-1, 9) == -1"},
                    {"assert libc.kill(" + str(::getpid()) + ", 9) == -1"},
                    {"assert libc.kill(0, 9) in (0, -1)"},
                    {"signal.raise_signal(signal.SIGSTOP)", {Outcome::kPassed, Outcome::kTimedOut}}});
}

TEST_CASE("only execution to the end passes") {
  const std::set<Outcome> failed = {Outcome::kFailed};
  repel(patient(),
        {{"os._exit(0)", failed, "no verdict, exit code 0"},
         {"libc.exit(0)", failed, "no verdict, exit code 0"},
         {"libc._exit(0)", failed, "no verdict, exit code 0"},
         {"sys.exit(0)", failed, "SystemExit: 0"},
         {"sys.exit()", failed, "SystemExit"},
         {"raise SystemExit", failed, "SystemExit"},
         {"raise KeyboardInterrupt", failed, "KeyboardInterrupt"},
         {"print('passed'); print('passed', file=sys.stderr); assert False", failed, "AssertionError"},
         {"for fd in range(64):\n    try: os.write(fd, b'passed\\n')\n    except OSError: pass", failed, "passed"},
         {"for fd in range(64):\n    try: os.write(fd, b'ready\\n')\n    except OSError: pass\nos._exit(0)", failed,
          "ready"},
         {"os.closerange(0, 1024)\nos._exit(0)", failed, "no verdict"},
         {"os.closerange(0, 1024)", failed, "no verdict"},
         {"os.execv('/usr/bin/true', ['true'])", failed, "no verdict, exit code 0"},
         {"builtins.exec = os.write = os._exit = print\nos.dup2(2, 1)\nassert False", failed, "AssertionError"},
         {"sys.excepthook = print\nraise ValueError(1)", failed, "ValueError: 1"},
         {"builtins.BaseException = int\nassert False", failed, ""},
         {"class Odd(Exception):\n    def __str__(self): os._exit(0)\nraise Odd", failed, "no verdict"},
         {"class Odd(Exception):\n    def __str__(self): return 5\nraise Odd", failed, "no verdict, exit code 1"},
         {"import atexit\natexit.register(print)\nos.kill = None\nlibc.raise_ = None\nlibc.abort()", failed,
          "no verdict, signal"}});
}

TEST_CASE("a crash fails its program alone") {
  const std::set<Outcome> failed = {Outcome::kFailed};
  repel(patient(), {{"ctypes.string_at(0)", failed, "no verdict, signal 11"},
                    {"def f(): f()\nf()", failed, "RecursionError"},
                    {"x, y = [], []\nfor _ in range(10**5): x, y = [x], [y]\nx == y", failed, "RecursionError"}});
  // How these end depends on the interpreter: without stack, memory or time.
  const Sandbox hasty({.wall_time = 1});
  const std::set<Outcome> bad = {Outcome::kFailed, Outcome::kOutOfMemory, Outcome::kTimedOut};
  repel(hasty, {{"sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", bad},
                {"sys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(self): return repr(self)\nrepr(A())", bad}});
}

TEST_CASE("threads and files that a program leaves open end with it") {
  repel(patient(), {{"threading.Thread(target=time.sleep, args=(1000,)).start()"},
                    {"threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"},
                    {"def spin():\n    while True: pass\nthreading.Thread(target=spin).start()"},
                    {"files = [open('/tmp/%d' % i, 'w') for i in range(30)]"},
                    {"import atexit\natexit.register(time.sleep, 1000)"},
                    {"class Late:\n    def __del__(self): time.sleep(1000)\nlate = Late()\nglobals()['self'] = late"}});
}
