// Text to train small models on and to encode, made here: the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/train.h"

namespace tokamak {

// Lines of made-up English, Russian, Chinese, numbers, code and emoji.
std::vector<std::string> corpus_lines(int64_t count);

// Texts that break tokenizers, each with its name.
struct HardText {
  std::string name;
  std::string text;
};
std::vector<HardText> hard_texts();

// A text of about `length` bytes drawn from bits of all kinds: words, spaces, scripts, symbols, invalid bytes.
std::string random_text(std::mt19937_64& random, int64_t length, const std::vector<std::string>& extra = {});

TokenizerTrainOptions small_options();

// Trains on corpus_lines and returns `path`.
std::string train_small(const std::string& path, const TokenizerTrainOptions& options = small_options());

}  // namespace tokamak
