// Sees to it that the ranks of a run end together. A thread listens on the control connections, all of which meet at
// rank 0: a rank that ends without a disconnect message, or asks for the end of all, ends every process at once,
// whether it computes or waits. The thread exits the process; a checkpoint being written is then an unfinished one, as
// after a crash.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "comm/socket.h"

namespace tokamak {

class Watch {
 public:
  // `control` and `hosts` as in Peers.
  Watch(int rank, std::vector<Socket> control, std::vector<std::string> hosts);
  ~Watch();  // collective: sends a disconnect message, and returns when every rank has
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  [[noreturn]] void abort(int exit_code) const;  // every process of the run ends with it

  std::string name(int rank) const;  // "rank 3 (on n2)"

 private:
  struct Message;
  void listen() const;

  const int rank_;
  const std::vector<Socket> control_;
  const std::vector<std::string> hosts_;
  std::thread thread_;
};

}  // namespace tokamak
