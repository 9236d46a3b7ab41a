// safetensors files: a reader that checks every rule before it returns a tensor, and a streaming writer. The grammar is
// in safetensors_header.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "formats/safetensors_header.h"
#include "tensor/dtype.h"

namespace tokamak {

// A file open for reading; thread-safe. The caller chooses the Kind of its errors.
class SafetensorsFile {
 public:
  SafetensorsFile(const std::string& path, Kind kind);

  const std::vector<SafetensorsEntry>& tensors() const { return header_.tensors; }  // in the order of their data
  const SafetensorsMetadata& metadata() const { return header_.metadata; }
  const std::string& path() const { return file_.path(); }

  const SafetensorsEntry* find(std::string_view name) const;  // nullptr if there is none
  const SafetensorsEntry& at(std::string_view name) const;    // fails if there is none

  // Bytes [first, first + out.size()) of the tensor.
  void read_bytes(const SafetensorsEntry& tensor, int64_t first, std::span<std::byte> out) const;

  // Elements [first, first + out.size()) of the flattened tensor; fails if its dtype is not T's.
  template <class T>
  void read(const SafetensorsEntry& tensor, int64_t first, std::span<T> out) const {
    expect(tensor, DTypeOf<T>::kValue);
    read_bytes(tensor, first * static_cast<int64_t>(sizeof(T)), std::as_writable_bytes(out));
  }

  // Like read(), but converts an F32, BF16 or F16 tensor exactly; fails for any other.
  void read_as_float(const SafetensorsEntry& tensor, int64_t first, std::span<float> out) const;

  // The whole tensor.
  template <class T>
  std::vector<T> values(std::string_view name) const {
    const SafetensorsEntry& tensor = at(name);
    expect(tensor, DTypeOf<T>::kValue);
    std::vector<T> out(static_cast<size_t>(tensor.count()));
    read<T>(tensor, 0, out);
    return out;
  }

 private:
  void expect(const SafetensorsEntry& tensor, DType dtype) const;

  Kind kind_;
  InputFile file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;
};

struct FileDigest {
  int64_t bytes = 0;
  std::string xxh3_128;
};

// Writes a file sequentially. Its checksum is computed from the bytes in memory, never read back.
class SafetensorsWriter {
 public:
  // Ignores begin and end of `tensors` and keeps their order. It must align each tensor, as sort_as_reference does.
  SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> tensors, const SafetensorsMetadata& metadata,
                    Kind kind);

  int64_t file_bytes() const { return file_bytes_; }

  // The next bytes of the data, in tensor order, in pieces of any length.
  void write(std::span<const std::byte> bytes);

  void write_behind() { file_.write_behind(); }
  FileDigest finish();  // syncs and closes; all data must be written

 private:
  OutputFile file_;
  Hasher hasher_;
  int64_t file_bytes_ = 0;
};

}  // namespace tokamak
