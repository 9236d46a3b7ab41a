#include "base/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"

namespace tokamak {

namespace {

// Value of "Key:   123 kB" in a /proc file, in bytes; 0 where the file or key is missing.
int64_t proc_kilobytes(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (std::string_view(line).substr(0, key.size()) != key) continue;
    int64_t kilobytes = 0;
    std::istringstream(line.substr(key.size())) >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

struct GroupMemory {
  std::string name;  // "/system.slice/job.scope"
  int64_t limit = 0;
  int64_t used = 0;

  int64_t left() const { return std::max(int64_t{0}, limit - used); }
};

bool read_number(const std::string& path, int64_t& value) {
  std::ifstream in(path);
  return static_cast<bool>(in >> value);  // false for "max", too
}

// Every limited control group above this process: version 2 (one hierarchy) and version 1 (the memory controller's).
std::vector<GroupMemory> memory_groups() {
  std::vector<GroupMemory> groups;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "0::/a/b" or "4:memory:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers.find("memory") == std::string::npos) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      GroupMemory group{.name = path.empty() ? "/" : path};
      const std::string base = root + path + "/memory.";
      if (read_number(base + (unified ? "max" : "limit_in_bytes"), group.limit) &&
          read_number(base + (unified ? "current" : "usage_in_bytes"), group.used)) {
        groups.push_back(group);
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return groups;
}

}  // namespace

int64_t resident_bytes() { return proc_kilobytes("/proc/self/status", "VmRSS:"); }
int64_t peak_resident_bytes() { return proc_kilobytes("/proc/self/status", "VmHWM:"); }

int64_t total_memory_bytes() {
  int64_t bytes = proc_kilobytes("/proc/meminfo", "MemTotal:");
  for (const GroupMemory& group : memory_groups()) bytes = std::min(bytes, group.limit);
  return bytes;
}

int64_t available_memory_bytes() {
  int64_t bytes = proc_kilobytes("/proc/meminfo", "MemAvailable:");
  for (const GroupMemory& group : memory_groups()) bytes = std::min(bytes, group.left());
  return bytes;
}

std::string tightest_memory_limit() {
  int64_t least = proc_kilobytes("/proc/meminfo", "MemAvailable:");
  std::string words;
  for (const GroupMemory& group : memory_groups()) {
    if (group.left() >= least) continue;
    least = group.left();
    words = str("the control group ", group.name, " of this process, limited to ", human_bytes(group.limit), ", has ",
                human_bytes(least), " left");
  }
  rlimit address_space{};
  if (::getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    const auto limit = static_cast<int64_t>(address_space.rlim_cur);
    const int64_t left = std::max(int64_t{0}, limit - proc_kilobytes("/proc/self/status", "VmSize:"));
    if (left < least) {
      words = str("RLIMIT_AS (ulimit -v) allows this process ", human_bytes(limit), " of addresses, of which ",
                  human_bytes(left), " are left");
    }
  }
  return words;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string system_name() {
  utsname names{};
  if (uname(&names) != 0) return "";
  return str(names.sysname, ' ', names.release, ' ', names.machine);
}

namespace {

// The fields of /proc/PID/stat, "pid (name) state ppid ...", from the state on. A name may contain anything.
std::istringstream process_fields(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text;
  std::getline(in, text);
  const size_t name_end = text.rfind(')');
  return std::istringstream(text.substr(name_end == std::string::npos ? text.size() : name_end + 1));
}

std::optional<double> age_of(std::istringstream fields) {
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  double ticks = 0;  // the 22nd field is the start, in ticks since boot
  timespec now{};
  if (!(fields >> ticks) || state == "Z" || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const double age = double(now.tv_sec) + 1e-9 * double(now.tv_nsec) - ticks / double(sysconf(_SC_CLK_TCK));
  return std::max(0.0, age);
}

}  // namespace

std::string command_line() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(shell_word(word));
  return join(words, " ");
}

double process_age() { return age_of(process_fields("self")).value_or(0); }
std::optional<double> process_age(int64_t pid) { return age_of(process_fields(std::to_string(pid))); }

std::vector<std::string> loaded_libraries() {
  std::set<std::string> paths;
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line);) {  // "from-to rwxp offset device inode   /path"
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(".so", path) != std::string::npos) paths.insert(line.substr(path));
  }
  return {paths.begin(), paths.end()};
}

void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is fd.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) return;
  }
}

std::string process_name(const std::string& place) {
  std::string text = str(place, ".", utc_timestamp(), ".", ::getpid());
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return !std::isalnum(c) && c != '.'; }, '_');
  return text;
}

}  // namespace tokamak
