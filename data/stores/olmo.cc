#include "data/stores/olmo.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/lines.h"
#include "base/printable.h"
#include "data/document_search.h"
#include "data/stores/delimited.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

constexpr std::string_view kNumpyMagic("\x93NUMPY", 6);

// The value of `'key': value` in a header's dictionary, which NumPy writes in one way only.
std::string_view numpy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(str("'", key, "': "));
  if (at == std::string_view::npos) return "";
  std::string_view rest = header.substr(at + key.size() + 4);
  const char opening = rest.empty() ? ' ' : rest[0];
  const size_t end = opening == '\'' ? rest.find('\'', 1) : opening == '(' ? rest.find(')') : rest.find_first_of(",}");
  return rest.substr(0, end == std::string_view::npos ? 0 : end + (opening == '\'' || opening == '(' ? 1 : 0));
}

TokenElement element_of_descr(std::string_view descr) {
  constexpr std::pair<std::string_view, TokenElement> kKnown[] = {
      {"'|u1'", TokenElement::kUint8},  {"'|i1'", TokenElement::kInt8},   {"'<u2'", TokenElement::kUint16},
      {"'<i2'", TokenElement::kInt16},  {"'<u4'", TokenElement::kUint32}, {"'<i4'", TokenElement::kInt32},
      {"'<u8'", TokenElement::kUint64}, {"'<i8'", TokenElement::kInt64}};
  for (const auto& [name, type] : kKnown) {
    if (name == descr) return type;
  }
  return TokenElement::kAuto;
}

constexpr int64_t kLongestRow = int64_t{1} << 20;  // bytes

// Documents by a .csv.gz, which has to be read whole: when the first document is asked for.
class ListedFile final : public TokenFile {
 public:
  ListedFile(const std::string& path, ShardInfo info, TokenLayout layout, std::string list, FilePool& pool)
      : TokenFile(path, std::move(info), layout, pool), list_(std::move(list)) {}

  void document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const override {
    const std::vector<int64_t>& all = starts();
    const auto read = [&](int64_t document, std::span<int64_t> piece) {
      std::copy_n(all.begin() + document, piece.size(), piece.begin());
    };
    append_document_starts(std::ssize(all), first, count, base, read, out);
  }
  void for_each_part(const std::function<void(const DocumentPart&)>& visit) const override {
    for (int64_t d = 0; d < std::ssize(starts()); ++d) visit({starts()[d], length(d)});
  }
  int64_t sequences() const override { return std::ssize(starts()); }
  int64_t memory_bytes() const override { return std::ssize(starts()) * int64_t{sizeof(int64_t)}; }
  void sequence_lengths(int64_t first, std::span<int32_t> out) const override {
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      if (length(first + i) > std::numeric_limits<int32_t>::max()) {
        fail(Kind::kData, str("document ", first + i, " of ", list_, " has ", length(first + i), " tokens"));
      }
      out[i] = static_cast<int32_t>(length(first + i));
    }
  }

 private:
  int64_t length(int64_t document) const {
    return (document + 1 < std::ssize(starts()) ? starts()[document + 1] : tokens()) - starts()[document];
  }
  const std::vector<int64_t>& starts() const {
    std::call_once(once_, [&] {
      LineReader lines(open_stream(list_, Kind::kData));
      std::vector<int64_t> found;
      std::string row;
      int64_t end = 0;
      while (lines.next(row, kLongestRow)) {
        parse_document_row(row, tokens(), str("line ", lines.line_number(), " of ", list_), end, found);
        if (std::ssize(found) > tokens()) {
          fail(Kind::kData, str(list_, " has more than ", tokens(), " documents, for as many tokens of ", path()));
        }
      }
      if (end != tokens()) {
        fail(Kind::kData, str(list_, " ends at token ", end, "; ", path(), " has ", tokens(), " tokens"));
      }
      starts_ = std::move(found);
    });
    return starts_;
  }

  std::string list_;
  mutable std::once_flag once_;
  mutable std::vector<int64_t> starts_;  // 8 bytes a document
};

}  // namespace

std::optional<TokenLayout> parse_numpy_header(std::string_view head, int64_t file_bytes, const std::string& path) {
  if (!starts_with(head, kNumpyMagic)) return std::nullopt;
  const auto refuse = [&](const std::string& what) { fail(Kind::kData, str(path, " is a NumPy file ", what)); };
  if (head.size() < 12) refuse(str("that ends inside its header: ", head.size(), " bytes"));
  const int version = static_cast<unsigned char>(head[6]);
  if (version < 1 || version > 3) refuse(str("of version ", version, "; 1 to 3 are known"));
  uint32_t length = 0;
  std::memcpy(&length, head.data() + 8, version == 1 ? 2 : 4);
  const int64_t begin = (version == 1 ? 10 : 12) + int64_t{length};
  if (begin > std::ssize(head)) {
    refuse(str("with a header of ", begin, " bytes; the file has ", file_bytes, ", and no header of tokens more than ",
               kNumpyHead));
  }
  const std::string_view header = head.substr(version == 1 ? 10 : 12, length);
  const std::string_view descr = numpy_value(header, "descr");
  const std::string_view shape = numpy_value(header, "shape");
  const TokenElement type = element_of_descr(descr);
  if (type == TokenElement::kAuto) refuse(str("of type ", printable(descr), "; tokens are little-endian integers"));
  int64_t tokens = -1;
  const auto [end, error] =
      std::from_chars(shape.data() + std::min<size_t>(1, shape.size()), shape.data() + shape.size(), tokens);
  const std::string_view rest(end, static_cast<size_t>(shape.data() + shape.size() - end));
  if (error != std::errc() || tokens < 0 || (rest != ",)" && rest != ", )")) {
    refuse(str("of shape ", printable(shape), "; tokens have one dimension"));
  }
  if ((file_bytes - begin) % element_bytes(type) != 0 || (file_bytes - begin) / element_bytes(type) != tokens) {
    refuse(
        str("of ", file_bytes, " bytes; ", tokens, " tokens of ", element_bytes(type), " bytes follow byte ", begin));
  }
  return TokenLayout{type, begin, tokens};
}

void parse_document_row(std::string_view row, int64_t tokens, const std::string& where, int64_t& end,
                        std::vector<int64_t>& starts) {
  int64_t bounds[2] = {-1, -1};
  const char* at = row.data();
  const char* const last = row.data() + row.size();
  bool read = true;
  for (int64_t& bound : bounds) {
    const auto [stop, error] = std::from_chars(at, last, bound);
    read = read && error == std::errc() && (stop == last || *stop == ',');
    at = stop == last ? last : stop + 1;
  }
  if (!read || bounds[0] != end || bounds[1] < bounds[0] || bounds[1] > tokens) {
    fail(Kind::kData, str(where, " is ", printable(row), "; expected START,END,... with START ", end,
                          " and END from it to ", tokens));
  }
  starts.push_back(bounds[0]);
  end = bounds[1];
}

std::unique_ptr<TokenStore> open_olmo(const std::string& path, TokenElement type, int32_t delimiter, FilePool& pool) {
  const FilePool::Lease lease = pool.open(path);
  const InputFile& file = lease.file();
  std::string head(static_cast<size_t>(std::min(kNumpyHead, file.size())), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  std::optional<TokenLayout> layout = parse_numpy_header(head, file.size(), path);
  if (layout && type != TokenElement::kAuto && type != layout->type) {
    fail(Kind::kData, str(path, " has tokens of ", element_name(layout->type), "; token_type is ", element_name(type)));
  }
  if (!layout) {
    if (type == TokenElement::kAuto) {
      fail(Kind::kData, str(path, " is raw: nothing in it says what type its tokens have"),
           "set token_type; Dolma writes uint16 for vocabularies up to 65536, else uint32");
    }
    if (file.size() % element_bytes(type) != 0) {
      fail(Kind::kData, str(path, " is ", file.size(), " bytes long, no multiple of ", element_bytes(type),
                            ", the bytes of ", element_name(type)));
    }
    layout = {type, 0, file.size() / element_bytes(type)};
  }
  ShardInfo info;
  info.name = std::filesystem::path(path).filename().string();
  info.tokens = layout->tokens;
  info.bytes = file.size();
  info.hash = sampled_identity(str("olmo ", element_name(layout->type)), file);
  const std::string list = (path.ends_with(".npy") ? path.substr(0, path.size() - 4) : path) + ".csv.gz";
  if (exists(list)) {
    const FilePool::Lease listed = pool.open(list);
    info.index_bytes = listed.file().size();
    info.index_hash = sampled_identity("olmo", listed.file());
    return std::make_unique<ListedFile>(path, info, *layout, list, pool);
  }
  return std::make_unique<DelimitedFile>(path, info, *layout, delimiter, DelimiterPlace::kBehind, pool);
}

}  // namespace tokamak
