// What this process and machine are: memory in use, host name, build identity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

int64_t resident_bytes();       // resident set now (VmRSS)
int64_t peak_resident_bytes();  // its largest so far (VmHWM)

// Memory of the machine or, where that is less, of the control group that a batch job or container runs in.
int64_t total_memory_bytes();
int64_t available_memory_bytes();  // what could still be taken

// The limit that leaves this process less memory than the machine has available, and what it leaves: a control group,
// or `ulimit -v`. "": the machine itself is the limit.
std::string tightest_memory_limit();
std::string host_name();
std::string system_name();  // "Linux 6.1.0 x86_64"

// How this process was called, with quotes where a shell needs them; "" where the system does not say.
std::string command_line();

double process_age();  // seconds since this process was started, to a hundredth; 0 where the system does not say
std::optional<double> process_age(int64_t pid);  // of another one; nothing where none lives by that number

// Real paths of the shared libraries that this process has loaded, in order: where the same library lies in several
// places, this is the one in use.
std::vector<std::string> loaded_libraries();

// Opens /dev/null in the place of standard input, output and error that are closed (cron, daemons, `2>&-`): else the next
// file that is opened takes the number, and what is printed lands in it. First of all in main.
void open_standard_files();

// "node7.20260131T123456Z.4711": one process of one machine at one time, fit for file names. `place` stands in front.
std::string process_name(const std::string& place = host_name());

}  // namespace tokamak
