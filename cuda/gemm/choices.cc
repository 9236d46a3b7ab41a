#include "cuda/gemm/choices.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace tokamak {

namespace {

constexpr std::string_view kMagic = "tokamak gemm algorithms 1";
constexpr std::string_view kDigits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

std::optional<std::string> bytes_of(std::string_view hex, size_t count) {
  if (hex.size() != 2 * count) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const size_t high = kDigits.find(hex[i]), low = kDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

}  // namespace

GemmChoices::GemmChoices(std::string path, size_t bytes) : path_(std::move(path)), bytes_(bytes) {
  if (path_.empty() || !exists(path_)) return;
  ours_ = load();
  if (ours_) return;
  known_.clear();
  log::warning(path_, " is no file of GEMM algorithms: it is left alone, and choices are not kept");
}

bool GemmChoices::load() {
  const std::vector<std::string> lines = split(read_text(path_, Kind::kDevice), '\n');
  if (lines.empty() || lines.front() != kMagic || !lines.back().empty()) return false;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const size_t space = lines[i].rfind(' ');
    if (space == std::string::npos || space == 0) return false;
    const auto bytes = bytes_of(std::string_view(lines[i]).substr(space + 1), bytes_);
    if (!bytes) return false;
    known_[lines[i].substr(0, space)] = *bytes;
  }
  return true;
}

std::optional<std::string> GemmChoices::find(const std::string& problem) const {
  const auto at = known_.find(problem);
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

void GemmChoices::keep(const std::string& problem, std::string_view algorithm) {
  TOKAMAK_CHECK(algorithm.size() == bytes_, algorithm.size(), " bytes");
  known_[problem] = algorithm;
  if (path_.empty() || !ours_) return;
  std::string text = str(kMagic, "\n");
  for (const auto& [key, bytes] : known_) text += str(key, " ", hex_of(bytes), "\n");
  try {
    make_directories(parent_directory(path_), Kind::kDevice);
    write_text_atomically(path_, text, Kind::kDevice);
  } catch (const Error& error) {
    log::warning("the GEMMs' algorithms are not kept: ", error.what());
  }
}

}  // namespace tokamak
