// The kinds of tokens. The numbers are those of SentencePiece's models and of GGUF's `tokenizer.ggml.token_type`.
#pragma once

namespace tokamak {

enum class PieceType : int {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // left out of decoded text
  kUserDefined = 4,  // cut out of the text before the model sees it
  kUnused = 5,       // an id without a piece
  kByte = 6,         // like <0xE4>
};

const char* name_of(PieceType type);  // "normal"; "unknown" for any other number

}  // namespace tokamak
