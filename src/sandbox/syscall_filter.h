// The system calls that a confined program may make, as a seccomp filter. It refuses processes, sockets, namespaces,
// memory that no limit counts, and large parts of the kernel that no exercise needs. bwrap drops all capabilities, so
// the kernel refuses calls that need one, and most of them are not listed.
#pragma once

#include <string>

namespace tokamak {

// The bytes of an array of sock_filter, which bwrap --seccomp reads.
std::string syscall_filter();

}  // namespace tokamak
