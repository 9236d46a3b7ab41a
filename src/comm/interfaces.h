// Chooses on which addresses of this host rank 0 listens: on those alone by which the other ranks reach it.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

// Numeric addresses of this host: those that other hosts may reach, then the loopback's.
std::vector<std::string> local_addresses();

bool is_loopback(const std::string& address);  // `address` is numeric

// The addresses on which rank 0 listens if the others connect to `name`: those of this host that the name resolves to.
// Empty means every interface, in two cases. The name may resolve to no address of this host, such as the name of a
// Kubernetes service. Or it resolves only to the loopback, as 127.0.1.1 in /etc/hosts does, and other hosts know
// another address. `one_host`: all ranks are here, so the loopback is enough.
std::vector<std::string> addresses_to_listen_on(const std::string& name, bool one_host);

// Returns equal texts in two processes that can reach each other's loopback.
std::string network_of_process();

}  // namespace tokamak
