#include "formats/safetensors.h"

#include <algorithm>

#include "base/bf16.h"
#include "base/f16.h"
#include "base/printable.h"

namespace tokamak {

namespace {

// Small enough that write() finds the checksummed bytes in the cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

SafetensorsHeader read_header(const InputFile& file, Kind kind) {
  if (file.size() < kSafetensorsLengthBytes) {
    fail(kind, str(file.path(), ": ", file.size(), " bytes are too few for a safetensors file"));
  }
  uint64_t length = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  check_safetensors_length(length, file.size(), file.path(), kind);
  std::string text(length, '\0');
  file.read_at(kSafetensorsLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size())));
  return parse_safetensors_header(text, file.size(), file.path(), kind);
}

template <class Bits, class Convert>
void read_converted(const SafetensorsFile& file, const SafetensorsEntry& entry, int64_t first, std::span<float> out,
                    const Convert& convert) {
  constexpr size_t kChunk = size_t{1} << 16;
  std::vector<Bits> buffer(std::min(out.size(), kChunk));
  while (!out.empty()) {
    const auto chunk = std::span(buffer).first(std::min(out.size(), kChunk));
    file.read_bytes(entry, first * static_cast<int64_t>(sizeof(Bits)), std::as_writable_bytes(chunk));
    std::transform(chunk.begin(), chunk.end(), out.begin(), convert);
    first += std::ssize(chunk);
    out = out.subspan(chunk.size());
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path, Kind kind)
    : kind_(kind), file_(path, kind), header_(read_header(file_, kind)) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  const SafetensorsEntry* tensor = find(name);
  if (tensor == nullptr) fail(kind_, str(path(), " has no tensor '", printable(name), "'"));
  return *tensor;
}

void SafetensorsFile::read_bytes(const SafetensorsEntry& tensor, int64_t first, std::span<std::byte> out) const {
  TOKAMAK_CHECK(0 <= first && first <= tensor.bytes() && std::ssize(out) <= tensor.bytes() - first, out.size(),
                " bytes from ", first, " of ", tensor.name, " (", tensor.bytes(), ")");
  file_.read_at(header_.data_begin + tensor.begin + first, out);
}

void SafetensorsFile::read_as_float(const SafetensorsEntry& tensor, int64_t first, std::span<float> out) const {
  if (tensor.dtype == "F32") {
    read<float>(tensor, first, out);
  } else if (tensor.dtype == "BF16") {
    read_converted<bf16>(*this, tensor, first, out, [](bf16 x) { return to_float(x); });
  } else if (tensor.dtype == "F16") {
    read_converted<uint16_t>(*this, tensor, first, out, f16_value);
  } else {
    fail(kind_,
         str(path(), ": tensor '", printable(tensor.name), "' is ", tensor.dtype, "; F32, BF16 and F16 can be read"));
  }
}

void SafetensorsFile::expect(const SafetensorsEntry& tensor, DType dtype) const {
  if (tensor.dtype != name_of(dtype)) {
    fail(kind_,
         str(path(), ": tensor '", printable(tensor.name), "' is ", tensor.dtype, ", expected ", name_of(dtype)));
  }
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> tensors,
                                     const SafetensorsMetadata& metadata, Kind kind)
    : file_(path, kind) {
  const std::string head = render_safetensors_header(tensors, metadata);
  file_bytes_ = std::ssize(head) + (tensors.empty() ? 0 : tensors.back().end);
  write(std::as_bytes(std::span(head.data(), head.size())));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  TOKAMAK_CHECK(std::ssize(bytes) <= file_bytes_ - file_.size(), "too many bytes for ", file_.path());
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    hasher_.update(piece);
    file_.write(piece);
    bytes = bytes.subspan(piece.size());
  }
}

FileDigest SafetensorsWriter::finish() {
  TOKAMAK_CHECK(file_.size() == file_bytes_, file_.path(), ": ", file_.size(), " of ", file_bytes_, " bytes");
  file_.sync();
  file_.close();
  return {file_bytes_, hasher_.hex128()};
}

}  // namespace tokamak
