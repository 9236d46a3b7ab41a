// What this process and machine are: memory in use, host name, build identity.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

int64_t resident_bytes();          // resident set now (VmRSS)
int64_t peak_resident_bytes();     // its largest so far (VmHWM)
int64_t available_memory_bytes();  // what the machine could still give (MemAvailable)
std::string host_name();

}  // namespace tokamak
