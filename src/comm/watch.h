// Ends the ranks of a run together. A thread listens on the control connections, which all lead to rank 0. If a rank
// ends without a disconnect message, or requests the end of all, every process ends at once, computing or waiting. The
// thread exits the process, and a checkpoint being written is left unfinished, as after a crash. The same connections
// carry the messages of a watchdog (resilience/).
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous.h"

namespace tokamak {

class Watch {
 public:
  // Receives messages of other ranks. Its methods run on the watch's thread, and must not block.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void received(int from, const std::string& bytes) = 0;
    // The host of `rank` is silent. Returns whether the client ends the run itself.
    virtual bool lost(int rank) = 0;
  };

  Watch(int rank, ControlPeers peers);
  ~Watch() { leave(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void leave();  // collective: sends a disconnect message, and returns when every rank has

  // Ends this and every other process of the run. From any thread.
  [[noreturn]] void end_all(int exit_code);

  // Called before another rank's end ends this process, on the rank that reports for the run: rank 0, or any other once
  // rank 0 is gone. Runs on the watch's thread, within three seconds. `why` is printable. Setting an empty one waits
  // for a call in progress.
  using LastWords = std::function<void(int exit_code, const std::string& why)>;
  void set_last_words(LastWords last_words);

  void attach(Client* client);  // nullptr: none; waits for a call in progress to the previous client

  // Rank 0 sends to all others, another rank to rank 0. Never blocks for long; drops bytes that a peer does not accept.
  void send(const std::string& bytes);

  // Sets the silence after which a host is given up. A watchdog with a shorter limit than the default calls it.
  void give_up_after(double seconds);

  std::string name(int rank) const { return rank_name(hosts_, rank); }  // "rank 3 (on n2)"
  const std::string& host(int rank) const { return hosts_[rank]; }
  std::string present() const;  // names of ranks that have not disconnected

  static std::string rank_name(const std::vector<std::string>& hosts, int rank);

 private:
  enum class Word : int32_t { kDisconnect = 1, kEnd = 2, kMessage = 3 };
  struct Header {
    Word word;
    int32_t value;  // kEnd: the exit code; kMessage: bytes that follow
  };
  struct Peer {
    Socket socket;
    std::mutex sending;      // keeps frames of two threads apart
    bool takes_all = true;   // guarded by `sending`: false after a frame was cut short
    bool connected = false;  // guarded by `state_`
  };

  void send_frame(Peer& peer, Word word, int32_t value, const std::string& bytes = {});
  void listen();
  bool receive(int from);  // false: the peer has disconnected
  void end_because_gone(int rank, int error);
  [[noreturn]] void end_because(int exit_code, const std::string& why, bool speaks);

  const int rank_;
  std::vector<Peer> peers_;
  const std::vector<std::string> hosts_;
  mutable std::mutex state_;
  std::mutex calling_;
  Client* client_ = nullptr;  // guarded by `calling_`
  std::mutex ending_;
  LastWords last_words_;  // guarded by `ending_`
  std::thread thread_;
};

}  // namespace tokamak
