#include "checkpoint/reader.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "comm/rank_zero.h"
#include "tensor/state_kinds.h"

namespace tokamak {

namespace {

constexpr size_t kOpenFiles = 128;  // at most: else a full read would hold one per saved rank
constexpr int64_t kReadBytes = int64_t{4} << 20;

std::string wrong_size(const std::string& path, int64_t bytes, const SavedFile& file) {
  return bytes == file.bytes ? "" : str(path, " has ", bytes, " bytes, it should have ", file.bytes);
}

}  // namespace

CheckpointReader CheckpointReader::open_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  if (!is_directory(directory)) fail(Kind::kCheckpoint, directory + " is not a directory");
  if (!exists(path)) fail(Kind::kCheckpoint, str(path, " is missing: the checkpoint is not whole"));
  return CheckpointReader(directory, read_text(path, Kind::kCheckpoint));
}

CheckpointReader CheckpointReader::open(const std::string& directory) {
  CheckpointReader reader = open_manifest(directory);
  for (const SavedFile& file : reader.manifest_.files) {
    const std::string path = directory + "/" + file.name;
    std::error_code code;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, code));
    const std::string problem = code ? str(path, ": ", code.message()) : wrong_size(path, bytes, file);
    if (!problem.empty()) fail(Kind::kCheckpoint, problem);
  }
  return reader;
}

CheckpointReader::CheckpointReader(std::string directory, std::string_view manifest_text)
    : directory_(std::move(directory)),
      manifest_text_(manifest_text),
      manifest_(parse_manifest(manifest_text, directory_ + "/" + kManifestName)) {
  for (size_t u = 0; u < manifest_.units.size(); ++u) {
    for (size_t p = 0; p < manifest_.units[u].params.size(); ++p) {
      params_[manifest_.units[u].params[p].name] = {u, p};
    }
  }
}

std::string CheckpointReader::path_of(int64_t file) const { return directory_ + "/" + manifest_.files[file].name; }

std::string CheckpointReader::file_problem(int64_t index, ReadFrom from) const {
  const std::string path = path_of(index);
  const SavedFile& saved = manifest_.files[index];
  try {
    const InputFile file(path, Kind::kCheckpoint);
    if (std::string problem = wrong_size(path, file.size(), saved); !problem.empty()) return problem;
    if (from == ReadFrom::kDisk) file.drop_cache();
    Hasher hasher;
    std::vector<std::byte> buffer(kReadBytes);
    for (int64_t at = 0; at < file.size(); at += kReadBytes) {
      const auto piece = std::span(buffer).first(std::min(file.size() - at, kReadBytes));
      file.read_at(at, piece);
      hasher.update(piece);
      call(tick_);
    }
    if (from == ReadFrom::kDisk) file.drop_cache();  // no other process will read it
    const std::string found = hasher.hex128();
    if (found != saved.xxh3_128)
      return str(path, " is damaged: its checksum is ", found, ", it should be ", saved.xxh3_128);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const SavedParam* CheckpointReader::find(const std::string& param) const {
  const auto found = params_.find(param);
  if (found == params_.end()) return nullptr;
  return &manifest_.units[found->second.unit].params[found->second.param];
}

std::string CheckpointReader::stored_dtype(const std::string& kind) const {
  if (manifest_.files.empty() || manifest_.units.empty()) fail(Kind::kCheckpoint, directory_ + " has no weights");
  for (const SavedUnit& unit : manifest_.units) {
    const auto has = [&](const SavedParam& param) { return manifest_.has(param, kind); };
    if (std::none_of(unit.params.begin(), unit.params.end(), has)) continue;
    return SafetensorsFile(path_of(0), Kind::kCheckpoint).at(shard_tensor_name(kind, unit.name)).dtype;
  }
  fail(Kind::kCheckpoint, str(directory_, " has no '", printable(kind), "'"));
}

void CheckpointReader::use_average(const std::string& name) {
  std::vector<std::string> names;
  for (const AverageProgress& one : manifest_.point.state.averages) names.push_back(printable(one.name));
  if (manifest_.point.state.find_average(name) == nullptr) {
    fail(Kind::kCheckpoint, str(directory_, " has no average '", printable(name), "' of the weights"),
         names.empty() ? "it has none: see 'averages' in docs/config.md" : "it has " + join(names, ", "));
  }
  average_ = name;
}

const SafetensorsFile& CheckpointReader::shard(int64_t index) {
  const auto found = open_.find(index);
  if (found != open_.end()) return found->second;
  if (open_.size() >= kOpenFiles) open_.clear();
  return open_.emplace(index, SafetensorsFile(path_of(index), Kind::kCheckpoint)).first->second;
}

void CheckpointReader::read(const std::string& kind, const std::string& param, int64_t first, std::span<float> out) {
  const std::string stored = kind == "master" && !average_.empty() ? str(kAveragePrefix, average_) : kind;
  const auto found = params_.find(param);
  if (found == params_.end()) fail(Kind::kCheckpoint, str(directory_, " has no parameter '", param, "'"));
  const SavedUnit& unit = manifest_.units[found->second.unit];
  const SavedParam& saved = unit.params[found->second.param];
  if (!manifest_.has(saved, stored)) {
    fail(Kind::kCheckpoint, str(directory_, " has no '", stored, "' of '", printable(param), "'"));
  }
  TOKAMAK_CHECK(0 <= first && first <= saved.count() && std::ssize(out) <= saved.count() - first, out.size(),
                " elements from ", first, " of ", param);
  const std::string tensor_name = shard_tensor_name(stored, unit.name);
  for (int64_t at = saved.begin + first; !out.empty();) {
    const int64_t index = at / unit.slice;
    const int64_t in_slice = at % unit.slice;
    const auto piece = out.first(std::min(std::ssize(out), unit.slice - in_slice));
    const SafetensorsFile& file = shard(index);
    const SafetensorsEntry& tensor = file.at(tensor_name);
    if (tensor.count() != unit.slice) {
      fail(Kind::kCheckpoint, str(file.path(), ": '", printable(tensor_name), "' has ", tensor.count(),
                                  " elements, the manifest says ", unit.slice));
    }
    if (kind == "master") {
      file.read<float>(tensor, in_slice, piece);
    } else {
      file.read_as_float(tensor, in_slice, piece);
    }
    call(tick_);
    at += std::ssize(piece);
    out = out.subspan(piece.size());
  }
}

std::optional<FileProblem> find_problem_of_share(const CheckpointReader& reader, const Comm& comm, ReadFrom from) {
  const int64_t files = std::ssize(reader.manifest().files);
  for (int64_t i = comm.rank(); i < files; i += comm.size()) {
    std::string problem = reader.file_problem(i, from);
    if (!problem.empty()) return FileProblem{i, std::move(problem)};
  }
  return std::nullopt;
}

std::string find_problem(Comm& comm, const CheckpointReader& reader) {
  const FileProblem own = find_problem_of_share(reader, comm).value_or(FileProblem{INT64_MAX, ""});
  const std::vector<int64_t> files = gather_values(comm, own.file);
  return comm.gather_all(own.text)[std::min_element(files.begin(), files.end()) - files.begin()];
}

}  // namespace tokamak
