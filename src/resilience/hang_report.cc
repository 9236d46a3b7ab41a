#include "resilience/hang_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/run_files.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::string_view kFound = "hang, found at ";  // report/hang_files.cc reads it
constexpr std::string_view kByRankZero = ", by rank 0 (";

std::string link_in(const std::string& directory) { return directory + "/last_hang"; }

std::string first_word(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

std::string HangReport::text(const std::string& time) const {
  const RankView& limiting = ranks[verdict.limit_of];
  std::vector<std::string> names;
  for (const int r : verdict.culprits) names.push_back(ranks[r].who());
  std::string text = str(
      kFound, time, ", by ", ranks[by].name, "\n", verdict.reason,
      "\n\ndid not arrive: ", names.empty() ? "none is behind the others" : join(names, "; "),
      "\nlimit: ", fixed(verdict.limit, 1), " s, of ", limiting.name, " in phase ", name_of(limiting.last.phase), ": ",
      limits.text(limiting.last.gaps), "\n",
      hears_no_other_host() ? str("suspected: ", ranks[by].host, " itself, as it hears no other host\n") : "", "\n");
  for (const RankView& rank : ranks) {
    if (rank.hidden) continue;
    text += str(rank.who(), ": ", rank.last.text(), rank.left ? ", has left" : "",
                rank.lost ? ", its connection has timed out" : "",
                rank.heard_ago > 0 ? str(", heard ", fixed(rank.heard_ago, 1), " s ago") : "", "\n");
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].counts()) text += calls_section(ranks[r], calls[r]);
  }
  return text;
}

bool HangReport::hears_no_other_host() const {
  std::set<std::string> silent, others;
  for (const int r : verdict.silent) silent.insert(ranks[r].host);
  for (const RankView& rank : ranks) {
    if (rank.counts() && rank.host != ranks[by].host) others.insert(rank.host);
  }
  return others.size() >= 2 && silent == others;
}

std::vector<std::string> HangReport::suspects() const {
  if (hears_no_other_host()) return {ranks[by].host};
  std::vector<std::string> hosts;
  for (const int r : verdict.culprits) hosts.push_back(ranks[r].host);
  return hosts;
}

std::string calls_section(const RankView& rank, const std::string& calls) {
  return str("\nlast calls of ", rank.who(), ":\n", calls.empty() ? "  missing: it did not answer\n" : calls);
}

std::string main_thread_state() {
  const std::string task = str("/proc/self/task/", ::getpid());
  std::ifstream in(task + "/stat");
  std::string stat;
  std::getline(in, stat);
  const size_t name_end = stat.rfind(')');
  const std::string state = name_end == std::string::npos ? "?" : stat.substr(name_end + 2, 1);
  const std::string where = first_word(task + "/wchan");
  return where.empty() || where == "0" ? state : str(state, " in ", where);
}

void forget_hang_file(const std::string& directory) { ::unlink(link_in(directory).c_str()); }

bool append_text(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return whole;
}

bool has_verdict_of_rank_zero(const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (starts_with(line, kFound) && line.find(kByRankZero) != std::string::npos) return true;
  }
  return false;
}

HangFile claim_hang_file(const std::string& directory, const std::string& time) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  std::string compact = time;
  std::erase_if(compact, [](char c) { return c == '-' || c == ':'; });
  std::string name = str(run_files::kHangPrefix, compact, ".txt");
  // A file system creates a symbolic link and its content at once, so one rank is the first.
  const bool first = ::symlink(name.c_str(), link_in(directory).c_str()) == 0;
  if (!first && errno == EEXIST) {
    std::array<char, 256> known{};
    const ssize_t length = ::readlink(link_in(directory).c_str(), known.data(), known.size() - 1);
    if (length > 0) name.assign(known.data(), static_cast<size_t>(length));
  }
  return {str(directory, "/", name), first};
}

bool append_suspects(const std::string& path, const std::vector<std::string>& hosts) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::set<std::string> known;
  bool ends = true;  // the last line has a newline
  std::ifstream in(path);
  for (std::string line; std::getline(in, line); ends = !in.eof()) known.insert(line);
  std::string lines = ends ? "" : "\n";
  for (const std::string& host : hosts) {
    if (known.insert(host).second) lines += host + "\n";
  }
  return lines.size() <= 1 || append_text(path, lines);
}

}  // namespace tokamak
