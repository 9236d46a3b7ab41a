#include "doctor/program.h"

#include <link.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace tokamak::doctor {

namespace {

// A library by the beginning of its file name, and what it means where ranks have different ones.
struct Library {
  const char* name;
  const char* file;
  Status differs;
  const char* consequence;
};
constexpr const char* kOtherBits = "its results may differ in their last bits";
constexpr const char* kOtherProtocol = "the ranks may not understand each other";
constexpr std::array<Library, 8> kLibraries = {
    {{"oneDNN", "libdnnl.so", Status::kFail, kOtherBits},
     {"MPI", "libmpi.so", Status::kFail, kOtherProtocol},
     {"NCCL", "libnccl.so", Status::kFail, kOtherProtocol},
     {"cuBLASLt", "libcublasLt.so", Status::kFail, kOtherBits},
     {"cuDNN", "libcudnn.so", Status::kFail, kOtherBits},
     {"CUDA driver", "libcuda.so", Status::kWarn, "install one driver everywhere"},
     {"OpenMP", "libgomp.so", Status::kWarn, "install one release everywhere"},
     {"C library", "libc.so", Status::kWarn, "its mathematical functions may differ"}}};

// The file behind a link names the release: libdnnl.so.2 is libdnnl.so.2.6.
int note_library(dl_phdr_info* info, size_t, void* facts) {
  std::error_code none;
  const std::filesystem::path path = std::filesystem::canonical(info->dlpi_name, none);
  const std::string loaded = std::filesystem::path(info->dlpi_name).filename().string();
  for (const Library& library : kLibraries) {
    if (none || !starts_with(loaded, library.file)) continue;
    const auto bytes = std::filesystem::file_size(path, none);
    static_cast<Facts*>(facts)->set(library.name, str(path.filename().string(), " of ", bytes, " bytes"));
  }
  return 0;
}

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

Facts program_facts(const std::string& version) {
  Facts facts;
  facts.set("version", version);
  facts.set("binary", hash_of_binary());
  dl_iterate_phdr(note_library, &facts);
  return facts;
}

CheckResult check_program(Comm& comm, const RankHosts& peers, const Facts& own) {
  CheckResult result{.name = "program", .kind = Kind::kConfig};
  result.ranks = gather_facts(comm, [&] { return own; });
  const Facts& first = result.ranks.front();
  result.value = str(split(first.text("version"), '\n').front(), ", binary ", first.text("binary").substr(0, 12));
  expect_equal(result, peers, "binary", Status::kFail, "install one build everywhere");
  for (const Library& library : kLibraries) {
    const bool everywhere_absent =
        std::none_of(result.ranks.begin(), result.ranks.end(), [&](const Facts& f) { return f.has(library.name); });
    if (!everywhere_absent) expect_equal(result, peers, library.name, library.differs, library.consequence);
  }
  return result;
}

}  // namespace tokamak::doctor
