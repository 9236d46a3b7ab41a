#include "backend/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"

namespace tokamak {

int64_t ranks_per_gpu_variable() {
  const char* const set = std::getenv("TOKAMAK_RANKS_PER_GPU");
  const std::string_view text = set == nullptr ? "1" : set;
  int64_t ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error == std::errc() && end == text.data() + text.size() && ranks >= 1) return ranks;
  fail(Kind::kConfig, str("the environment variable TOKAMAK_RANKS_PER_GPU is '", printable(text), "'"),
       "set it to a whole number of at least 1, or unset it");
}

}  // namespace tokamak
