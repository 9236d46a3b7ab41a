#include "data/stores/source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "data/shard_reader.h"
#include "data/stores/datatrove.h"
#include "data/stores/llmc.h"
#include "data/stores/mds.h"
#include "data/stores/olmo.h"
#include "formats/compressed_stream.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

// The files that a source's path may mean: a directory's, itself, or those whose paths begin with it.
struct Candidates {
  const SourceOptions& source;
  bool is_file = false;
  std::vector<std::string> files;  // sorted

  std::vector<std::string> ending(std::string_view suffix) const {
    std::vector<std::string> found;
    std::copy_if(files.begin(), files.end(), std::back_inserter(found),
                 [&](const std::string& file) { return file.ends_with(suffix); });
    return found;
  }
};

struct StoreOptions {
  SequenceOrder order = SequenceOrder::kContiguous;
  TokenElement type = TokenElement::kAuto;
  int32_t delimiter = -1;
};

Candidates candidates_at(const SourceOptions& source) {
  Candidates out{source, false, {}};
  const std::string& path = source.path;
  if (is_directory(path)) {
    for (const std::string& name : list_directory(path, Kind::kData)) out.files.push_back(path + "/" + name);
  } else if (exists(path)) {
    out.is_file = true;
    out.files = {path};
  } else if (const std::string parent = parent_directory(path); is_directory(parent)) {
    const std::string prefix = std::filesystem::path(path).filename().string();
    const std::string before = path.substr(0, path.size() - prefix.size());
    for (const std::string& name : list_directory(parent, Kind::kData)) {
      if (starts_with(name, prefix)) out.files.push_back(before + name);
    }
  }
  return out;
}

// The first bytes of a file, at most N; zeros behind its end.
template <size_t N>
std::array<char, N> beginning_of(const std::string& path) {
  std::array<char, N> bytes{};
  const InputFile file(path, Kind::kData);
  const auto view = std::as_writable_bytes(std::span(bytes)).first(std::min<int64_t>(N, file.size()));
  file.read_at(0, view);
  return bytes;
}

std::string without_suffix(const std::string& path, std::string_view suffix) {
  return path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : path;
}

// Each finder returns the paths of the stores among the candidates, for openers of its format; none if they are of
// another.
std::vector<std::string> find_tokamak(const Candidates& at) {
  const std::string manifest = at.source.path + "/" + kDatasetManifest;
  return std::count(at.files.begin(), at.files.end(), manifest) > 0 ? std::vector<std::string>{at.source.path}
                                                                    : std::vector<std::string>{};
}

std::vector<std::string> find_mds(const Candidates& at) {
  const std::string index = at.source.path + "/index.json";
  return std::count(at.files.begin(), at.files.end(), index) > 0 ? std::vector<std::string>{at.source.path}
                                                                 : std::vector<std::string>{};
}

std::vector<std::string> find_megatron(const Candidates& at) {
  std::vector<std::string> prefixes;
  if (at.is_file) {
    const std::string prefix = without_suffix(without_suffix(at.source.path, ".bin"), ".idx");
    if (exists(prefix + ".idx")) prefixes = {prefix};
  } else if (exists(at.source.path + ".idx")) {
    prefixes = {at.source.path};
  } else {
    for (const std::string& index : at.ending(".idx")) prefixes.push_back(without_suffix(index, ".idx"));
  }
  if (prefixes.empty()) return {};
  const auto magic = beginning_of<7>(prefixes[0] + ".idx");
  const std::string_view begins(magic.data(), magic.size());
  if (begins != "MMIDIDX" && !starts_with(begins, "TNTIDX")) return {};
  if (!is_directory(at.source.path)) return prefixes;
  for (const std::string& bin : at.ending(".bin")) {
    if (std::find(prefixes.begin(), prefixes.end(), without_suffix(bin, ".bin")) != prefixes.end()) continue;
    fail(Kind::kData, str(bin, " has no index (.idx) next to it; the other files of ", at.source.path, " have one"));
  }
  return prefixes;
}

std::vector<std::string> find_llmc(const Candidates& at) {
  const std::vector<std::string> files = at.is_file ? at.files : at.ending(".bin");
  if (files.empty()) return {};
  int32_t magic;
  std::memcpy(&magic, beginning_of<4>(files[0]).data(), 4);
  if (!is_llmc_magic(magic)) return {};
  const auto has = [&](std::string_view part) {
    return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      return std::filesystem::path(file).filename().string().find(part) != std::string::npos;
    });
  };
  if (has("_val_") && has("_train_")) {
    fail(Kind::kData,
         str(at.source.path, " holds shards of training and of validation, ", files.front(), " to ", files.back()),
         "name a beginning of their paths, like DIR/fineweb_train, as a source, and the other as a validation source");
  }
  return files;
}

std::vector<std::string> find_datatrove(const Candidates& at) {
  return at.is_file && at.source.format == SourceFormat::kDatatrove ? at.files : at.ending(".ds");
}

// Also any file or .bin whose type of tokens is said: nothing in raw tokens could be recognised.
std::vector<std::string> find_olmo(const Candidates& at) {
  const bool said = at.source.token_type != TokenElement::kAuto;
  if (at.is_file && (said || at.source.format == SourceFormat::kOlmo)) return at.files;
  std::vector<std::string> files = at.ending(".npy");
  if (files.empty() && said) files = at.ending(".bin");
  return files;
}

bool is_json_lines(const std::string& path) { return without_compression(path).ends_with(".jsonl"); }

// The path itself, if it is text or a directory with some: data/prepare finds the files. A said type of tokens means
// raw tokens.
std::vector<std::string> find_text(const Candidates& at) {
  if (at.source.format == SourceFormat::kJsonl) return {at.source.path};
  if (at.source.token_type != TokenElement::kAuto) return {};
  if (!at.is_file && !is_directory(at.source.path)) return {};
  const bool any = std::any_of(at.files.begin(), at.files.end(), is_json_lines);
  return any ? std::vector<std::string>{at.source.path} : std::vector<std::string>{};
}

TokenStores open_each(const std::vector<std::string>& paths,
                      const std::function<std::unique_ptr<TokenStore>(const std::string&)>& open) {
  TokenStores stores;
  for (const std::string& path : paths) stores.push_back(open(path));
  return stores;
}

struct FormatEntry {
  SourceFormat format;
  std::vector<std::string> (*find)(const Candidates&);
  TokenStores (*open)(const std::vector<std::string>& paths, const StoreOptions&, FilePool&);  // ours: by its manifest
};

TokenStores refuse_text(const std::vector<std::string>& paths, const StoreOptions&, FilePool&) {
  fail(Kind::kData, str(paths[0], " is text, not tokens"),
       "tokamak train tokenizes it before the run; for other commands: tokamak data tokenize");
}

// In the order in which they are recognised. kJsonl is made a data set of ours before a source is opened.
constexpr FormatEntry kFormats[] = {
    {SourceFormat::kTokamak, find_tokamak, nullptr},
    {SourceFormat::kMds, find_mds,
     [](const auto& paths, const StoreOptions& options, FilePool& pool) {
       return open_each(paths, [&](const auto& path) { return open_mds(path, options.type, pool); });
     }},
    {SourceFormat::kMegatron, find_megatron,
     [](const auto& paths, const StoreOptions& options, FilePool& pool) {
       return open_each(paths,
                        [&](const auto& path) { return std::make_unique<MegatronStore>(path, options.order, pool); });
     }},
    {SourceFormat::kLlmc, find_llmc,
     [](const auto& paths, const StoreOptions& options, FilePool& pool) {
       return open_each(paths, [&](const auto& path) { return open_llmc(path, options.delimiter, pool); });
     }},
    {SourceFormat::kDatatrove, find_datatrove,
     [](const auto& paths, const StoreOptions& options, FilePool& pool) {
       return open_each(paths,
                        [&](const auto& path) { return open_datatrove(path, options.type, options.delimiter, pool); });
     }},
    {SourceFormat::kOlmo, find_olmo,
     [](const auto& paths, const StoreOptions& options, FilePool& pool) {
       return open_each(paths,
                        [&](const auto& path) { return open_olmo(path, options.type, options.delimiter, pool); });
     }},
    {SourceFormat::kJsonl, find_text, refuse_text},
};

struct Found {
  const FormatEntry& entry;
  std::vector<std::string> paths;
};

Found find_format(const SourceOptions& source) {
  const Candidates at = candidates_at(source);
  for (const FormatEntry& entry : kFormats) {
    if (source.format != SourceFormat::kAuto && source.format != entry.format) continue;
    std::vector<std::string> paths = entry.find(at);
    if (!paths.empty()) return {entry, std::move(paths)};
  }
  const bool ours = source.format == SourceFormat::kTokamak || source.format == SourceFormat::kAuto;
  if (ours && !at.is_file && (at.files.empty() || is_directory(source.path)))
    static_cast<void>(read_manifest(source.path));
  if (source.format == SourceFormat::kAuto) {
    fail(Kind::kData, str(source.path, " is no data set of a known format"),
         str("known are ", join(enum_names(source.format), ", "), "; set format, and token_type for raw tokens"));
  }
  fail(Kind::kData, str(source.path, " has no files of the format ", enum_name(source.format)),
       "leave format out to have it detected");
}

int32_t given_delimiter(const SourceOptions& source, const Tokenizer* tokenizer) {
  const int64_t end = tokenizer == nullptr ? std::numeric_limits<int32_t>::max() : tokenizer->vocab_size();
  if (source.delimiter_id < end) return static_cast<int32_t>(source.delimiter_id);
  fail(Kind::kConfig, str("delimiter_id of ", source.path, " is ", source.delimiter_id, "; ids end below ", end));
}

// The first of llm.c's files begins with the delimiter: BOS for Llama 3, EOS for others. -1: neither.
int32_t first_of_llmc(const std::string& path, const Tokenizer& tokenizer) {
  FilePool pool;
  const std::unique_ptr<TokenStore> store = open_llmc(path, -1, pool);
  int32_t first = -1;
  if (store->tokens() > 0) store->read(0, tokenizer.vocab_size(), std::span(&first, 1));
  return first == tokenizer.bos_id() || first == tokenizer.eos_id() ? first : -1;
}

int32_t delimiter_of(const SourceOptions& source, const Found& found, const Tokenizer* tokenizer) {
  if (source.delimiter_id >= 0) return given_delimiter(source, tokenizer);
  if (tokenizer == nullptr) return -1;
  return found.entry.format == SourceFormat::kLlmc ? first_of_llmc(found.paths[0], *tokenizer) : tokenizer->eos_id();
}

void set_tokenizer(const SourceOptions& source, const Tokenizer& tokenizer, Manifest& manifest) {
  const std::filesystem::path path = std::filesystem::absolute(source.tokenizer);
  manifest.tokenizer = {path.filename().string(), tokenizer.hash(), path.string()};
  manifest.vocab_size = tokenizer.vocab_size();
}

// The manifest, and the delimiter of its documents.
Manifest manifest_of(const SourceOptions& source, const Found& found, int32_t& delimiter) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!source.tokenizer.empty()) tokenizer = load_tokenizer(source.tokenizer);
  if (found.entry.format == SourceFormat::kTokamak) {
    Manifest manifest = read_manifest(source.path);
    if (tokenizer) expect_tokenizer_of(source.path, manifest.tokenizer.hash, *tokenizer);
    return manifest;
  }
  Manifest manifest;
  manifest.tokenizer.name = "unknown";
  delimiter = delimiter_of(source, found, tokenizer.get());
  const bool begins = found.entry.format == SourceFormat::kLlmc && (!tokenizer || delimiter == tokenizer->bos_id());
  if (begins) manifest.bos_id = delimiter;
  if (tokenizer) set_tokenizer(source, *tokenizer, manifest);
  return manifest;
}

// The manifest of the data set that will be made of text, without what only the text says.
Manifest manifest_of_text(const SourceOptions& source) {
  if (source.tokenizer.empty()) {
    fail(Kind::kConfig, str("source ", source.path, " is text and has no tokenizer"),
         "set its tokenizer, or make a data set of it: tokamak data tokenize");
  }
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(source.tokenizer);
  Manifest manifest;
  set_tokenizer(source, *tokenizer, manifest);
  manifest.eos_id = tokenizer->eos_id();
  return manifest;
}

}  // namespace

bool is_text_source(const SourceOptions& source) {
  if (source.format != SourceFormat::kAuto) return source.format == SourceFormat::kJsonl;
  if (!is_directory(source.path)) return is_json_lines(source.path);  // also if it is missing
  return !find_text(candidates_at(source)).empty() && find_format(source).entry.format == SourceFormat::kJsonl;
}

SourceFormat detect_format(const SourceOptions& source) { return find_format(source).entry.format; }

Manifest read_source_manifest(const SourceOptions& source) {
  if (is_text_source(source)) return manifest_of_text(source);
  int32_t delimiter = -1;
  return manifest_of(source, find_format(source), delimiter);
}

OpenSource open_source(const SourceOptions& source, FilePool& pool, SequenceOrder order) {
  const Found found = find_format(source);
  StoreOptions options{order, source.token_type};
  OpenSource out{found.entry.format, manifest_of(source, found, options.delimiter), {}};
  if (out.format == SourceFormat::kTokamak) {
    for (const ShardInfo& info : out.manifest.shards) {
      out.stores.push_back(std::make_unique<Shard>(source.path, info, out.manifest.token_type, pool));
    }
    return out;
  }
  out.stores = found.entry.open(found.paths, options, pool);
  for (const auto& store : out.stores) {
    out.manifest.shards.push_back(store->info());
    const auto* file = dynamic_cast<const TokenFile*>(store.get());
    const TokenElement type = file != nullptr ? file->layout().type : mds_token_type(*store);
    if (type != TokenElement::kAuto && token_type_for(type) == TokenType::kInt32) {
      out.manifest.token_type = TokenType::kInt32;
    }
  }
  return out;
}

}  // namespace tokamak
