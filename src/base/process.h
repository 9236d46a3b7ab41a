// This process and machine: memory in use, host name, identity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

int64_t resident_bytes();       // resident set (VmRSS)
int64_t peak_resident_bytes();  // the largest resident set so far (VmHWM)

// Memory of the machine or, if less, of the control group of a batch job or container.
int64_t total_memory_bytes();
int64_t available_memory_bytes();  // free or reclaimable

// Names the limit (a control group, or `ulimit -v`) that leaves this process less memory than the machine has
// available, and the bytes left; "" if there is none.
std::string tightest_memory_limit();
std::string host_name();
std::string system_name();  // "Linux 6.1.0 x86_64"

// This process's command line, quoted for a shell; "" if unknown.
std::string command_line();

double process_age();                            // seconds since this process was started, to a hundredth; 0 if unknown
std::optional<double> process_age(int64_t pid);  // of another process; nullopt if it does not exist

// Real paths of the loaded shared libraries, in order: shows which of several copies is in use.
std::vector<std::string> loaded_libraries();

// Opens /dev/null for each closed standard stream (cron, daemons, `2>&-`). Otherwise the next opened file gets the
// stream's number, and output is written into it. Called first in main.
void open_standard_files();

// "node7.20260131T123456Z.4711": one process of one machine at one time, fit for file names, with `place` as prefix.
std::string process_name(const std::string& place = host_name());

}  // namespace tokamak
