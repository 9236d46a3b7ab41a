// A fake of cuDNN's graphs for the emulator: plain loops over the tensors as a graph declares them, in stream order and
// recorded by a capture. So declarations, tables and copies around a graph are tested without cuDNN.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "cuda/attention/cudnn_call.h"
#include "cuda/attention/cudnn_tensors.h"
#include "tests/cuda/emulator/emulator.h"
#include "tests/cuda/emulator/streams.h"

namespace tokamak::testing {

// The work of one call.
class PlainAttention {
 public:
  PlainAttention(const AttentionGraphSpec& spec, const AttentionPointers& p) : spec_(spec), scale_(p.scale) {
    const auto addresses = addresses_of(spec, p, &scale_);
    addresses_ = {addresses.begin(), addresses.end()};
  }

  void run() const {
    const emulator::Access access;
    check_rows_behind();
    for (int64_t b = 0; b < spec_.documents.count; ++b) {
      const int64_t length =
          spec_.documents.ragged() ? static_cast<int32_t*>(addresses_.at(kKeyLengths))[b] : spec_.documents.length;
      spec_.backward ? backward(b, length, scale_) : forward(b, length, scale_);
    }
  }

 private:
  using Numbers = std::vector<float>;

  // cuDNN may load whole tiles of these tensors, so zeros must follow them in the workspace.
  void check_rows_behind() const {
    int64_t tokens = spec_.documents.tokens();
    if (spec_.documents.ragged()) {
      REQUIRE(addresses_.at(kQueryLengths) == addresses_.at(kKeyLengths));  // no queries without keys
      const auto* lengths = static_cast<const int32_t*>(addresses_.at(kKeyLengths));
      tokens = std::accumulate(lengths, lengths + spec_.documents.count, int64_t{0});
    }
    const auto zeros_behind = [&](CallTensor tensor, int64_t row_bytes) {
      const auto* rows = static_cast<const char*>(addresses_.at(tensor));
      return std::count(rows + tokens * row_bytes, rows + (tokens + 128) * row_bytes, 0) == 128 * row_bytes;
    };
    if (spec_.own_keys()) {
      CHECK(zeros_behind(kKey, spec_.heads.kv_width() * 2));
      CHECK(zeros_behind(kValue, spec_.heads.kv_width() * 2));
    }
    if (spec_.backward && CallParts(spec_).moves_lse) CHECK(zeros_behind(kStats, spec_.heads.q_heads * 4));
  }

  template <class T>
  T* row(CallTensor tensor, int64_t b, int64_t h, int64_t t) const {
    const CallTensorShape shape = shape_of(spec_, tensor);
    const auto offsets = offsets_of(spec_, tensor);
    const int64_t begin = offsets ? static_cast<int64_t*>(addresses_.at(*offsets))[b] : b * shape.strides[0];
    return static_cast<T*>(addresses_.at(tensor)) + begin + h * shape.strides[1] + t * shape.strides[2];
  }
  // (T, D) of a head.
  Numbers read(CallTensor tensor, int64_t b, int64_t h, int64_t length) const {
    Numbers all;
    for (int64_t t = 0; t < length; ++t) {
      const bf16* elements = row<bf16>(tensor, b, h, t);
      for (int64_t i = 0; i < spec_.heads.head_dim; ++i) all.push_back(to_float(elements[i]));
    }
    return all;
  }
  void write(CallTensor tensor, int64_t b, int64_t h, int64_t length, const Numbers& all) const {
    for (int64_t n = 0, d = spec_.heads.head_dim; n < length * d; ++n) {
      row<bf16>(tensor, b, h, n / d)[n % d] = bf16(all[static_cast<size_t>(n)]);
    }
  }
  float dot(const Numbers& x, int64_t t, const Numbers& y, int64_t s) const {
    float sum = 0;
    for (int64_t i = 0, d = spec_.heads.head_dim; i < d; ++i) sum += x[at(t * d + i)] * y[at(s * d + i)];
    return sum;
  }
  void add(Numbers& to, int64_t t, float factor, const Numbers& from, int64_t s) const {
    for (int64_t i = 0, d = spec_.heads.head_dim; i < d; ++i) to[at(t * d + i)] += factor * from[at(s * d + i)];
  }
  static size_t at(int64_t n) { return static_cast<size_t>(n); }
  int64_t group() const { return spec_.heads.q_heads / spec_.heads.kv_heads; }

  void forward(int64_t b, int64_t length, float scale) const {
    for (int64_t h = 0; h < spec_.heads.q_heads; ++h) {
      const Numbers q = read(kQuery, b, h, length), k = read(kKey, b, h / group(), length),
                    v = read(kValue, b, h / group(), length);
      Numbers out(q.size());
      for (int64_t t = 0; t < length; ++t) {
        float total = 0;
        for (int64_t s = 0; s <= t; ++s) total += std::exp(scale * dot(q, t, k, s));
        for (int64_t s = 0; s <= t; ++s) add(out, t, std::exp(scale * dot(q, t, k, s)) / total, v, s);
        *row<float>(kStats, b, h, t) = std::log(total);
      }
      write(kOut, b, h, length, out);
    }
  }

  void backward(int64_t b, int64_t length, float scale) const {
    for (int64_t kv = 0; kv < spec_.heads.kv_heads; ++kv) {
      const Numbers k = read(kKey, b, kv, length), v = read(kValue, b, kv, length);
      Numbers dk(k.size()), dv(k.size());
      for (int64_t h = kv * group(); h < (kv + 1) * group(); ++h) {
        const Numbers q = read(kQuery, b, h, length), out = read(kOut, b, h, length), dout = read(kDOut, b, h, length);
        Numbers dq(q.size());
        for (int64_t t = 0; t < length; ++t) {
          for (int64_t s = 0; s <= t; ++s) {
            const float weight = std::exp(scale * dot(q, t, k, s) - *row<float>(kStats, b, h, t));
            const float ds = scale * weight * (dot(dout, t, v, s) - dot(dout, t, out, t));
            add(dq, t, ds, k, s);
            add(dk, s, ds, q, t);
            add(dv, s, weight, dout, t);
          }
        }
        write(kDQuery, b, h, length, dq);
      }
      write(kDKey, b, kv, length, dk);
      write(kDValue, b, kv, length, dv);
    }
  }

  AttentionGraphSpec spec_;
  float scale_;
  std::map<int64_t, void*> addresses_;
};

class PlainGraph final : public AttentionGraph {
 public:
  PlainGraph(const AttentionGraphSpec& spec, cudaStream_t stream) : spec_(spec), stream_(stream) {}
  int64_t workspace_bytes() const override { return 0; }
  std::string engine() const override { return "plain"; }

  void run(cudnnHandle_t, const AttentionPointers& p, std::byte*) override {
    emulator::enqueue(stream_, [attention = PlainAttention(spec_, p)] { attention.run(); });
  }

 private:
  AttentionGraphSpec spec_;
  cudaStream_t stream_;
};

}  // namespace tokamak::testing
