#include "data/stores/datatrove.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/printable.h"
#include "data/document_search.h"
#include "data/stores/delimited.h"

namespace tokamak {

namespace {

constexpr int64_t kEndsAtOnce = 4096;
constexpr int64_t kLargestMetadata = 4096;  // bytes

class DatatroveStore final : public TokenFile {
 public:
  DatatroveStore(const std::string& path, ShardInfo info, TokenLayout layout, FilePool& pool)
      : TokenFile(path, std::move(info), layout, pool), index_path_(path + ".index") {}

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override {
    const auto read = [&](int64_t document, std::span<int64_t> starts) {
      // A document begins where the one before it ends.
      if (document == 0) starts[0] = 0;
      read_ends(std::max<int64_t>(document - 1, 0), document == 0 ? starts.subspan(1) : starts);
    };
    append_document_starts(info().documents, first, count, base, read, out);
  }

  void sequence_lengths(int64_t first, std::span<int32_t> out) const override {
    std::vector<int64_t> ends;
    int64_t begin = 0;
    if (first > 0) read_ends(first - 1, std::span(&begin, 1));
    for (int64_t done = 0; done < std::ssize(out);) {
      ends.resize(std::min(kEndsAtOnce, std::ssize(out) - done));
      read_ends(first + done, ends);
      for (const int64_t end : ends) {
        const int64_t length = end - begin;
        if (length < 0 || length > std::numeric_limits<int32_t>::max()) {
          fail(Kind::kData, str("document ", first + done, " of ", index_path_, " has ", length, " tokens"));
        }
        out[done++] = static_cast<int32_t>(length);
        begin = end;
      }
    }
  }

  void for_each_part(const std::function<void(const DocumentPart&)>& visit) const override {
    std::vector<int64_t> ends;
    int64_t first = 0;
    for (int64_t at = 0; at < info().documents; at += kEndsAtOnce) {
      ends.resize(std::min(kEndsAtOnce, info().documents - at));
      read_ends(at, ends);
      for (size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < first) refuse_end(at + static_cast<int64_t>(i), ends[i], first);
        visit({first, ends[i] - first});
        first = ends[i];
      }
    }
  }

 private:
  [[noreturn]] void refuse_end(int64_t document, int64_t end, int64_t least) const {
    fail(Kind::kData, str("document ", document, " of ", index_path_, " ends at token ", static_cast<uint64_t>(end),
                          "; expected ", least, " to ", tokens()));
  }

  // Fills `out` with the ends of documents `document`, `document` + 1, ...
  void read_ends(int64_t document, std::span<int64_t> out) const {
    if (out.empty()) return;
    read_values(pool().open(index_path_).file(), 8 * document, out);
    int64_t last = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] < last || out[i] > tokens()) refuse_end(document + static_cast<int64_t>(i), out[i], last);
      last = out[i];
    }
  }

  std::string index_path_;
};

// -1: it is no count.
int64_t count_of(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return -1;
  return value;
}

std::string identity_of(const InputFile& file, TokenElement type, int64_t tokens) {
  return sampled_identity(str("datatrove ", element_name(type), " ", tokens), file);
}

}  // namespace

DatatroveMetadata parse_datatrove_metadata(std::string_view text, const std::string& path) {
  const std::vector<std::string> lines = split(text, '\n');
  const size_t bar = lines[0].rfind('|');
  const int64_t bytes = bar == std::string::npos ? -1 : count_of(std::string_view(lines[0]).substr(bar + 1));
  const int64_t tokens = lines.size() < 2 ? -1 : count_of(trim(lines[1]));
  if ((bytes != 2 && bytes != 4) || tokens < 0) {
    fail(Kind::kData, str(path, " begins with ", printable(text),
                          "; expected TOKENIZER|2 or TOKENIZER|4, and a line "
                          "with the number of tokens"));
  }
  return {lines[0].substr(0, bar), bytes, tokens};
}

std::unique_ptr<TokenStore> open_datatrove(const std::string& path, TokenElement type, int32_t delimiter,
                                           FilePool& pool) {
  if (exists(path + ".loss")) {
    fail(Kind::kData,
         str(path, ".loss is a loss mask, which is not supported: tokens that it leaves out would be trained on"),
         "move it away to train on all tokens");
  }
  const FilePool::Lease lease = pool.open(path);
  const int64_t size = lease.file().size();
  std::optional<DatatroveMetadata> metadata;
  if (exists(path + ".metadata")) {
    metadata =
        parse_datatrove_metadata(read_text(path + ".metadata", Kind::kData, kLargestMetadata), path + ".metadata");
    const TokenElement said = metadata->token_bytes == 2 ? TokenElement::kUint16 : TokenElement::kUint32;
    if (type != TokenElement::kAuto && element_bytes(type) != element_bytes(said)) {
      fail(Kind::kData,
           str(path, ".metadata says ", metadata->token_bytes, " bytes a token; token_type is ", element_name(type)));
    }
    type = said;
    if (size % metadata->token_bytes != 0 || size / metadata->token_bytes != metadata->tokens) {
      fail(Kind::kData, str(path, " is ", size, " bytes long; its .metadata says ", metadata->tokens, " tokens of ",
                            metadata->token_bytes, " bytes"));
    }
  }
  ShardInfo info;
  info.name = std::filesystem::path(path).filename().string();
  info.bytes = size;
  if (!exists(path + ".index")) {
    if (type == TokenElement::kAuto) {
      fail(Kind::kData, str(path, " has neither .index nor .metadata to say how long a token is"), "set token_type");
    }
    if (size % element_bytes(type) != 0) {
      fail(Kind::kData, str(path, " is ", size, " bytes long; its tokens have ", element_bytes(type)));
    }
    info.tokens = size / element_bytes(type);
    info.hash = identity_of(lease.file(), type, info.tokens);
    return std::make_unique<DelimitedFile>(path, info, TokenLayout{type, 0, info.tokens}, delimiter,
                                           DelimiterPlace::kBehind, pool);
  }

  const FilePool::Lease index_lease = pool.open(path + ".index");
  const InputFile& index = index_lease.file();
  if (index.size() % 8 != 0)
    fail(Kind::kData, str(index.path(), " is ", index.size(), " bytes long, no multiple of 8"));
  info.documents = index.size() / 8;
  info.index_bytes = index.size();
  uint64_t tokens = 0;
  if (info.documents > 0) read_values(index, index.size() - 8, std::span(&tokens, 1));
  if (type == TokenElement::kAuto) type = uint64_t(size) == 4 * tokens ? TokenElement::kUint32 : TokenElement::kUint16;
  const int64_t width = element_bytes(type);
  if (size % width != 0 || uint64_t(size / width) != tokens) {
    fail(Kind::kData,
         str(path, " is ", size, " bytes long; its .index ends at token ", tokens, ", and tokens have ",
             metadata ? str(width) : std::string("2 or 4"), " bytes"),
         "the copy is incomplete, or .ds and .ds.index do not belong to each other");
  }
  info.tokens = size / width;
  info.hash = identity_of(lease.file(), type, info.tokens);
  info.index_hash = identity_of(index, type, info.documents);
  return std::make_unique<DatatroveStore>(path, info, TokenLayout{type, 0, info.tokens}, pool);
}

}  // namespace tokamak
