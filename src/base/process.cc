#include "base/process.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

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

}  // namespace

int64_t resident_bytes() { return proc_kilobytes("/proc/self/status", "VmRSS:"); }
int64_t peak_resident_bytes() { return proc_kilobytes("/proc/self/status", "VmHWM:"); }
int64_t available_memory_bytes() { return proc_kilobytes("/proc/meminfo", "MemAvailable:"); }

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace tokamak
