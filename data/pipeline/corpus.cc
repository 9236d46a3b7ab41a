#include "data/pipeline/corpus.h"

#include <glob.h>

#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "formats/compressed_stream.h"
#include "formats/inflate.h"

namespace tokamak {

namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{64} << 10;
constexpr std::string_view kKinds = ".warc, .wet, .jsonl, .json, .ndjson and .txt, plain, .gz or .zst";

std::optional<CorpusFormat> format_of(const std::string& path) {
  const std::string extension = fs::path(without_compression(path)).extension().string();
  if (extension == ".warc" || extension == ".wet") return CorpusFormat::kWarc;
  if (extension == ".jsonl" || extension == ".json" || extension == ".ndjson") return CorpusFormat::kLines;
  if (extension == ".txt") return CorpusFormat::kText;
  return std::nullopt;
}

// In the order of their names. A pattern that matches nothing gives none.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  globfree(&found);
  return paths;
}

class CorpusFinder {
 public:
  void add(const std::string& input, size_t source) {
    source_ = source;
    const std::vector<std::string> paths = exists(input) ? std::vector{input} : matches(input);
    if (paths.empty()) fail(Kind::kData, str("input ", input, " is no file, and matches none"));
    const size_t before = files_.size();
    for (const std::string& path : paths) {
      if (is_directory(path)) {
        add_directory(path);
      } else if (!add_file(path)) {
        fail(Kind::kData, str("input ", path, " is of no kind that can be read"), str("the kinds are ", kKinds));
      }
    }
    if (files_.size() == before) fail(Kind::kData, str("input ", input, " has no file of ", kKinds));
  }

  std::vector<CorpusFile> finish() {
    if (skipped_ > 0)
      log::warning(skipped_, " files are of other kinds and are skipped; the first is ", first_skipped_);
    return std::move(files_);
  }

 private:
  void add_directory(const std::string& directory) {  // follows no link to a directory: it may lead back
    for (const std::string& name : list_directory(directory, Kind::kData)) {
      const std::string path = directory + "/" + name;
      if (is_directory(path)) {
        if (!fs::is_symlink(path)) add_directory(path);
      } else if (!add_file(path) && skipped_++ == 0) {
        first_skipped_ = path;
      }
    }
  }

  bool add_file(const std::string& path) {
    const std::optional<CorpusFormat> format = format_of(path);
    if (!format) return false;
    if (!is_valid_utf8(path))
      fail(Kind::kData, str("the name of input ", printable(path, 200), " is not UTF-8"), "rename it");
    const auto [before, is_new] = seen_.emplace(fs::weakly_canonical(path).string(), path);
    if (!is_new) fail(Kind::kData, str("input ", path, " is given twice: it is the same file as ", before->second));
    files_.push_back({path, *format, InputFile(path, Kind::kData).size(), source_});
    return true;
  }

  size_t source_ = 0;
  std::vector<CorpusFile> files_;
  std::map<std::string, std::string> seen_;  // canonical path -> as given
  int64_t skipped_ = 0;
  std::string first_skipped_;
};

// The first place from `from` on where a part may begin, or the file's end. find(bytes) returns the offset of the first
// such place in these bytes. Places need `look` bytes to be recognized.
template <class Find>
int64_t first_border(const InputFile& file, int64_t from, size_t look, const Find& find) {
  std::string block;
  for (int64_t at = from; at < file.size();) {
    block.resize(static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kBlock + look), file.size() - at)));
    file.read_at(at, std::as_writable_bytes(std::span(block.data(), block.size())));
    if (const size_t found = find(block); found < kBlock && found < block.size())
      return at + static_cast<int64_t>(found);
    at += static_cast<int64_t>(std::min(block.size(), kBlock));
  }
  return file.size();
}

size_t line_begin(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  return end == std::string_view::npos ? end : end + 1;
}

// A gzip member whose text begins as a record does. Bytes within a member that look like it are decompressed, and fail.
size_t record_begin(std::string_view bytes) {
  constexpr std::string_view kGzip = "\x1f\x8b\x08", kRecord = "WARC/1.";
  for (size_t at = bytes.find(kGzip); at != std::string_view::npos; at = bytes.find(kGzip, at + 1)) {
    const std::optional<std::string> text = inflated(bytes.substr(at), std::ssize(kRecord));
    if (text && *text == kRecord) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<CorpusFile> find_corpus(const std::vector<std::string>& inputs) {
  CorpusFinder finder;
  for (size_t i = 0; i < inputs.size(); ++i) finder.add(inputs[i], i);
  return finder.finish();
}

std::vector<CorpusPart> parts_of(const std::vector<CorpusFile>& files, int64_t part_bytes) {
  std::vector<CorpusPart> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    const CorpusFile& file = files[i];
    const Compression compression = compression_of(file.path);
    const bool at_lines = file.format == CorpusFormat::kLines && compression == Compression::kNone;
    const bool at_members = file.format == CorpusFormat::kWarc && compression == Compression::kGzip;
    const InputFile open(file.path, Kind::kData);
    int64_t begin = 0;
    while (begin < file.bytes) {
      int64_t end = file.bytes;
      if (const int64_t wanted = begin + part_bytes; (at_lines || at_members) && wanted < file.bytes)
        end = at_lines ? first_border(open, wanted, 1, line_begin) : first_border(open, wanted, kBlock, record_begin);
      parts.push_back({i, {begin, end}});
      begin = end;
    }
  }
  return parts;
}

}  // namespace tokamak
