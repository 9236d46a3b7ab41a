// Where the time of a step goes, by operation: calls, seconds and floating-point operations. Filled by Ops' public
// methods while a Profile is attached; costs nothing when none is.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tokamak {

class Profile {
 public:
  struct Entry {
    int64_t calls = 0;
    double seconds = 0;
    double flops = 0;
  };

  void add(const std::string& name, double seconds, double flops) {
    Entry& entry = entries_[name];
    ++entry.calls;
    entry.seconds += seconds;
    entry.flops += flops;
  }
  void clear() { entries_.clear(); }
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace tokamak
