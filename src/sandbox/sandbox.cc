#include "sandbox/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <future>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/secret.h"
#include "base/strings.h"
#include "sandbox/confined_process.h"
#include "sandbox/driver.h"
#include "sandbox/syscall_filter.h"

namespace tokamak {

namespace {

using Outcome = ProgramVerdict::Outcome;

constexpr double kStartTime = 60;       // seconds that bwrap and the interpreter may take on a busy machine
constexpr size_t kLongestError = 1000;  // characters, of at most 4 bytes

constexpr const char* kHint =
    "generated programs need bubblewrap 0.8 and python3 (Debian: apt-get install bubblewrap python3), and a system that "
    "lets users make namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, or a container's "
    "options";

// Raises what description() says of the interpreter.
constexpr const char* kDescribe = R"(
import sys
try:
    import numpy
    numpy = "with numpy " + numpy.__version__
except Exception:
    numpy = "without numpy"
raise RuntimeError("Python %d.%d.%d, %s" % (*sys.version_info[:3], numpy))
)";

std::string find_bwrap() {
  const char* path = std::getenv("PATH");
  for (const std::string& directory : split(path == nullptr ? "" : path, ':')) {
    const std::string file = directory + "/bwrap";
    if (starts_with(directory, "/") && ::access(file.c_str(), X_OK) == 0) return file;
  }
  fail(Kind::kConfig, "generated programs run in bubblewrap, and PATH has no bwrap", kHint);
}

// The words that start the driver. It is process 1 of its namespace, so no process without the filter is in its sight.
std::vector<std::string> confined_driver(const std::string& bwrap, const SandboxOptions& options) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view text) {
    for (const std::string& word : split(text, ' ')) words.push_back(word);
  };
  // The kernel neither counts root's threads nor protects /proc/sys from root without capabilities.
  if (::geteuid() == 0) add("/usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --");
  words.push_back(bwrap);
  add("--unshare-all --unshare-user --disable-userns --uid 65534 --gid 65534 --cap-drop ALL --seccomp 3");
  add("--as-pid-1 --die-with-parent --new-session --hostname sandbox");
  add("--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64");
  add("--ro-bind-try /etc/alternatives /etc/alternatives");  // Debian's numpy finds its BLAS there
  add(str("--proc /proc --dev /dev --size ", options.directory_bytes, " --tmpfs /tmp --chdir /tmp"));
  add("--remount-ro /dev --remount-ro /");
  // The order of a set of strings is the same in each run, so verdicts are too.
  add("--setenv PATH /usr/local/bin:/usr/bin --setenv PYTHONHASHSEED 0 --setenv OMP_NUM_THREADS 1");
  add("-- python3 -s -c");
  words.emplace_back(kDriver);
  return words;
}

}  // namespace

Sandbox::Sandbox(const SandboxOptions& options) : options_(options), filter_(syscall_filter()) {
  const std::string bwrap = find_bwrap();
  command_ = confined_driver(bwrap, options);
  ConfinedProcess version({bwrap, "--version"}, "", "");
  while (version.read_more(now_seconds() + kStartTime)) {
  }
  const auto works = [&](bool expectation, const ProgramVerdict& verdict) {
    if (!expectation) fail(Kind::kDevice, str("a known program has a wrong verdict: ", verdict.error));
  };
  try {
    const ProgramVerdict right = judge("pass", kStartTime), wrong = judge(kDescribe, kStartTime);
    const std::string raised = "RuntimeError: ";
    works(right.outcome == Outcome::kPassed, right);
    works(wrong.outcome == Outcome::kFailed && starts_with(wrong.error, raised), wrong);
    description_ = str(printable(trim(version.output())), ", ", wrong.error.substr(raised.size()));
  } catch (const Error& error) {
    fail(Kind::kConfig, str("generated programs cannot be executed: ", error.what()), kHint);
  }
}

ProgramVerdict Sandbox::judge(const std::string& program, double wall_time) const {
  const std::string nonce = random_word();
  const auto processor_time = static_cast<int64_t>(std::ceil(2 * wall_time));
  const std::string limits = str(options_.memory_bytes, " ", options_.file_bytes, " ", processor_time);
  ConfinedProcess process(command_, str(nonce, " ", limits, "\n", program), filter_);
  const double start = now_seconds();
  while (process.output().size() < kReady.size() && process.read_more(start + kStartTime)) {
  }
  if (!starts_with(process.output(), kReady)) {
    const int code = process.end();
    fail(Kind::kDevice,
         str("the sandbox does not start, exit code ", code, ": ", printable(trim(process.errors()), 500)));
  }
  const double deadline = now_seconds() + wall_time;
  while (process.output().size() == kReady.size() && process.read_more(deadline)) {
  }
  // The driver writes a verdict in one piece, so what has arrived is all of it.
  const std::string said = process.output().substr(kReady.size());
  const bool timed_out = said.empty() && !process.has_ended();
  const int code = process.end();
  if (said == nonce) return {.outcome = Outcome::kPassed};
  if (timed_out) return {.outcome = Outcome::kTimedOut, .error = str("not done after ", wall_time, " s")};
  if (said == kNoMemory) return {.outcome = Outcome::kOutOfMemory, .error = said};
  if (!said.empty()) return {.outcome = Outcome::kFailed, .error = printable(said, kLongestError)};
  const std::string end = code > 128 ? str("signal ", code - 128) : str("exit code ", code);
  return {.outcome = Outcome::kFailed, .error = "no verdict, " + end};
}

std::vector<ProgramVerdict> Sandbox::run_all(std::span<const std::string> programs, int workers) const {
  std::vector<ProgramVerdict> verdicts(programs.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < programs.size(); i = next++) verdicts[i] = run(programs[i]);
    } catch (...) {
      next = programs.size();  // the others stop, too
      throw;
    }
  };
  std::vector<std::future<void>> threads;
  for (int i = 0; i < std::max(workers, 1); ++i) threads.push_back(std::async(std::launch::async, work));
  for (std::future<void>& thread : threads) thread.get();
  return verdicts;
}

}  // namespace tokamak
