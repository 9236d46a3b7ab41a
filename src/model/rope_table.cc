#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tokamak {

namespace {

using std::numbers::pi;

std::vector<double> frequencies(int64_t head_dim, double theta) {
  std::vector<double> w;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    w.push_back(std::pow(theta, -2.0 * double(i) / double(head_dim)));
  }
  return w;
}

double dynamic_theta(const ModelConfig& config, int64_t length) {
  const auto longest = double(config.max_position_embeddings), d = double(config.head_size());
  const double n = std::max(double(length), longest), f = config.rope_scaling.factor;
  return config.rope_theta * std::pow(f * n / longest - (f - 1), d / (d - 2));
}

// The index range over which yarn blends from w to w / f.
struct Ramp {
  double low, high;
  double at(double place) const { return std::clamp((place - low) / (high - low), 0.0, 1.0); }
};

Ramp yarn_ramp(const RopeScaling& s, int64_t head_dim, double theta) {
  const auto d = double(head_dim), original = double(s.original_max_position_embeddings);
  const auto place = [&](double turns) { return d * std::log(original / (turns * 2 * pi)) / (2 * std::log(theta)); };
  Ramp ramp{place(s.fast_turns()), place(s.slow_turns())};
  if (s.truncate) ramp = {std::floor(ramp.low), std::ceil(ramp.high)};
  ramp = {std::max(ramp.low, 0.0), std::min(ramp.high, d - 1)};
  if (ramp.low == ramp.high) ramp.high += 0.001;
  return ramp;
}

double yarn_attention_factor(const RopeScaling& s, double f) {
  const auto scaled = [&](double mscale) { return f > 1 ? 0.1 * mscale * std::log(f) + 1 : 1.0; };
  if (s.attention_factor != 0) return s.attention_factor;
  return s.mscale != 0 && s.mscale_all_dim != 0 ? scaled(s.mscale) / scaled(s.mscale_all_dim) : scaled(1);
}

double llama3_frequency(const RopeScaling& s, double w) {
  const double turns = double(s.original_max_position_embeddings) * w / (2 * pi);
  if (turns > s.high_freq_factor) return w;
  if (turns < s.low_freq_factor) return w / s.factor;
  const double share = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return w * share + w / s.factor * (1 - share);
}

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config, int64_t length) {
  const RopeScaling& s = config.rope_scaling;
  RopeFrequencies out{frequencies(config.head_size(), config.rope_theta)};
  switch (s.rope_type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      for (double& w : out.w) w /= s.factor;
      break;
    case RopeType::kDynamic:
      out.w = frequencies(config.head_size(), dynamic_theta(config, length));
      break;
    case RopeType::kYarn: {
      const Ramp ramp = yarn_ramp(s, config.head_size(), config.rope_theta);
      const double f = s.extension(config.max_position_embeddings);
      for (size_t i = 0; i < out.w.size(); ++i) {
        const double scaled = ramp.at(double(i));
        out.w[i] = out.w[i] * (1 - scaled) + out.w[i] / f * scaled;
      }
      out.attention_factor = yarn_attention_factor(s, f);
      break;
    }
    case RopeType::kLlama3:
      for (double& w : out.w) w = llama3_frequency(s, w);
  }
  return out;
}

void write_rope_row(const RopeFrequencies& frequencies, int64_t position, std::span<float> row) {
  const size_t half = row.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const double angle = double(position) * frequencies.w[i];
    row[i] = static_cast<float>(frequencies.attention_factor * std::cos(angle));
    row[half + i] = static_cast<float>(frequencies.attention_factor * std::sin(angle));
  }
}

std::vector<float> make_rope_table(const ModelConfig& config, int64_t positions, int64_t length) {
  const auto width = static_cast<size_t>(config.head_size());
  const RopeFrequencies frequencies = rope_frequencies(config, length);
  std::vector<float> table(static_cast<size_t>(positions) * width);
  for (int64_t p = 0; p < positions; ++p) {
    write_rope_row(frequencies, p, std::span(table).subspan(static_cast<size_t>(p) * width, width));
  }
  return table;
}

}  // namespace tokamak
