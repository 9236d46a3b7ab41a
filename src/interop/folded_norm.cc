#include "interop/folded_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tokamak {

namespace {

constexpr const char* kEmbeddings = "model.embed_tokens.weight";

// Elements [first, first + out.size()) of the embedding, each row x as x rstd (offset + weight), in f64.
void read_normalised(const ModelConfig& model, const ReadParam& read, int64_t first, std::span<float> out) {
  const int64_t width = model.hidden_size, begin = first / width * width, end = first + std::ssize(out);
  std::vector<float> weight(static_cast<size_t>(width)),
      rows(static_cast<size_t>((end - begin + width - 1) / width * width));
  read("model.embed_norm.weight", 0, weight);
  read(kEmbeddings, begin, rows);
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += double(row[i]) * double(row[i]);
    const double rstd = 1 / std::sqrt(squares / double(width) + model.rms_norm_eps);
    for (int64_t i = 0; i < width; ++i) {
      row[i] = static_cast<float>(double(row[i]) * rstd * (double{model.norm_offset()} + double(weight[i])));
    }
  }
  std::copy_n(rows.begin() + (first - begin), std::ssize(out), out.begin());
}

}  // namespace

ModelConfig with_folded_norm(const ModelConfig& model) {
  ModelConfig folded = model;
  folded.embedding_norm = false;
  folded.tie_word_embeddings = false;
  return folded;
}

ReadParam fold_norm(const ModelConfig& model, ReadParam read) {
  return [model, read = std::move(read)](const std::string& name, int64_t first, std::span<float> out) {
    if (name == kEmbeddings) return read_normalised(model, read, first, out);
    read(name == "lm_head.weight" && model.tie_word_embeddings ? kEmbeddings : name, first, out);
  };
}

}  // namespace tokamak
