// The file that a hang leaves in run.output_dir, hang-<utc time>.txt, one for all ranks that write it; and the hosts
// to leave out of the next start, suspects.txt.
#pragma once

#include <string>
#include <vector>

#include "resilience/verdict.h"

namespace tokamak {

struct HangReport {
  Verdict verdict;
  std::vector<RankView> ranks;
  Limits limits;
  std::vector<std::string> calls;  // of each rank, as FlightRecord::text; "" if it did not answer

  size_t by = 0;  // the place in `ranks` of the rank that reports

  std::string text(const std::string& time) const;

  // Whether all other hosts, two or more, are silent. Then the reporting host is the likelier one to be cut off.
  bool hears_no_other_host() const;

  // Hosts to leave out of the next start: those of the culprits, or its own if it hears no other host.
  std::vector<std::string> suspects() const;
};

std::string calls_section(const RankView& rank, const std::string& calls);
std::string main_thread_state();  // of this process: "R", "S in futex_wait_queue"

class HangFile {
 public:
  explicit HangFile(std::string directory) : directory_(std::move(directory)) {}

  void forget();  // a start calls it, so that its hang gets a new file

  struct Claim {
    std::string path;
    bool first = false;  // this rank is the first to write
  };
  // Ranks without a connection agree on the file by a link that the first of them makes.
  Claim claim(const std::string& time) const;

  static bool append(const std::string& path, const std::string& text);  // in one piece
  static bool has_verdict_of_rank_zero(const std::string& path);

 private:
  std::string link() const { return directory_ + "/last_hang"; }

  std::string directory_;
};

// Appends the hosts that the file does not name yet, a line each. Returns false if the file cannot be written.
bool append_suspects(const std::string& path, const std::vector<std::string>& hosts);

}  // namespace tokamak
