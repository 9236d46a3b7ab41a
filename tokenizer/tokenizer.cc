#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/run_files.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/json_cursor.h"
#include "tokenizer/hf/special_ids.h"
#include "tokenizer/hf/tekken_file.h"
#include "tokenizer/hf/tiktoken_file.h"
#include "tokenizer/hf/tokenizer_json.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak {

namespace {

constexpr std::string_view kTextPolicy = "-text";

// The hash without the policy.
std::string_view vocabulary_hash(std::string_view hash) {
  if (hash.ends_with(kTextPolicy)) hash.remove_suffix(kTextPolicy.size());
  return hash;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string first_bytes(const std::string& path) {
  const InputFile file(path, Kind::kData);
  std::string bytes(static_cast<size_t>(std::min<int64_t>(file.size(), 4096)), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// The first key of a JSON file says what it is.
TokenizerSpec read_json_file(const std::string& path, const std::string& head) {
  JsonCursor json(head, path);
  std::string buffer;
  json.expect('{');
  const std::string key(json.string(buffer));
  constexpr std::array<std::string_view, 9> kOfTokenizerJson = {"version",        "truncation", "padding",
                                                                "added_tokens",   "normalizer", "pre_tokenizer",
                                                                "post_processor", "decoder",    "model"};
  if (std::find(kOfTokenizerJson.begin(), kOfTokenizerJson.end(), key) != kOfTokenizerJson.end()) {
    return read_tokenizer_json(path);
  }
  if (is_tekken_key(key)) return read_tekken_file(path);
  fail(Kind::kData,
       str(path, " is JSON that begins with '", printable(key), "': it is no tokenizer.json and no tekken.json"));
}

std::unique_ptr<Tokenizer> load_file(const std::string& path, const std::string& preset, SpecialsPolicy specials) {
  const std::string head = first_bytes(path);
  if (!preset.empty()) return std::make_unique<HfTokenizer>(read_tiktoken_file(path, preset), specials);
  if (head.find_first_not_of(" \t\r\n") != std::string::npos && head[head.find_first_not_of(" \t\r\n")] == '{') {
    return std::make_unique<HfTokenizer>(read_json_file(path, head), specials);
  }
  if (looks_like_tiktoken(head)) {
    fail(Kind::kData, str(path, " is a tiktoken file, which does not hold its pattern and special tokens"),
         str("name them: ", path, "#PRESET, with one of ", tiktoken_presets()));
  }
  if (path.ends_with(".json")) fail(Kind::kData, str(path, " is not JSON: it begins with no {"));
  return load_sentencepiece(path);
}

// 0 if it cannot be read.
int64_t tokens_of(const std::string& path) {
  try {
    return load_tokenizer(path)->vocab_size();
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

void Tokenizer::expect_in_vocabulary(int32_t id) const {
  if (id >= 0 && id < vocab_size()) return;
  fail(Kind::kData, str("token id ", id, " is not in the vocabulary of ", path(), " (0 to ", vocab_size() - 1, ")"));
}

std::string_view Tokenizer::piece(int32_t id) const {
  expect_in_vocabulary(id);
  return piece_at(id);
}

PieceType Tokenizer::kind(int32_t id) const {
  expect_in_vocabulary(id);
  return kind_at(id);
}

void Tokenizer::set_eos(std::string_view piece) {
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (piece_at(id) != piece || kind_at(id) == PieceType::kUnused) continue;
    info_.eos_id = id;
    return;
  }
  fail(Kind::kData, str("'", printable(piece), "' is no token of ", path(), ", so it cannot end documents"));
}

std::string find_tokenizer(const std::string& directory) {
  const std::string json = run_files::at(directory, "tokenizer.json"),
                    model = run_files::at(directory, run_files::kTokenizer);
  if (exists(model)) return exists(json) && tokens_of(json) > tokens_of(model) ? json : model;
  if (exists(json)) return json;
  if (const std::string tekken = run_files::at(directory, "tekken.json"); exists(tekken)) return tekken;
  if (!is_directory(directory)) return "";
  for (const std::string& name : list_directory(directory, Kind::kData)) {
    if (!preset_of_name(name).empty()) return directory + "/" + name;
  }
  return "";
}

std::vector<std::string> tokenizer_files(const std::string& path) {
  std::vector<std::string> names = {file_name(path)};
  if (names[0] != "tokenizer.json") return names;
  for (const char* name : kFilesBesideTokenizerJson) {
    if (exists(run_files::at(parent_directory(path), name))) names.push_back(name);
  }
  return names;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const TokenizerChoices& choices) {
  if (is_directory(path)) {
    const std::string found = find_tokenizer(path);
    if (found.empty()) fail(Kind::kData, str(path, " holds no tokenizer.json, tokenizer.model or tekken.json"));
    return load_tokenizer(found, choices);
  }
  const size_t mark = path.rfind('#');
  const bool names_preset = mark != std::string::npos && !exists(path);
  std::unique_ptr<Tokenizer> tokenizer = names_preset
                                             ? load_file(path.substr(0, mark), path.substr(mark + 1), choices.specials)
                                             : load_file(path, preset_of_name(file_name(path)), choices.specials);
  if (!choices.eos.empty()) tokenizer->set_eos(choices.eos);
  return tokenizer;
}

SpecialsPolicy specials_policy_of(std::string_view hash) {
  return hash.ends_with(kTextPolicy) ? SpecialsPolicy::kText : SpecialsPolicy::kIds;
}

std::string hash_with_policy(std::string hash, SpecialsPolicy specials) {
  return specials == SpecialsPolicy::kText ? hash.append(kTextPolicy) : hash;
}

void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer) {
  if (hash.empty() || vocabulary_hash(hash) == vocabulary_hash(tokenizer.hash())) return;
  fail(Kind::kData, str(made, " was made with tokenizer ", printable(hash), ", not with ", tokenizer.path(), ", ",
                        tokenizer.hash()));
}

}  // namespace tokamak
