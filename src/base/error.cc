#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace tokamak {

void fail(Kind kind, std::string what, std::string hint) { throw Error(kind, std::move(what), std::move(hint)); }

void fail_errno(Kind kind, std::string what, std::string hint) {
  const int reason = errno;
  throw Error(kind, str(what, ": ", std::strerror(reason)), std::move(hint));
}

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  throw Error(Kind::kBug, str(file, ":", line, ": check failed: ", expression, message.empty() ? "" : ": ", message),
              "this is a bug of tokamak's; please report it with the config and this line");
}

}  // namespace tokamak
