#include "data/stores/delimited.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace tokamak {

namespace {

// Documents are part of a store's identity.
ShardInfo with_delimiter(ShardInfo info, int32_t delimiter) {
  info.index_hash = str("delimiter ", delimiter);
  return info;
}

}  // namespace

DelimitedFile::DelimitedFile(const std::string& path, ShardInfo info, TokenLayout layout, int32_t delimiter,
                             DelimiterPlace place, FilePool& pool)
    : TokenFile(path, with_delimiter(std::move(info), delimiter), layout, pool), delimiter_(delimiter), place_(place) {}

void DelimitedFile::document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const {
  if (delimiter_ < 0 || count == 0) return;
  const int64_t behind =
      place_ == DelimiterPlace::kBehind ? 1 : 0;  // tokens from a delimiter to the start that it marks
  const int64_t begin = std::max<int64_t>(first - behind, 0);
  if (first == 0 && behind == 1) out.push_back(static_cast<int32_t>(base));
  std::vector<int32_t> ids(first + count - behind - begin);
  read(begin, int64_t{std::numeric_limits<int32_t>::max()} + 1, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != delimiter_) continue;
    out.push_back(static_cast<int32_t>(base + begin + static_cast<int64_t>(i) + behind - first));
  }
}

void DelimitedFile::for_each_part(const std::function<void(const DocumentPart&)>& visit) const {
  if (!knows_documents()) {
    fail(Kind::kData, str(path(), " has no index of documents, and no delimiter between them is known"),
         "give a tokenizer, or the id with delimiter_id");
  }
  TokenFile::for_each_part([&](const DocumentPart& part) {
    // The next file begins with the rest of this document, or with a delimiter.
    const bool cut = place_ == DelimiterPlace::kBefore && part.first + part.tokens == tokens();
    visit({part.first, part.tokens, !cut});
  });
}

}  // namespace tokamak
