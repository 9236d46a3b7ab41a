#include "calls.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace emulator {

namespace {

struct Calls {
  std::map<std::string, int64_t> counts;
  ~Calls() {
    const char* path = std::getenv("TOKAMAK_EMULATOR_CALLS");
    if (path == nullptr) return;
    std::ofstream out(path);
    out << "{";
    for (const auto& [name, count] : counts)
      out << (&name == &counts.begin()->first ? "" : ", ") << "\"" << name << "\": " << count;
    out << "}\n";
  }
};

}  // namespace

void count_call(const char* name) {
  static Calls calls;
  static std::mutex mutex;  // a thread takes pinned memory beside the others
  const std::lock_guard lock(mutex);
  ++calls.counts[name];
}

}  // namespace emulator
