// The tensors of a Hugging Face model's directory: one safetensors file, or several and their index. Opening checks the
// headers, and that index and files agree. Values are read in pieces and converted to f32, exactly.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"

namespace tokamak {

class ModelFiles {
 public:
  // Error(kCheckpoint) naming file and tensor.
  static ModelFiles open(const std::string& directory);

  struct Tensor {
    const SafetensorsEntry* entry = nullptr;
    const SafetensorsFile* file = nullptr;
  };
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

  // Elements [first, first + out.size()) of an F32, BF16 or F16 tensor; Error(kCheckpoint) for any other.
  void read(std::string_view name, int64_t first, std::span<float> out) const;

 private:
  std::map<std::string, SafetensorsFile> files_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Whether ModelFiles::read can read a tensor of this dtype.
bool is_readable_as_float(const std::string& safetensors_dtype);

}  // namespace tokamak
