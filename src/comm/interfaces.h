// On which of this host's addresses a port is to be open: no more than the ranks need.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

// Addresses of this host, as numbers: those that other hosts may reach, then the loopback's.
std::vector<std::string> local_addresses();

bool is_loopback(const std::string& address);  // a number

// Where rank 0 listens if the others go to `name`: the addresses of this host that the name stands for. Returns none,
// which means every interface, in two cases. The name may stand for no address of this host: a service's, before its
// translation. Or it stands for the loopback alone, without saying so: /etc/hosts may give a host's own name 127.0.1.1,
// and other hosts know another address. `one_host`: all ranks are here, so the loopback will do.
std::vector<std::string> addresses_to_listen_on(const std::string& name, bool one_host);

// What two processes have in common if each can reach the other's loopback.
std::string network_of_process();

}  // namespace tokamak
