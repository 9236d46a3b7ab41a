// SentencePiece itself, to compare with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class Oracle {
 public:
  explicit Oracle(const std::string& model_bytes);
  ~Oracle();

  bool loaded() const;
  std::vector<int32_t> encode(std::string_view text) const;
  std::string decode(const std::vector<int32_t>& ids) const;
  int32_t bos_id() const;
  int32_t eos_id() const;
  int32_t unk_id() const;

 private:
  struct Processor;
  std::unique_ptr<Processor> processor_;
};

}  // namespace tokamak
