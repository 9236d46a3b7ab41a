// Checks of equality on all ranks: config, program and libraries, and the hosts' clocks. Another config trains another
// model or hangs; another library has other bits or protocols; logs of several hosts are compared by their clocks.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/hash.h"
#include "base/median.h"
#include "base/process.h"
#include "base/strings.h"
#include "comm/rank_zero.h"
#include "doctor/checks.h"

namespace tokamak::doctor {

namespace {

constexpr int kRoundTrips = 9;
constexpr double kMostSkew = 1.0;  // seconds

// The first line of `text` that is not in the same place of `expected`.
std::string first_difference(const std::string& text, const std::string& expected) {
  const std::vector<std::string> own = split(text, '\n'), other = split(expected, '\n');
  for (size_t i = 0; i < own.size(); ++i) {
    if (i < other.size() && own[i] == other[i]) continue;
    return str("'", trim(own[i]), "' where rank 0 has '", i < other.size() ? trim(other[i]) : "", "'");
  }
  return "the text ends before rank 0's";
}

// A library by the beginning of its file name, and the consequence of another release on some ranks.
struct Library {
  const char* name;
  const char* file;
  Status differs;
  const char* consequence;
};
constexpr const char* kOtherBits = "its results may differ in their last bits";
constexpr const char* kOtherProtocol = "the ranks may not understand each other";
constexpr Library kLibraries[] = {
    {"oneDNN", "libdnnl.so", Status::kFail, kOtherBits},
    {"MPI", "libmpi.so", Status::kFail, kOtherProtocol},
    {"NCCL", "libnccl.so", Status::kFail, kOtherProtocol},
    {"cuBLASLt", "libcublasLt.so", Status::kFail, kOtherBits},
    {"cuDNN", "libcudnn.so", Status::kFail, kOtherBits},
    {"CUDA driver", "libcuda.so", Status::kWarn, "install one driver everywhere"},
    {"OpenMP", "libgomp.so", Status::kWarn, "install one release everywhere"},
    {"C library", "libc.so", Status::kWarn, "its mathematical functions may differ"},
};

std::string hash_of_binary() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Hasher hash;
  std::vector<char> piece(size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    hash.update(std::as_bytes(std::span(piece.data(), static_cast<size_t>(file.gcount()))));
  }
  if (!file.eof()) fail(Kind::kConfig, "cannot read /proc/self/exe");
  return hash.hex128();
}

}  // namespace

CheckResult check_config(Comm& comm, const RankHosts& peers, const std::function<std::string()>& read) {
  CheckResult result{.name = "config", .kind = Kind::kConfig};
  std::string text;
  const bool readable = measure(result, comm, peers, [&](Facts& facts) {
    text = read();
    facts.set("hash", xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size()))));
  });
  if (!readable) return result;
  std::string expected = text;
  comm.broadcast(expected, 0);
  measure(result, comm, peers, [&](Facts& facts) {
    if (text != expected) facts.set("difference", first_difference(text, expected));
  });
  for (int rank = 0; rank < peers.size(); ++rank) {
    const Facts& facts = result.ranks[rank];
    if (!facts.has("difference")) continue;
    result.fail(peers.host(rank), str(peers.name(rank), " reads another config: ", facts.text("difference")));
  }
  result.value = result.notes.empty()
                     ? str("the same on ", peers.size(), " rank(s), ", result.ranks[0].text("hash").substr(0, 12))
                     : str("differs from rank 0's on ", result.notes.size(), " of ", peers.size(), " ranks");
  return result;
}

Facts program_facts(const std::string& version) {
  Facts facts;
  facts.set("version", version);
  facts.set("binary", hash_of_binary());
  for (const std::string& path : loaded_libraries()) {  // a real path names the release: libdnnl.so.2.6
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const Library& library : kLibraries) {
      std::error_code deleted;
      const auto bytes = std::filesystem::file_size(path, deleted);
      if (starts_with(name, library.file) && !deleted) facts.set(library.name, str(name, " of ", bytes, " bytes"));
    }
  }
  return facts;
}

CheckResult check_program(Comm& comm, const RankHosts& peers, const Facts& own) {
  CheckResult result{.name = "program", .kind = Kind::kConfig};
  measure(result, comm, peers, [&](Facts& facts) { facts = own; });
  const Facts& first = result.ranks.front();
  result.value = str(split(first.text("version"), '\n').front(), ", binary ", first.text("binary").substr(0, 12));
  expect_equal(result, peers, "binary", Status::kFail, "install one build everywhere");
  for (const Library& library : kLibraries) {
    expect_equal(result, peers, library.name, library.differs, library.consequence);
  }
  return result;
}

// Rank 0 reads its clock after all ranks enter the barrier and before any has the broadcast, so between two readings of
// this rank's own clock. The offset is known to half of their distance, as in NTP (RFC 5905, section 8).
CheckResult check_clocks(Comm& comm, const RankHosts& peers, const std::function<double()>& clock) {
  std::vector<double> offsets, distances;
  for (int i = 0; i < kRoundTrips; ++i) {
    const double before = clock();
    comm.barrier();
    const double of_rank_zero = value_of_rank_zero(comm, clock);
    const double after = clock();
    offsets.push_back(0.5 * (before + after) - of_rank_zero);
    distances.push_back(after - before);
  }
  CheckResult result{.name = "clocks", .kind = Kind::kConfig};
  measure(result, comm, peers, [&](Facts& facts) {
    facts.set("seconds_ahead_of_rank_0", comm.rank() == 0 ? 0.0 : median_of(offsets));
    facts.set("round_trip_seconds", median_of(distances));
  });
  double most = 0;
  for (const int rank : peers.first_ranks()) {
    const double ahead = result.ranks[rank].number("seconds_ahead_of_rank_0");
    most = std::max(most, std::abs(ahead));
    if (std::abs(ahead) <= kMostSkew) continue;
    result.warn(peers.host(rank), str(peers.host(rank), "'s clock is ", fixed(std::abs(ahead), 1), " s ",
                                      ahead > 0 ? "ahead of" : "behind", " rank 0's; synchronise it (chrony, ntpd)"));
  }
  result.value = str("within ", fixed(most * 1000, 1), " ms on ", peers.hosts().size(), " host(s)");
  return result;
}

}  // namespace tokamak::doctor
