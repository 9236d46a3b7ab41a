#include "data/text/text_files.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/compressed_stream.h"

namespace tokamak {

namespace {

namespace fs = std::filesystem;

std::optional<TextFormat> format_of(const std::string& path) {
  const std::string extension = fs::path(without_compression(path)).extension().string();
  if (extension == ".txt") return TextFormat::kPlain;
  if (extension == ".jsonl") return TextFormat::kJsonLines;
  return std::nullopt;
}

// "a.jsonl.xz" and the like are an error: skipping them silently would lose text.
bool is_unreadable_text(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return (extension == ".bz2" || extension == ".xz") && format_of(fs::path(path).stem().string());
}

class Finder {
 public:
  void add_input(const std::string& path) {
    if (!exists(path)) fail(Kind::kData, str("input ", path, " does not exist"));
    if (is_directory(path)) {
      if (!add_directory(path)) fail(Kind::kData, str("input ", path, " is given twice: it has been read before"));
    } else if (!add_file(path)) {
      fail(Kind::kData, str("input ", path, " is not text that can be read; the kinds are .txt and .jsonl"));
    }
  }

  std::vector<TextFile> finish() {
    if (left_out_ > 0) {
      log::warning(left_out_, " files are neither .txt nor .jsonl and are skipped; the first is ", first_left_out_);
    }
    if (!second_way_.empty()) {
      log::warning(second_way_, " links to a directory that was read already; each is read once");
    }
    if (files_.empty()) fail(Kind::kData, "the inputs contain no .txt or .jsonl file");
    return std::move(files_);
  }

 private:
  // False if the directory has been read before. Without this, two links in a directory to itself make 2^40 paths.
  bool add_directory(const std::string& directory) {
    if (!directories_.insert(fs::canonical(directory).string()).second) return false;
    for (const std::string& name : list_directory(directory, Kind::kData)) {
      const std::string path = directory + "/" + name;
      if (is_directory(path)) {
        if (!add_directory(path)) second_way_ = path;
      } else if (!add_file(path) && left_out_++ == 0) {
        first_left_out_ = path;
      }
    }
    return true;
  }

  bool add_file(const std::string& path) {
    if (is_unreadable_text(path)) {
      fail(Kind::kData, str("input ", path, " is compressed; .txt and .jsonl can be read plain, as .gz and as .zst"),
           "decompress it first, for example with bunzip2 or unxz");
    }
    const std::optional<TextFormat> format = format_of(path);
    if (!format) return false;
    const auto [before, fresh] = seen_.emplace(fs::weakly_canonical(path).string(), path);
    if (!fresh) fail(Kind::kData, str("input ", path, " is given twice: it is the same file as ", before->second));
    files_.push_back({path, *format, InputFile(path, Kind::kData).size()});
    return true;
  }

  std::vector<TextFile> files_;
  std::map<std::string, std::string> seen_;  // canonical path -> as given
  std::set<std::string> directories_;        // canonical
  std::string second_way_;                   // the last input or link that leads to one of them again
  int64_t left_out_ = 0;
  std::string first_left_out_;
};

}  // namespace

std::vector<TextFile> find_text_files(const std::vector<std::string>& inputs) {
  Finder finder;
  for (const std::string& input : inputs) finder.add_input(input);
  return finder.finish();
}

}  // namespace tokamak
