// A file of tokens without an index of its documents. A delimiter token, before or behind each document, is all that
// shows them; it is looked for in the tokens that are asked for, and nowhere else.
#pragma once

#include <functional>
#include <vector>

#include "data/stores/token_file.h"

namespace tokamak {

// kBefore: llm.c's files, which are cut anywhere, so that their first document may be another file's. kBehind: the
// first token begins a document.
enum class DelimiterPlace { kBefore, kBehind };

class DelimitedFile : public TokenFile {
 public:
  // `delimiter` -1: unknown; then knows_documents() is false and no document begins anywhere.
  DelimitedFile(const std::string& path, ShardInfo info, TokenLayout layout, int32_t delimiter, DelimiterPlace place,
                FilePool& pool);

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override;
  bool knows_documents() const override { return delimiter_ >= 0; }
  void for_each_part(const std::function<void(const DocumentPart&)>& visit) const override;

 private:
  int32_t delimiter_;
  DelimiterPlace place_;
};

}  // namespace tokamak
