#include "formats/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

namespace tokamak {

static_assert(std::endian::native == std::endian::little, "GGUF is written without swapping bytes");

namespace {

template <class T>
void put(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

struct PutValue {
  std::string& out;

  void operator()(const std::string& text) const { put_text(out, text); }
  void operator()(bool value) const { put<uint8_t>(out, value ? 1 : 0); }
  void operator()(std::monostate) const { TOKAMAK_UNREACHABLE("an array of arrays"); }
  void operator()(const GgufArray& array) const {
    put<uint32_t>(out, static_cast<uint32_t>(array.index()));
    std::visit(*this, array);
  }
  template <class T>
  void operator()(const std::vector<T>& items) const {
    put<uint64_t>(out, items.size());
    for (const auto& item : items) (*this)(static_cast<const T&>(item));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T value) const { put(out, value); }
};

int64_t padded(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

int64_t GgufTensor::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

int64_t GgufTensor::bytes() const { return count() * (type == GgufType::kF32 ? 4 : 2); }

std::string render_gguf_header(const GgufKeys& keys, std::vector<GgufTensor>& tensors) {
  std::string out = "GGUF";
  put<uint32_t>(out, 3);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, keys.size());
  std::set<std::string> names;
  for (const auto& [name, value] : keys) {
    TOKAMAK_CHECK(names.insert(name).second, name, " twice");
    put_text(out, name);
    put<uint32_t>(out, static_cast<uint32_t>(value.index()));
    std::visit(PutValue{out}, value);
  }
  names.clear();
  int64_t end = 0;
  for (GgufTensor& tensor : tensors) {
    TOKAMAK_CHECK(names.insert(tensor.name).second, tensor.name, " twice");
    TOKAMAK_CHECK(tensor.name.size() <= kGgufLongestTensorName, tensor.name);
    tensor.offset = end;
    end += padded(tensor.bytes(), kGgufAlignment);
    put_text(out, tensor.name);
    put<uint32_t>(out, static_cast<uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      put<uint64_t>(out, static_cast<uint64_t>(*extent));
    }
    put<uint32_t>(out, static_cast<uint32_t>(tensor.type));
    put<uint64_t>(out, static_cast<uint64_t>(tensor.offset));
  }
  out.resize(static_cast<size_t>(padded(std::ssize(out), kGgufAlignment)), '\0');
  return out;
}

GgufWriter::GgufWriter(const std::string& path, const GgufKeys& keys, std::vector<GgufTensor> tensors, Kind kind)
    : file_(path, kind), tensors_(std::move(tensors)) {
  file_.write(render_gguf_header(keys, tensors_));
}

void GgufWriter::pad() {
  const int64_t bytes = tensors_[current_].bytes();
  file_.write(std::string(static_cast<size_t>(padded(bytes, kGgufAlignment) - bytes), '\0'));
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  const auto size = std::ssize(bytes);
  TOKAMAK_CHECK(current_ < tensors_.size() && written_ + size <= tensors_[current_].bytes(), "too many bytes for ",
                file_.path());
  file_.write(bytes);
  written_ += size;
  if (written_ < tensors_[current_].bytes()) return;
  pad();
  ++current_;
  written_ = 0;
}

int64_t GgufWriter::finish() {
  TOKAMAK_CHECK(current_ == tensors_.size(), file_.path(), " lacks ", tensors_.size() - current_, " tensors");
  file_.sync();
  file_.close();
  return file_.size();
}

}  // namespace tokamak
