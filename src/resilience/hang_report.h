// The file that a hang leaves in run.output_dir, hang-<utc time>.txt: one for all ranks of the run, whichever of them
// write it; and the hosts to leave out of the next start, suspects.txt.
#pragma once

#include <string>
#include <vector>

#include "resilience/verdict.h"

namespace tokamak {

struct HangReport {
  Verdict verdict;
  std::vector<RankView> ranks;
  Limits limits;
  std::vector<std::string> calls;  // of each rank, as FlightRecord::text; "" where it did not answer

  size_t by = 0;  // the rank that reports; it takes the first place where it knows only of itself

  std::string text(const std::string& time) const;

  bool hears_no_other_host() const;  // of two or more that it should hear of

  // Hosts to leave out of the next start: the culprits', or its own where it hears of no other: its cable is the
  // likelier one to be out.
  std::vector<std::string> suspects() const;
};

// One rank's calls, and what its main thread does.
std::string calls_section(const RankView& rank, const std::string& calls);
std::string main_thread_state();  // of this process: "R", "S in futex_wait_queue"

class HangFile {
 public:
  explicit HangFile(std::string directory) : directory_(std::move(directory)) {}

  void forget();  // at a start: a hang after this is another one

  struct Claim {
    std::string path;
    bool first = false;  // this rank is the first to write
  };
  // Ranks that cannot agree over a connection agree by the name that the first of them leaves.
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
