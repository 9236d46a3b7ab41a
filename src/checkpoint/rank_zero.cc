#include "checkpoint/rank_zero.h"

#include "base/error.h"
#include "dist/together.h"

namespace tokamak {

std::string ask_rank_zero(Comm& comm, const std::function<std::string()>& ask) {
  // "=answer", or "!code \0 what \0 hint".
  std::string message;
  if (comm.rank() == 0) {
    try {
      message = str("=", ask());
    } catch (const Error& error) {
      message = str("!", error.exit_code(), '\0', error.what(), '\0', error.hint());
    } catch (const std::exception& error) {
      message = str("!", static_cast<int>(Kind::kBug), '\0', error.what(), '\0');
    }
  }
  comm.broadcast(message, 0);
  if (message.at(0) == '=') return message.substr(1);
  const std::vector<std::string> fields = split(message.substr(1), '\0');
  throw SharedError(static_cast<Kind>(std::stoi(fields.at(0))), fields.at(1), fields.at(2));
}

}  // namespace tokamak
