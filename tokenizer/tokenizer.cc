#include "tokenizer/tokenizer.h"

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak {

std::string_view Tokenizer::piece(int32_t id) const {
  if (id >= 0 && id < vocab_size()) return piece_at(id);
  fail(Kind::kData, str("token id ", id, " is not in the vocabulary of ", path(), " (0 to ", vocab_size() - 1, ")"));
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) { return load_sentencepiece(path); }

void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer) {
  if (hash.empty() || hash == tokenizer.hash()) return;
  fail(Kind::kData, str(made, " was made with tokenizer ", printable(hash), ", not with ", tokenizer.path(), ", ",
                        tokenizer.hash()));
}

}  // namespace tokamak
