#include "comm/collective_error.h"

#include <algorithm>

namespace tokamak {

namespace {

// "code \0 what \0 hint"
std::string encode(const Error& error) { return str(error.exit_code(), '\0', error.what(), '\0', error.hint()); }

}  // namespace

std::string failure_of(const std::function<void()>& phase) {
  try {
    phase();
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    return encode(error);
  } catch (const std::exception& error) {
    return encode(Error(Kind::kBug, error.what()));
  }
  return "";
}

SharedError shared_error(const std::string& failure, const std::string& where) {
  const std::vector<std::string> fields = split(failure, '\0');
  return SharedError(static_cast<Kind>(std::stoi(fields.at(0))), where + fields.at(1), fields.at(2));
}

void collectively(Comm& comm, const std::function<void()>& phase) {
  const std::vector<std::string> failures = comm.gather_all(failure_of(phase));
  const auto first = std::find_if(failures.begin(), failures.end(), [](const std::string& f) { return !f.empty(); });
  if (first == failures.end()) return;
  const bool everywhere = std::all_of(failures.begin(), failures.end(), [&](const auto& f) { return f == *first; });
  throw shared_error(*first, everywhere ? "" : str("rank ", first - failures.begin(), ": "));
}

}  // namespace tokamak
