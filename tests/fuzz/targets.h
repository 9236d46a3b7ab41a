// Readers of files that others made, as functions of bytes: each accepts its input or refuses it with an
// Error(kCheckpoint) that names the file. Anything else (another exception, a promise broken after acceptance, stray
// memory) is a fault, and ends the process. Shared by mutation_test.cc and libFuzzer's programs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"
#include "interop/hf_config.h"

namespace tokamak::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

enum class Verdict { kAccepted, kRefused };
using Target = Verdict (*)(std::string_view bytes);

template <class Read>
Verdict judge(const Read& read) {
  try {
    read();
    return Verdict::kAccepted;
  } catch (const Error& error) {
    require(error.kind() == Kind::kCheckpoint);
    require(std::string_view(error.what()).find("the file") != std::string_view::npos);
    return Verdict::kRefused;
  }
}

// A whole safetensors file.
inline Verdict safetensors(std::string_view bytes) {
  return judge([&] {
    const auto size = static_cast<int64_t>(bytes.size());
    uint64_t length = 0;
    if (bytes.size() < sizeof(length)) fail(Kind::kCheckpoint, "the file is short");
    std::memcpy(&length, bytes.data(), sizeof(length));
    check_safetensors_length(length, size, "the file", Kind::kCheckpoint);
    const SafetensorsHeader header =
        parse_safetensors_header(bytes.substr(sizeof(length), length), size, "the file", Kind::kCheckpoint);
    int64_t end = 0;
    for (const SafetensorsEntry& tensor : header.tensors) {
      require(tensor.begin == end && tensor.begin <= tensor.end && header.data_begin + tensor.end <= size);
      end = tensor.end;
    }
  });
}

inline Verdict index(std::string_view bytes) {
  return judge([&] {
    for (const auto& [tensor, file] : parse_index(bytes, "the file", Kind::kCheckpoint)) {
      require(file.find('/') == std::string::npos && file.ends_with(".safetensors"));
    }
  });
}

// What is accepted computes, and is written and read back as the same model.
inline Verdict hf_config(std::string_view bytes) {
  return judge([&] {
    const HfConfig config = parse_hf_config(bytes, "the file");
    require(config.model.problems().empty());
    const std::string once = render_hf_config(config.model, WeightType::kF32, config.ids);
    const HfConfig again = parse_hf_config(once, "the file");
    require(render_hf_config(again.model, WeightType::kF32, again.ids) == once);
  });
}

inline Verdict gguf(std::string_view bytes) {
  return judge([&] {
    const auto size = static_cast<int64_t>(bytes.size());
    GgufHeader header = parse_gguf_header(bytes, size, "the file", Kind::kCheckpoint);
    for (const GgufTensor& tensor : header.tensors) {
      require(tensor.offset >= 0 && tensor.bytes() >= 0 && header.data_begin + tensor.offset + tensor.bytes() <= size);
    }
    const bool aligned_otherwise = std::any_of(header.keys.begin(), header.keys.end(),
                                               [](const auto& key) { return key.first == "general.alignment"; });
    if (!aligned_otherwise) {
      require(render_gguf_header(header.keys, header.tensors) ==
              bytes.substr(0, static_cast<size_t>(header.data_begin)));
    }
  });
}

}  // namespace tokamak::fuzz
