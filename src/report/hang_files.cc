#include "report/hang_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "base/clock.h"
#include "base/file.h"

namespace tokamak {

namespace {

constexpr std::string_view kPrefix = "hang-", kSuffix = ".txt";
constexpr std::string_view kWhen = "hang, found at ";  // the first line of the watchdog's

// Of "hang-20260131T123456Z.txt", however its digits are separated.
std::optional<int64_t> time_of_name(const std::string& name) {
  std::string digits;
  std::copy_if(name.begin(), name.end(), std::back_inserter(digits),
               [](unsigned char c) { return std::isdigit(c) != 0; });
  if (digits.size() < 14) return std::nullopt;
  const auto part = [&](size_t at, size_t length) { return digits.substr(at, length); };
  return parse_utc(
      str(part(0, 4), "-", part(4, 2), "-", part(6, 2), "T", part(8, 2), ":", part(10, 2), ":", part(12, 2), "Z"));
}

int64_t time_of_writing(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_mtim.tv_sec} * 1000 : 0;
}

std::string headline_of(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = trim(line);
    if (!text.empty() && !starts_with(text, kWhen)) return std::string(text.substr(0, 200));
  }
  return "";
}

}  // namespace

std::vector<FoundHang> find_hang_files(const std::string& directory) {
  std::vector<FoundHang> files;
  for (const std::string& name : list_directory(directory, Kind::kConfig)) {
    if (!starts_with(name, kPrefix) || name.size() < kSuffix.size() ||
        name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) != 0) {
      continue;
    }
    const std::string path = directory + "/" + name;
    files.push_back({time_of_name(name).value_or(time_of_writing(path)), name, headline_of(path)});
  }
  std::sort(files.begin(), files.end(), [](const FoundHang& a, const FoundHang& b) { return a.time < b.time; });
  return files;
}

std::vector<std::string> read_suspects(const std::string& directory) {
  std::vector<std::string> hosts;
  std::ifstream file(directory + "/suspects.txt");
  for (std::string line; std::getline(file, line);) {
    if (!trim(line).empty()) hosts.emplace_back(trim(line));
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

}  // namespace tokamak
