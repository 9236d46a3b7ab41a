// The files that a hang leaves in run.output_dir. All ranks write one hang-<utc time>.txt; suspects.txt lists the hosts
// to leave out of the next start.
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

  // Whether all other hosts, two or more, are silent. Then the reporting host itself is probably cut off.
  bool hears_no_other_host() const;

  // Hosts to leave out of the next start: those of the culprits, or its own if it hears no other host.
  std::vector<std::string> suspects() const;
};

std::string calls_section(const RankView& rank, const std::string& calls);
std::string main_thread_state();  // of this process: "R", "S in futex_wait_queue"

struct HangFile {
  std::string path;
  bool first = false;  // this rank is the first to write
};
// Ranks without a connection agree on the file by a link that the first of them makes. A start forgets the link, so
// that a hang of this start gets a new file.
HangFile claim_hang_file(const std::string& directory, const std::string& time);
void forget_hang_file(const std::string& directory);

bool append_text(const std::string& path, const std::string& text);  // in one write; false if it fails
bool has_verdict_of_rank_zero(const std::string& path);

// Appends the hosts that the file does not name yet, a line each. Returns false if the file cannot be written.
bool append_suspects(const std::string& path, const std::vector<std::string>& hosts);

}  // namespace tokamak
