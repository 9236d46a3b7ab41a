// Shared by Tokenizer and Encoder: the model and the tables compiled from it. Immutable once loaded.
#pragma once

#include <array>
#include <string>

#include "tokenizer/bpe_rules.h"
#include "tokenizer/model_proto.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/user_symbols.h"

namespace tokamak {

struct Tokenizer::Model {
  Model(ModelProto model, std::string file, std::string checksum);

  ModelProto proto;
  std::string path;
  std::string hash;
  int32_t unk_id = -1;  // always present: see check_supported
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  std::array<int32_t, 256> byte_ids;  // -1 if the model has no byte pieces
  UserSymbols user_symbols;
  BpeRules rules;
};

}  // namespace tokamak
