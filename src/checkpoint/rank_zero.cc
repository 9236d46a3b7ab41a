#include "checkpoint/rank_zero.h"

#include "comm/collective_error.h"

namespace tokamak {

std::string run_on_rank_zero(Comm& comm, const std::function<std::string()>& ask) {
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

std::vector<int64_t> steps_on_rank_zero(Comm& comm, const std::function<std::vector<int64_t>()>& ask) {
  const std::string answer = run_on_rank_zero(comm, [&] {
    std::string list;
    for (const int64_t step : ask()) list += str(step, ' ');
    return list;
  });
  std::vector<int64_t> steps;
  for (const std::string& word : split(answer, ' ')) {
    if (!word.empty()) steps.push_back(std::stoll(word));
  }
  return steps;
}

}  // namespace tokamak
