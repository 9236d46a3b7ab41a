// Sees to it that the ranks of a run end together. A thread listens on the control connections, all of which meet at
// rank 0: a rank that ends without a disconnect message, or asks for the end of all, ends every process at once,
// whether it computes or waits. The thread exits the process; a checkpoint being written is then an unfinished one, as
// after a crash. The same connections carry the messages of a watchdog (resilience/).
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
  // Takes the messages of other ranks, on the watch's thread: it must not wait for anything there.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void received(int from, const std::string& bytes) = 0;
    // The host of `rank` has fallen silent. Whether the client ends the run itself.
    virtual bool lost(int rank) = 0;
  };

  Watch(int rank, ControlPeers peers);
  ~Watch() { leave(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void leave();  // collective: sends a disconnect message, and returns when every rank has

  // Every process of the run ends with it. From any thread.
  [[noreturn]] void end_all(int exit_code);

  // What the rank that speaks for the run does before another rank's end ends this process: rank 0, or any other when
  // rank 0 is gone. On the watch's thread, within three seconds. `why` is fit to be printed. Empty: nothing; then none are
  // under way any more.
  using LastWords = std::function<void(int exit_code, const std::string& why)>;
  void set_last_words(LastWords last_words);

  void attach(Client* client);  // nullptr: none; then no call to the one before is under way any more

  // Rank 0 sends to all others, another rank to rank 0. Never waits for long: what a peer does not take is lost.
  void send(const std::string& bytes);

  // Hosts that are silent for so long are given up; less than the default where a watchdog is stricter.
  void give_up_after(double seconds);

  std::string name(int rank) const { return rank_name(hosts_, rank); }  // "rank 3 (on n2)"
  const std::string& host(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  std::string present() const;  // names of those that have not disconnected

  static std::string rank_name(const std::vector<std::string>& hosts, int rank);

 private:
  enum class Word : int32_t { kDisconnect = 1, kEnd = 2, kMessage = 3 };
  struct Header {
    Word word;
    int32_t value;  // kEnd: the exit code; kMessage: bytes that follow
  };
  struct Peer {
    Socket socket;
    std::mutex sending;      // a frame is not torn by another thread's
    bool takes_all = true;   // guarded by `sending`: false after a frame was cut short
    bool connected = false;  // guarded by `state_`
  };

  void send_frame(Peer& peer, Word word, int32_t value, const std::string& bytes = {});
  void listen();
  bool receive(int from);  // false: it has disconnected
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
