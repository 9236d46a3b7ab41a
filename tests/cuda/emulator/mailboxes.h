// Messages between processes that share this memory, which is zero at first. A message goes piece by piece through the
// mailbox of its sender and receiver; those of two ranks go in their order.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace emulator {

template <size_t kRanks>
struct Mailboxes {
  struct Mailbox {
    std::atomic<bool> full;
    size_t left;  // bytes of the message from this piece on
    std::byte piece[1 << 16];
  };
  Mailbox of[kRanks][kRanks];  // by sender and receiver

  bool has_mail(int receiver) const {
    return std::any_of(std::begin(of), std::end(of), [&](const auto& sender) { return sender[receiver].full.load(); });
  }

  // Returns when `rank` has sent and received all, or false if a message has another size than its receiver expects. A
  // Message has `memory`, `bytes` and `peer`.
  template <class Message>
  bool deliver(int rank, std::vector<Message> sent, std::vector<Message> expected) {
    while (!sent.empty() || !expected.empty()) {
      for (std::vector<Message>* messages : {&sent, &expected}) {
        const bool sends = messages == &sent;
        std::array<bool, kRanks> busy{};  // with an earlier message
        for (Message& message : *messages) {
          Mailbox& box = sends ? of[rank][message.peer] : of[message.peer][rank];
          if (std::exchange(busy[static_cast<size_t>(message.peer)], true) || box.full == sends) continue;
          if (sends) box.left = message.bytes;
          if (box.left != message.bytes) return false;
          const size_t piece = std::min(sizeof(box.piece), message.bytes);
          std::memcpy(sends ? box.piece : message.memory, sends ? message.memory : box.piece, piece);
          box.full = sends;
          message.memory += piece;
          message.bytes -= piece;
        }
        std::erase_if(*messages, [](const Message& message) { return message.bytes == 0; });
      }
      sched_yield();
    }
    return true;
  }
};

}  // namespace emulator
