#include "comm/rank_zero.h"

#include "comm/collective_error.h"

namespace tokamak {

std::string text_of_rank_zero(Comm& comm, const std::function<std::string()>& ask) {
  std::string message;  // "=answer", or "!failure"
  if (comm.rank() == 0) {
    std::string answer;
    const std::string failure = failure_of([&] { answer = ask(); });
    message = failure.empty() ? "=" + answer : "!" + failure;
  }
  comm.broadcast(message, 0);
  if (message.at(0) == '!') throw shared_error(message.substr(1));
  return message.substr(1);
}

void do_on_rank_zero(Comm& comm, const std::function<void()>& act) {
  text_of_rank_zero(comm, [&] {
    act();
    return std::string();
  });
}

}  // namespace tokamak
