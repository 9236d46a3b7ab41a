// Device time by operation, copy and collective: calls, seconds, FLOPs, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tokamak {

struct ProfileEntry {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

using Profile = std::map<std::string, ProfileEntry>;  // by Call::title()

}  // namespace tokamak
