#include "report/hang_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::string_view kWhen = "hang, found at ";  // the first line of the watchdog's

// "hang-20260131T123456Z.txt"
std::optional<int64_t> time_of_name(const std::string& name) {
  const std::string_view digits = std::string_view(name).substr(std::string_view(run_files::kHangPrefix).size());
  if (digits.size() < 15) return std::nullopt;
  const auto part = [&](size_t at) { return digits.substr(at, 2); };
  return parse_utc(str(part(0), part(2), "-", part(4), "-", part(6), "T", part(9), ":", part(11), ":", part(13), "Z"));
}

int64_t time_of_writing(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_mtim.tv_sec} * 1000 : 0;
}

std::vector<std::string> first_lines(const std::string& path) {
  constexpr int64_t kMost = 1 << 18;  // bytes; the watchdog's files are shorter
  constexpr size_t kLongest = 200;
  const InputFile file(path, Kind::kData);
  std::string text(static_cast<size_t>(std::min(kMost, file.size())), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line).substr(0, kLongest));
  }
  return lines;
}

std::string headline_of(const std::string& path) {
  for (const std::string& line : first_lines(path)) {
    if (!starts_with(line, kWhen)) return line;
  }
  return "";
}

}  // namespace

std::vector<FoundHang> find_hang_files(const std::string& directory) {
  std::vector<FoundHang> files;
  for (const std::string& name : list_directory(directory, Kind::kConfig)) {
    if (!starts_with(name, run_files::kHangPrefix) || !name.ends_with(".txt")) continue;
    const std::string path = directory + "/" + name;
    files.push_back({time_of_name(name).value_or(time_of_writing(path)), name, headline_of(path)});
  }
  std::sort(files.begin(), files.end(), [](const FoundHang& a, const FoundHang& b) { return a.time < b.time; });
  return files;
}

std::vector<std::string> read_suspects(const std::string& directory) {
  const std::string path = run_files::at(directory, run_files::kSuspects);
  if (!exists(path)) return {};
  const std::vector<std::string> lines = first_lines(path);
  const std::set<std::string> hosts(lines.begin(), lines.end());
  return {hosts.begin(), hosts.end()};
}

}  // namespace tokamak
