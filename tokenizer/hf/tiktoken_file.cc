#include "tokenizer/hf/tiktoken_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/strings.h"
#include "tokenizer/hf/byte_map.h"
#include "tokenizer/hf/tiktoken_presets.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestRank = (int64_t{1} << 24) - 1;
constexpr int64_t kMostUnusedRanks = 1 << 16;
constexpr std::string_view kCopyPrefix = "tokenizer.", kCopySuffix = ".tiktoken";

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

std::optional<int64_t> decode_rank(std::string_view text) {
  int64_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0 || rank > kLargestRank) return std::nullopt;
  return rank;
}

// The pieces by rank.
std::vector<std::string> read_lines(std::string_view text, const std::string& path) {
  std::vector<std::string> pieces;
  int64_t number = 0, count = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto refuse = [&](const char* what) {
      fail(Kind::kData, str(path, ": line ", number, " is '", printable(line, 60), "'; ", what));
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) refuse("expected base64, a space and a rank");
    const std::optional<int64_t> rank = decode_rank(line.substr(space + 1));
    if (!rank) refuse("expected a rank below 16777216");
    const auto id = static_cast<size_t>(*rank);
    if (*rank > 2 * number + kMostUnusedRanks) refuse("the rank is far beyond the number of lines");
    if (id >= pieces.size()) pieces.resize(id + 1);
    if (!pieces[id].empty()) refuse("the rank is there twice");
    pieces[id] = base64_bytes(line.substr(0, space), str(path, ": line ", number));
    ++count;
  }
  if (count == 0) fail(Kind::kData, str(path, " holds no pieces"));
  return pieces;
}

}  // namespace

std::string base64_bytes(std::string_view text, const std::string& where) {
  std::optional<std::string> bytes = decode_base64(text);
  if (!bytes || bytes->empty() || bytes->size() > UINT16_MAX) {
    fail(Kind::kData, str(where, ": '", printable(text, 60), "' is no base64 of 1 to ", UINT16_MAX, " bytes"));
  }
  return std::move(*bytes);
}

std::vector<BpeMerge> merges_of_ranks(const std::vector<std::string>& pieces) {
  VocabTable table;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].empty()) table.add(pieces[id], static_cast<int32_t>(id));
  }
  struct Cut {
    BpeMerge merge;
    std::string_view left, right;
    uint32_t hash;  // of the part that is looked up next
  };
  constexpr size_t kBatch = 64;  // the slots of this many are fetched at once
  std::vector<Cut> cuts;
  std::vector<BpeMerge> merges;
  const auto resolve = [&] {
    for (Cut& cut : cuts) {
      cut.merge.left = table.find(cut.left, cut.hash);
      if (cut.merge.left < 0) continue;
      cut.hash = table.hash(cut.right);
      table.prefetch_slot(cut.hash);
    }
    const size_t first = merges.size();
    for (Cut& cut : cuts) {
      if (cut.merge.left < 0 || (cut.merge.right = table.find(cut.right, cut.hash)) < 0) continue;
      merges.push_back(cut.merge);
    }
    std::sort(merges.begin() + static_cast<int64_t>(first), merges.end(), [](const BpeMerge& a, const BpeMerge& b) {
      return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
    });
    cuts.clear();
  };
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces[id];
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      const std::string_view left = piece.substr(0, cut);
      cuts.push_back(
          {{static_cast<uint32_t>(id), -1, -1, static_cast<int32_t>(id)}, left, piece.substr(cut), table.hash(left)});
      table.prefetch_slot(cuts.back().hash);
    }
    if (cuts.size() >= kBatch) resolve();
  }
  resolve();
  return merges;
}

BpeSpec byte_level_model(const std::vector<std::string>& pieces, const std::string& path) {
  BpeSpec model;
  std::array<bool, 256> bytes{};
  std::string printable_piece;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].empty()) continue;
    if (pieces[id].size() == 1) bytes[static_cast<unsigned char>(pieces[id][0])] = true;
    printable_piece.clear();
    append_printable_bytes(pieces[id], printable_piece);
    if (!model.pieces.add(printable_piece, static_cast<int32_t>(id))) {
      fail(Kind::kData, str(path, ": the piece '", printable(pieces[id]), "' is there twice, also as ", id));
    }
  }
  const auto missing = std::find(bytes.begin(), bytes.end(), false);
  if (missing != bytes.end()) fail(Kind::kData, str(path, ": the byte ", missing - bytes.begin(), " is no piece"));
  model.merges = merges_of_ranks(pieces);
  model.whole_pieces = true;
  return model;
}

void set_byte_level_steps(std::string_view pattern, TokenizerSpec& spec) {
  PreTokenizerStep split;
  split.kind = PreTokenizerStep::Kind::kSplit;
  split.pattern = {SearchPattern::Kind::kRegex, std::string(pattern)};
  spec.pre_tokenizer = {split, PreTokenizerStep{}};
  spec.decoder = std::vector<DecoderStep>{DecoderStep{}};
}

TokenizerSpec parse_tiktoken(std::string_view text, const std::string& path, const std::string& preset) {
  const TiktokenPreset known = tiktoken_preset(preset, path);
  const std::vector<std::string> pieces = read_lines(text, path);
  TokenizerSpec spec;
  spec.path = path;
  spec.format = "tiktoken";
  spec.preset = preset;
  spec.model = byte_level_model(pieces, path);
  set_byte_level_steps(known.pattern, spec);
  if (known.nfc) spec.normalizer.push_back({});
  for (const auto& [content, offset] : known.special_tokens) {
    AddedToken token;
    token.content = content;
    token.id = static_cast<int32_t>((known.first_special < 0 ? std::ssize(pieces) : known.first_special) + offset);
    token.special = true;
    if (spec.model.pieces.has(token.id)) {
      fail(Kind::kData, str(path, ": the preset ", preset, " has the id ", token.id, " for ", content,
                            ", but the file has a piece of this rank: it is of another vocabulary"));
    }
    if (content == known.bos) spec.bos_id = token.id;
    if (content == known.eos) spec.eos_id = token.id;
    spec.added.push_back(std::move(token));
  }
  return spec;
}

TokenizerSpec read_tiktoken_file(const std::string& path, const std::string& preset) {
  const std::string text = read_text(path, Kind::kData);
  TokenizerSpec spec = parse_tiktoken(text, path, preset);
  const std::string identity = str("#", preset);
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(text)));
  hasher.update(std::as_bytes(std::span(identity)));
  spec.hash = hasher.hex128();
  return spec;
}

bool looks_like_tiktoken(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const size_t space = line.find(' ');
  return space != std::string_view::npos && decode_base64(line.substr(0, space)) &&
         decode_rank(trim(line.substr(space + 1)));
}

std::string name_with_preset(const std::string& preset) { return str(kCopyPrefix, preset, kCopySuffix); }

std::string preset_of_name(std::string_view name) {
  if (!name.starts_with(kCopyPrefix) || !name.ends_with(kCopySuffix)) return "";
  if (name.size() <= kCopyPrefix.size() + kCopySuffix.size()) return "";
  name.remove_prefix(kCopyPrefix.size());
  name.remove_suffix(kCopySuffix.size());
  return std::string(name);
}

}  // namespace tokamak
