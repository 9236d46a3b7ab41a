#include "checkpoint/store.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/file.h"
#include "base/run_files.h"

namespace tokamak {

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kMostDigits = 18;  // fits int64_t

bool is_step_with(const std::string& name, std::string_view suffix) {
  const size_t at = name.find(suffix);
  return at != std::string::npos && parse_step_name(name.substr(0, at)).has_value();
}

template <class Predicate>
std::vector<std::string> only(std::vector<std::string> names, const Predicate& keep) {
  std::erase_if(names, [&](const std::string& name) { return !keep(name); });
  return names;
}

CheckpointReader expect_step(int64_t step, CheckpointReader reader) {
  const int64_t inside = reader.manifest().point.state.step;
  if (inside != step) {
    fail(Kind::kCheckpoint, str(reader.directory(), "/", kManifestName, " is that of step ", inside));
  }
  return reader;
}

}  // namespace

std::string step_name(int64_t step) {
  std::array<char, 40> buffer;
  std::snprintf(buffer.data(), buffer.size(), "step-%08lld", static_cast<long long>(step));
  return buffer.data();
}

std::optional<int64_t> parse_step_name(const std::string& name) {
  if (!starts_with(name, kPrefix)) return std::nullopt;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const int64_t step = std::stoll(digits);
  return step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::vector<std::string> CheckpointStore::names() const {
  if (!exists(directory_)) return {};
  return list_directory(directory_, Kind::kCheckpoint);
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> found;
  for (const std::string& name : names()) {
    if (const auto step = parse_step_name(name)) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> CheckpointStore::unfinished() const {
  return only(names(), [](const std::string& name) { return is_step_with(name, kUnfinished); });
}

std::vector<std::string> CheckpointStore::set_aside() const {
  return only(names(), [](const std::string& name) { return is_step_with(name, kSetAside); });
}

std::vector<std::string> CheckpointStore::disposable() const {
  return only(names(), [](const std::string& name) {
    return is_step_with(name, kUnfinished) || starts_with(name, kTrash) || starts_with(name, kProbe);
  });
}

CheckpointReader CheckpointStore::open(int64_t step) const {
  return expect_step(step, CheckpointReader::open(path_of(step)));
}

CheckpointReader CheckpointStore::open_manifest(int64_t step) const {
  return expect_step(step, CheckpointReader::open_manifest(path_of(step)));
}

CheckpointStore store_at(const std::string& path) {
  CheckpointStore store(path);
  const std::string inside = run_files::at(path, run_files::kCheckpoints);
  return store.steps().empty() && is_directory(inside) ? CheckpointStore(inside) : store;
}

}  // namespace tokamak
