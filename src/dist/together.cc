#include "dist/together.h"

#include <algorithm>

namespace tokamak {

namespace {

// "code \0 what \0 hint"; empty where the rank succeeded.
std::string encode(const Error& error) { return str(error.exit_code(), '\0', error.what(), '\0', error.hint()); }

}  // namespace

void together(Comm& comm, const std::function<void()>& phase) {
  std::string failure;
  try {
    phase();
  } catch (const SharedError&) {
    throw;  // agreed upon already, inside
  } catch (const Error& error) {
    failure = encode(error);
  } catch (const std::exception& error) {
    failure = encode(Error(Kind::kBug, error.what()));
  }
  const std::vector<std::string> failures = comm.gather_all(failure);
  const auto first = std::find_if(failures.begin(), failures.end(), [](const std::string& f) { return !f.empty(); });
  if (first == failures.end()) return;
  const std::vector<std::string> fields = split(*first, '\0');
  const bool everywhere = std::all_of(failures.begin(), failures.end(), [&](const auto& f) { return f == *first; });
  const std::string rank = everywhere ? "" : str("rank ", first - failures.begin(), ": ");
  throw SharedError(static_cast<Kind>(std::stoi(fields.at(0))), rank + fields.at(1), fields.at(2));
}

}  // namespace tokamak
