#include "data/order/megatron_split.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"

namespace tokamak {

namespace {

constexpr double kSurplus = 0.005;  // Megatron's mid_level_dataset_surplus

// numpy's pairwise sum: eight running sums in a block of at most 128 numbers, halves of whole eights above.
double numpy_sum(std::span<const double> values) {
  constexpr size_t kBlock = 128;
  if (values.size() < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (values.size() > kBlock) {
    const size_t half = values.size() / 2 / 8 * 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  std::array<double, 8> r;
  std::copy_n(values.begin(), 8, r.begin());
  size_t i = 8;
  for (; i + 8 <= values.size(); i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) r[lane] += values[i + lane];
  }
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < values.size(); ++i) sum += values[i];
  return sum;
}

[[noreturn]] void fail_split(const std::string& split, const std::string& what) {
  fail(Kind::kConfig, str("data.megatron_split is ", printable(split), ": ", what),
       "give Megatron's --split, for example 969,30,1");
}

// Every run of digits and points is a number, as in Megatron.
std::vector<double> numbers_in(const std::string& split) {
  constexpr const char* kDigits = ".0123456789";
  std::vector<double> numbers;
  for (size_t at = split.find_first_of(kDigits); at != std::string::npos; at = split.find_first_of(kDigits, at)) {
    const size_t end = std::min(split.find_first_not_of(kDigits, at), split.size());
    double value = 0;
    const auto [rest, error] = std::from_chars(split.data() + at, split.data() + end, value, std::chars_format::fixed);
    if (error != std::errc() || rest != split.data() + end || !std::isfinite(value)) {
      fail_split(split, str(printable(split.substr(at, end - at)), " is no number"));
    }
    numbers.push_back(value);
    at = end;
  }
  return numbers;
}

}  // namespace

SequenceRange megatron_training_part(const std::string& split, int64_t sequences) {
  if (split.empty()) return {0, sequences};
  std::vector<double> shares = numbers_in(split);
  if (shares.empty() || shares.size() > 3)
    fail_split(split, str("it has ", shares.size(), " numbers, not one to three"));
  shares.resize(3);
  if (!(numpy_sum(shares) > 0)) fail_split(split, "its numbers add up to zero");
  const double training = megatron_normalized(shares)[0];
  // Python rounds halves to even, as nearbyint does.
  const auto end = static_cast<int64_t>(std::nearbyint((0 + training) * double(sequences)));
  if (end <= 0) fail_split(split, str("no sequence of ", sequences, " is for training"));
  return {0, std::min(end, sequences)};
}

std::vector<double> megatron_normalized(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> out;
  for (const double weight : weights) out.push_back(weight / sum);
  return out;
}

int64_t megatron_share(int64_t samples, double weight) {
  return static_cast<int64_t>(std::ceil(double(samples) * weight));
}

int64_t megatron_share_with_surplus(int64_t samples, double weight) {
  return static_cast<int64_t>(std::ceil(double(megatron_share(samples, weight)) * (1 + kSurplus)));
}

}  // namespace tokamak
